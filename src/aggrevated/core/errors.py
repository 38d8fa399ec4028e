"""The errors that a user can meet: each one sentence with a remedy, and the exit code of the command line."""

from typing import Self


class AggrevatedError(Exception):
    """The run failed: exit code 1. Every error below is one of these."""

    exit_code = 1


class UsageError(AggrevatedError, ValueError):
    """Something was asked for that does not exist or cannot be: exit code 2."""

    exit_code = 2


class UnusedSettingError(UsageError):
    """A setting was given that has no effect on the run: exit code 2. `setting` is its name."""

    def __init__(self, sentence: str, setting: str) -> None:
        super().__init__(sentence, setting)
        self.setting = setting

    def __str__(self) -> str:
        return str(self.args[0])


class DataError(AggrevatedError, ValueError):
    """A file, a checkpoint or an oracle gave data that cannot be used: exit code 65."""

    exit_code = 65


class UserCodeError(DataError):
    """A simulator or an expert raised, took too long, or gave what cannot be used: exit code 65.

    `row` is where in its batch that was, until somebody knows which episode it is: `seed` is that of its trajectory, by
    which it can be seen again, and `step` counts from 0.
    """

    def __init__(
        self, part: str, what: str, remedy: str,
        row: int | None = None, step: int | None = None, seed: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(part, what, remedy, row, step, seed)
        self.part, self.what, self.remedy, self.row, self.step, self.seed = self.args

    def add_position(self, row: int | None = None, step: int | None = None, seed: int | None = None) -> Self:
        """The same, with what is known better now of where it was."""
        then = self.row, self.step, self.seed
        now = (new if new is not None else old for new, old in zip((row, step, seed), then, strict=True))
        return type(self)(self.part, self.what, self.remedy, *now)

    def __str__(self) -> str:
        episode = f"the episode of seed {self.seed}" if self.seed is not None else "an episode"
        where = f" in step {self.step} of {episode}" if self.step is not None else ""
        return f"{self.part} {self.what}{where}; {self.remedy}"


class StorageError(AggrevatedError, OSError):
    """Reading or writing failed, for example on a full disk: exit code 74."""

    exit_code = 74
