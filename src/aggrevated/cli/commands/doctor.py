"""`aggrevated doctor`: before anyone trains."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from tyro.conf import Positional, arg

from aggrevated.cli.options import Folder


@dataclass(frozen=True)
class Doctor:
    """Examine an environment and its expert before anyone trains: what is wrong, what can be won, what to run.

    Its options are those of 'train' besides: what is examined is what would be trained with.

    Try:
      aggrevated doctor cartpole
      aggrevated doctor hopper --expert my-expert.zip --seconds 300
      aggrevated doctor acrobot --horizon 100 --strict --json
    """

    command = "doctor"
    task: Annotated[Positional[str], arg(metavar="TASK", help_behavior_hint="")] = ""
    """What would be learned."""
    method: str = "aggrevated"
    """With which method."""
    episodes: int = 200
    """How many episodes of the expert, of the first policy and at random, at most."""
    seconds: float = 60.0
    """How long it may take, about; what does not fit into that is said."""
    out: Folder = None
    """Where report.html, report.json and doctor.png go; default: doctor-TASK/."""
    strict: bool = False
    """Leave with exit code 65 if there is a fault."""
    json: bool = False
    """Print the result as one JSON object."""

    selection: ClassVar[Any] = None  # the Selection of the task among the arguments

    @classmethod
    def specialize(cls, arguments: Sequence[str]) -> tuple[type[Self], list[str]]:
        """Return the command with the options of the task among the arguments, and the arguments that it takes."""
        from aggrevated.cli.commands.train import (
            add_task_list,
            find_task_argument,
            make_option_groups,
            select_from_arguments,
            shown_config,
        )
        from aggrevated.cli.options import normalize_flags, specialize_command

        task = find_task_argument(arguments)
        if task is None:
            return add_task_list(cls), list(arguments)
        selection = select_from_arguments(task, arguments)
        config = shown_config(selection, arguments)
        command = specialize_command(cls, make_option_groups([config], cls, arguments), selection=selection)
        return command, normalize_flags(arguments, config.components.values())

    def run(self) -> None:
        """Examine, write the page, and print what was found."""
        import json

        from aggrevated.cli.commands.train import fill_selection
        from aggrevated.cli.console import Progress, print_note
        from aggrevated.core.errors import DataError
        from aggrevated.doctor import diagnose
        from aggrevated.doctor.html_report import report_lines, write_report

        config = fill_selection(self, self.task, self.selection)
        with Progress("doctor", 1) as shown:

            def report_progress(done: int, total: int, what: str) -> None:
                shown.total = total
                if shown.bar:
                    shown.bar.update(shown.task, total=total)
                shown.report(done, what)

            found = diagnose(config, self.episodes, config.loop.seed, self.seconds, report_progress)
        page = write_report(found, self.out or Path(f"doctor-{to_folder_name(config.task.name)}"))
        print_note(f"page: {page}")
        print(json.dumps(found.to_dict(), ensure_ascii=False) if self.json else "\n".join(report_lines(found)))
        if self.strict and found.faults:
            raise DataError(f"{len(found.faults)} of the checks found a fault; {found.faults[0].remedy or 'see above'}")


def to_folder_name(name: str) -> str:
    """A name that a folder can have."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
