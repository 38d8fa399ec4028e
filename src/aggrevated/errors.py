"""The errors that a user can meet: each one sentence with a remedy, and the exit code of the command line."""


class AggrevatedError(Exception):
    """The run failed: exit code 1. Every error below is one of these."""

    exit_code = 1


class UsageError(AggrevatedError, ValueError):
    """Something was asked for that does not exist or cannot be: exit code 2."""

    exit_code = 2


class IdleError(UsageError):
    """A setting was given that has no effect on the run: exit code 2. `setting` is its name."""

    def __init__(self, sentence: str, setting: str) -> None:
        super().__init__(sentence, setting)
        self.setting = setting

    def __str__(self) -> str:
        return str(self.args[0])


class DataError(AggrevatedError, ValueError):
    """A file, a checkpoint or an oracle gave data that cannot be used: exit code 65."""

    exit_code = 65


class StorageError(AggrevatedError, OSError):
    """Reading or writing failed, for example on a full disk: exit code 74."""

    exit_code = 74
