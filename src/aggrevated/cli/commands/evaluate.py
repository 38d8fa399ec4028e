"""`aggrevated evaluate`: test the best policy of a run again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from tyro.conf import Positional

from aggrevated.cli.options import RunFolder, Trust


@dataclass(frozen=True)
class Evaluate:
    """Test the best policy of a run and its expert on fresh episodes, or on test pages.

    The options depend on the run: 'aggrevated evaluate RUN --help' lists them.

    Try:
      aggrevated evaluate runs/cartpole-aggrevated-natural
      aggrevated evaluate runs/cartpole-aggrevated-natural --episodes 5000 --deterministic --json
      aggrevated evaluate runs/algebra-aggrevated-regular --crohme ink/dev --json
    """

    command = "evaluate"
    run_folder: Positional[RunFolder]
    """Run folder, of one run or of several trials."""
    trust_code: Trust = False
    json: bool = False
    """Print the result as one JSON object."""

    defaults: ClassVar[Any] = None  # the EvaluationSettings of the run's problem

    @classmethod
    def specialize(cls, arguments: Sequence[str]) -> tuple[type[Self], list[str]]:
        """Return the command with the options of the run among the arguments, and the arguments that it takes."""
        folders = [Path(argument) for argument in arguments[1:] if not argument.startswith("-")]
        if not folders:
            return cls, list(arguments)
        from aggrevated.cli.options import (
            iter_unknown_options,
            make_option_group,
            normalize_flags,
            specialize_command,
        )
        from aggrevated.core.errors import UsageError
        from aggrevated.core.settings import to_flag
        from aggrevated.training.run_folder import list_runs

        config = list_runs(find_folder_argument(folders), trust_code=to_flag("trust_code") in arguments)[0].config
        defaults = config.problem.evaluation()
        for name in iter_unknown_options(
            arguments, {*defaults.to_values(), *cls.__dataclass_fields__, "help", "help_all"}
        ):
            raise UsageError(f"{to_flag(name)} has no effect on a run of {config.task.name}; leave it out")
        command = specialize_command(cls, {"evaluation": make_option_group("evaluation", defaults)}, defaults=defaults)
        return command, normalize_flags(arguments, [defaults])

    def run(self) -> None:
        """Evaluate the policy and print its scores."""
        from aggrevated.cli.console import print_result
        from aggrevated.cli.options import get_explicit_settings
        from aggrevated.training.evaluation import evaluate_run
        from aggrevated.training.run_folder import list_runs

        settings = replace(self.defaults, **get_explicit_settings(self, {"evaluation": self.defaults}))
        settings.check_values()
        runs = list_runs(self.run_folder, self.trust_code)
        print_result([evaluate_run(run, settings) for run in runs], self.run_folder, self.json)


def find_folder_argument(paths: Sequence[Path]) -> Path:
    """Return the first path that is a run folder; if none is, the first path."""
    from aggrevated.training.run_folder import GROUP_PATTERNS

    folders = (path for path in paths for name in (".", *GROUP_PATTERNS) if any(path.glob(f"{name}/config.json")))
    return next(folders, paths[0])
