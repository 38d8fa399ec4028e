"""`aggrevated doctor`: before anyone trains."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from tyro.conf import Positional, arg

from aggrevated.cli.option_types import Folder


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

    usual: ClassVar[Any] = None  # a Config: the pieces that the choices come to, with their defaults

    @classmethod
    def fitted(cls, arguments: Sequence[str]) -> tuple[type[Self], list[str]]:
        """(the command with the options of the task that the arguments name, the arguments as it takes them)."""
        from aggrevated.cli.commands.train import groups_of, named_task, usual_of, with_tasks
        from aggrevated.cli.component_options import fitted, switches

        task = named_task(arguments)
        if task is None:
            return with_tasks(cls), list(arguments)
        config = usual_of(task, arguments)
        return fitted(cls, groups_of([config], cls, arguments), config), switches(arguments, config.pieces.values())

    def run(self) -> None:
        """Examine, write the page, and print what was found."""
        import json

        from aggrevated.cli.commands.train import CHOICES, refuse_if_later
        from aggrevated.cli.component_options import given
        from aggrevated.cli.output import note
        from aggrevated.cli.progress import Progress
        from aggrevated.config.resolver import resolve
        from aggrevated.doctor import examine
        from aggrevated.doctor.html_report import lines, write
        from aggrevated.errors import DataError

        refuse_if_later(self.command, self.task, self.usual)
        chosen = {name: getattr(self.choice, name) for name in CHOICES}  # type: ignore[attr-defined]
        config = resolve(self.usual.task, self.method, **chosen, **given(self, self.usual.pieces))
        with Progress("doctor", 1) as shown:

            def progress(done: int, total: int, what: str) -> None:
                shown.total = total
                if shown.bar:
                    shown.bar.update(shown.task, total=total)
                shown.at(done, what)

            found = examine(config, self.episodes, config.loop.seed, self.seconds, progress)
        page = write(found, self.out or Path(f"doctor-{plain(config.task.name)}"))
        note(f"page: {page}")
        print(json.dumps(found.facts(), ensure_ascii=False) if self.json else "\n".join(lines(found)))
        if self.strict and found.faults:
            raise DataError(f"{len(found.faults)} of the checks found a fault; {found.faults[0].remedy or 'see above'}")


def plain(name: str) -> str:
    """A name that a folder can have."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
