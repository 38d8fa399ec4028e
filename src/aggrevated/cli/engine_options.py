"""Where a command does its work: options that every command with runs has."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tyro.conf import UseAppendAction, arg

from aggrevated.cli.option_types import Integer, Name, Seconds

if TYPE_CHECKING:
    from aggrevated.engines import Engine

ENGINES = ("in-process", "processes", "ray")


@dataclass(frozen=True)
class EngineOptions:
    """Where the work is done. None of it is kept with a run, or changes a bit of its result."""

    engine: Name = None
    """in-process, processes or ray; default: one run in process, several side by side in processes."""
    workers: Integer = None
    """How many jobs at once; default: one per core, or all that the Ray cluster has."""
    ray_address: Name = None
    """HOST:PORT of a Ray cluster; without it Ray is started here, where nobody else can reach it."""
    block_size: Integer = None
    """How many trajectories are one job of a run; default: as many as suit the workers."""
    time_limit: Seconds = None
    """How long simulator or expert may take over one step of one episode; default: as long as they like."""
    log: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="NAME", help_behavior_hint="")] = ()
    """Who else is told of the metrics: tensorboard, wandb (offline); into the run folder."""

    def build(self, runs: int = 1) -> "Engine":
        """The engine for so many runs."""
        from aggrevated.core.hardware import count_cores
        from aggrevated.core.user_code import set_time_limit
        from aggrevated.engines import InProcessEngine
        from aggrevated.engines.processes import ProcessEngine

        name = self.checked(runs)
        if self.time_limit is not None:
            set_time_limit(self.time_limit)
        if name == "in-process":
            return InProcessEngine(self.block_size)
        if name == "processes":
            workers = self.workers or count_cores()
            return ProcessEngine(min(workers, runs) if runs > 1 else workers, self.block_size)
        from aggrevated.engines.ray import RayEngine

        return RayEngine(self.workers, self.ray_address, self.block_size)

    def checked(self, runs: int = 1) -> str:
        """The engine's name; a `UsageError` if the options do not go together."""
        from aggrevated.core.settings import TRIALS, at_least, check_setting
        from aggrevated.errors import UsageError

        name = self.engine or ("processes" if runs > 1 or self.workers else "in-process")
        check_setting(name in ENGINES, "engine", name, f"one of {', '.join(ENGINES)}")
        for option, value, rule in (("workers", self.workers, TRIALS), ("block_size", self.block_size, at_least(1))):
            rule.check(option, 1 if value is None else value)
        limit = self.time_limit
        check_setting(limit is None or 0 < limit < float("inf"), "time_limit", limit, "a positive number of seconds")
        if self.ray_address and name != "ray":
            raise UsageError("--ray-address is for --engine ray; leave it out, or choose that engine")
        if self.workers and name == "in-process":
            raise UsageError("--workers has no effect on --engine in-process; choose processes, or leave it out")
        if self.block_size and runs > 1:
            raise UsageError("--block-size has no effect on several runs, each of which is one job; leave it out")
        if self.log:
            from aggrevated.loggers import find_writer_factories

            find_writer_factories(self.log)
        if self.ray_address:
            from aggrevated.engines.ray import check_reachable

            check_reachable(self.ray_address)
        return name
