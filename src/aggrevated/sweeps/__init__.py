"""Sweeps: search for good settings by many runs, with Optuna."""

from aggrevated.core.errors import UsageError

try:
    import optuna
except ImportError as error:
    raise UsageError("a sweep needs Optuna: pip install 'aggrevated[optuna]'") from error
optuna.logging.set_verbosity(optuna.logging.ERROR)
