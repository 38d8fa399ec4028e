"""Errors for users: one sentence with a remedy each, and the exit code of the command line."""

from typing import Self


class AggrevatedError(Exception):
    """Base class of the errors that aggrevated raises on purpose; a failed run has exit code 1."""

    exit_code = 1


class UsageError(AggrevatedError, ValueError):
    """Invalid request, such as an unknown name or a bad value: exit code 2."""

    exit_code = 2


class UnusedSettingError(UsageError):
    """Setting without an effect on the run: exit code 2.

    Args:
        sentence: the message.
        setting: name of the setting.
    """

    def __init__(self, sentence: str, setting: str) -> None:
        super().__init__(sentence, setting)
        self.setting = setting

    def __str__(self) -> str:
        return str(self.args[0])


class DataError(AggrevatedError, ValueError):
    """Unusable data from a file, a checkpoint or an oracle: exit code 65."""

    exit_code = 65


class UserCodeError(DataError):
    """Failure of a simulator, an expert or other user code: exit code 65.

    Args:
        part: what failed, such as "the expert NAME".
        what: what it did, such as "raised KeyError".
        remedy: what to do about it.
        row: row of the batch in which it failed, while the episode is unknown.
        step: step of the episode, from 0.
        seed: seed of the trajectory, with which it can be repeated.
    """

    def __init__(
        self, part: str, what: str, remedy: str,
        row: int | None = None, step: int | None = None, seed: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(part, what, remedy, row, step, seed)
        self.part, self.what, self.remedy, self.row, self.step, self.seed = self.args

    def add_position(self, row: int | None = None, step: int | None = None, seed: int | None = None) -> Self:
        """Return a copy of the error with more of its position.

        Args:
            row: row of the batch, or None to keep it.
            step: step of the episode, or None to keep it.
            seed: seed of the trajectory, or None to keep it.

        Returns:
            The error with the position that is known now.
        """
        current = self.row, self.step, self.seed
        position = (new if new is not None else old for new, old in zip((row, step, seed), current, strict=True))
        return type(self)(self.part, self.what, self.remedy, *position)

    def __str__(self) -> str:
        episode = f"the episode of seed {self.seed}" if self.seed is not None else "an episode"
        where = f" in step {self.step} of {episode}" if self.step is not None else ""
        return f"{self.part} {self.what}{where}; {self.remedy}"


class StorageError(AggrevatedError, OSError):
    """Failure to read or write a file, for example on a full disk: exit code 74."""

    exit_code = 74
