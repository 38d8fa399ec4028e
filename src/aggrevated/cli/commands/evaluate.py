"""`aggrevated evaluate`: try the chosen policy again, in the way of its world."""

from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from inspect import getdoc
from pathlib import Path
from typing import Any, ClassVar, Self

from tyro.conf import Positional

from aggrevated.cli.options import RunFolder


@dataclass(frozen=True)
class Evaluate:
    """Try the policy that a run chose on fresh episodes beside its expert, or on test pages.

    What can be set depends on the run: 'aggrevated evaluate RUN --help' shows it.

    Try:
      aggrevated evaluate runs/cartpole-aggrevated-natural
      aggrevated evaluate runs/cartpole-aggrevated-natural --episodes 5000 --deterministic --json
      aggrevated evaluate runs/algebra-aggrevated-regular --crohme ink/dev --json
    """

    command = "evaluate"
    run_folder: Positional[RunFolder]
    """The folder that 'aggrevated train' made, of one run or of several trials."""
    json: bool = False
    """Print the result as one JSON object."""

    usual: ClassVar[Any] = None  # EvaluationSettings: how it is done unless the options say otherwise

    @classmethod
    def fitted(cls, arguments: Sequence[str]) -> tuple[type[Self], list[str]]:
        """(the command with the options of the run that the arguments name, the arguments as it takes them)."""
        folders = [Path(word) for word in arguments[1:] if not word.startswith("-")]
        if not folders:
            return cls, list(arguments)
        from aggrevated.cli.pieces import group, named_in, switches
        from aggrevated.errors import UsageError
        from aggrevated.runs.run import runs_in
        from aggrevated.settings import flag

        config = runs_in(folder_among(folders))[0].config
        usual = config.world.evaluation()
        options = group("evaluation", usual)
        known = {*usual.values(), *cls.__dataclass_fields__, "help"}
        for name in named_in(arguments):
            if name not in known and name.removeprefix("no_") not in known:
                raise UsageError(f"{flag(name)} has no effect on a run of {config.task.name}; leave it out")
        fields = [("evaluation", options, field(default_factory=options))]
        fitted = make_dataclass(cls.__name__, fields, bases=(cls,), frozen=True, namespace={"usual": usual})
        fitted.__doc__ = getdoc(cls)
        return fitted, switches(arguments, [usual])

    def run(self) -> None:
        """Evaluate, and print the result."""
        from dataclasses import replace

        from aggrevated.cli.output import print_result
        from aggrevated.cli.pieces import given
        from aggrevated.runs.run import evaluate, runs_in

        how = replace(self.usual, **given(self, {"evaluation": self.usual}))
        how.check_values()
        print_result([evaluate(run, how) for run in runs_in(self.run_folder)], self.run_folder, self.json)


def folder_among(words: Sequence[Path]) -> Path:
    """The folder of a run, or of trials, among the words; if none is one, the first of them."""
    return next((path for path in words if [*path.glob("config.json"), *path.glob("trial-*/config.json")]), words[0])
