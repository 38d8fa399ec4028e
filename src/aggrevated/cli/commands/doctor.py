"""`aggrevated doctor`: examine an environment and its expert before training."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from tyro.conf import Positional, arg

from aggrevated.cli.options import Folder

MAIN_OPTIONS = (  # those that --help lists
    "task", "expert", "method", "policy", "horizon", "episodes", "seconds", "seed", "out", "strict", "json",
)  # fmt: skip


@dataclass(frozen=True)
class Doctor:
    """Examine an environment and its expert before training: faults, what can be gained, which command to run.

    It takes the options of 'train', too: it examines what these would train.

    Try:
      aggrevated doctor cartpole
      aggrevated doctor hopper --expert my-expert.zip --seconds 300
      aggrevated doctor acrobot --horizon 100 --strict --json
    """

    command = "doctor"
    task: Annotated[Positional[str], arg(metavar="TASK", help_behavior_hint="")] = ""
    """Task to examine."""
    method: str = "aggrevated"
    """Method that would be trained."""
    episodes: int = 200
    """Largest number of episodes of the expert, of the initial policy and of random actions."""
    seconds: float = 60.0
    """Approximate time limit in seconds; the report lists what did not fit."""
    out: Folder = None
    """Folder of report.html, report.json and doctor.png; default: doctor-TASK/."""
    strict: bool = False
    """Exit with code 65 if there is a fault."""
    json: bool = False
    """Print the result as one JSON object."""

    selection: ClassVar[Any] = None  # the Selection of the task among the arguments

    @classmethod
    def specialize(cls, arguments: Sequence[str]) -> tuple[type[Self], list[str]]:
        """Return the command with the options of the task among the arguments, and the arguments that it takes."""
        from aggrevated.cli.commands.train import (
            add_task_list,
            find_task_argument,
            make_option_defaults,
            make_option_groups,
            select_from_arguments,
        )
        from aggrevated.cli.options import normalize_flags, specialize_command, specialize_help

        task = find_task_argument(arguments)
        if task is None:
            return add_task_list(cls), list(arguments)
        selection = select_from_arguments(task, arguments)
        config = make_option_defaults(selection, arguments)
        command = specialize_command(cls, make_option_groups([config], cls, arguments), selection=selection)
        return specialize_help(command, normalize_flags(arguments, config.components.values()), MAIN_OPTIONS)

    def run(self) -> None:
        """Examine the task, write the page and print the findings."""
        import json

        from aggrevated.cli.commands.train import fill_selection
        from aggrevated.cli.console import Progress, print_note
        from aggrevated.core.errors import DataError
        from aggrevated.doctor import diagnose
        from aggrevated.doctor.html_report import report_lines, write_report

        config = fill_selection(self, self.task, self.selection)
        with Progress("doctor", 1) as bar:

            def report_progress(done: int, total: int, check: str) -> None:
                bar.total = total
                if bar.bar:
                    bar.bar.update(bar.task, total=total)
                bar.report(done, check)

            result = diagnose(config, self.episodes, config.loop.seed, self.seconds, report_progress)
        page = write_report(result, self.out or Path(f"doctor-{to_folder_name(config.task.name)}"))
        print_note(f"page: {page}")
        print(json.dumps(result.to_dict(), ensure_ascii=False) if self.json else "\n".join(report_lines(result)))
        if self.strict and (faults := result.faults):
            raise DataError(f"{len(faults)} of the checks found a fault; {faults[0].remedy or 'see above'}")


def to_folder_name(name: str) -> str:
    """Return the name with other characters replaced by hyphens."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
