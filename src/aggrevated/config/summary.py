"""What was chosen for a run, and why: what people are told before it begins."""

from aggrevated.config import Config
from aggrevated.config.loop import LIMIT_UNITS
from aggrevated.config.resolver import max_cost_per_iteration
from aggrevated.oracles.monte_carlo import MonteCarloSettings
from aggrevated.problems.custom import CustomProblem


def describe_config(config: Config) -> list[str]:
    """Of a world of one's own five lines: environment, way back, expert, policy, loop. Of others what they tell."""
    world = config.problem
    if not isinstance(world, CustomProblem):
        return [line for line in (world.notice, describe_cost(config)) if line]
    return [
        describe_environment(world),
        *describe_state_restoring(world),
        describe_expert(config, world),
        describe_policy(config, world),
        describe_loop(config, world),
    ]


def describe_environment(world: CustomProblem) -> str:
    """What is seen and done there."""
    raw = world.raw_space_adapter
    seen = raw.observation_space.shape
    shown = f"pictures of {' x '.join(map(str, seen))}" if raw.is_image else f"{seen[0]} numbers"
    if world.observation_columns:
        shown += f", of which the learner sees {len(world.observation_columns)}"
    space = world.environment_simulator.action_space
    does = f"{space.n} actions" if hasattr(space, "n") else f"vectors of {space.shape[0]} as actions"
    return f"{world.environment_simulator.name}: {shown}, {does}, episodes of at most {world.horizon} steps"


def describe_state_restoring(world: CustomProblem) -> list[str]:
    """How a state is come back to, and what was tried to believe it."""
    said = getattr(world.environment_simulator, "notes", ())
    return ["; ".join(said)] if said else []


def describe_expert(config: Config, world: CustomProblem) -> str:
    """Who it is, and how it is asked."""
    found = world.loaded_expert
    asked = f"asked by the oracle {config.oracle.name}"
    if isinstance(config.oracle, MonteCarloSettings):
        steps = config.oracle.query_steps
        asked = f"rolled out for Q* at {f'{steps} steps' if steps else 'all steps'} of each trajectory"
    if not config.method_spec.queries_expert:
        asked = "asked nothing, only measured against"
    said = getattr(found, "description", "")
    return f"expert {found.name}: {asked}{f'; {said}' if said else ''}"


def describe_policy(config: Config, world: CustomProblem) -> str:
    """Its shape, and what it reads."""
    hidden = "-".join(map(str, config.policy.to_values().get("hidden", ()))) or "no hidden layer"
    scaled = world.space_adapter.mean is not None
    reads = "observations scaled by what random actions showed" if scaled else "observations as they come"
    return f"policy: {config.policy.name} of {hidden}, {config.head.name} head, {reads}, {config.start.name} start"


def describe_loop(config: Config, world: CustomProblem) -> str:
    """How much of it."""
    own = config.loop
    spent = " or ".join(
        f"{value:,} {what}" for what, value in (("steps", own.budget), ("queries", own.queries)) if value
    )
    length = f"{own.iterations} iterations" if own.known_iterations else f"as many iterations as {spent} allow,"
    return (
        f"{config.method_spec.title}, {config.update.name} update: {length} of {own.trajectories} roll-ins, "
        f"{f'{describe_cost(config)}, ' if own.limits else ''}"
        f"the best chosen on {world.validation_episodes} episodes, tested on {world.n_test_episodes:,} fresh ones"
        f"{describe_expert_test_episodes(world)}"
    )


def describe_cost(config: Config) -> str:
    """What an iteration may take of what is limited; nothing where nothing is."""
    most = max_cost_per_iteration(config)
    words = [f"{most[name]:,} {LIMIT_UNITS[name]}" for name in config.loop.limits]
    return f"an iteration takes at most {' and '.join(words)}" if words else ""


def describe_expert_test_episodes(world: CustomProblem) -> str:
    """That the expert may be tested on fewer."""
    fewer = world.count_expert_test_episodes(0) < world.n_test_episodes
    return ", the expert on as many of them as take no more answers than training did" if fewer else ""
