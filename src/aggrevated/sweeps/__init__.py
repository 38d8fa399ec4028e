"""Many runs, to find good settings with Optuna: what varies, what was asked, and the sweep's folder."""

from aggrevated.core.errors import UsageError

try:
    import optuna
except ImportError as error:
    raise UsageError("a sweep needs Optuna: pip install 'aggrevated[optuna]'") from error
optuna.logging.set_verbosity(optuna.logging.ERROR)
