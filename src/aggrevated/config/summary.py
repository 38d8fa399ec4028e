"""What was chosen for a run, and why: what people are told before it begins."""

from aggrevated.config import Config
from aggrevated.config.budget import most_per_iteration
from aggrevated.config.loop import WORDS
from aggrevated.oracles.monte_carlo import MonteCarloSettings
from aggrevated.problems.custom import Own


def chosen(config: Config) -> list[str]:
    """Of a world of one's own five lines: environment, way back, expert, policy, loop. Of others what they tell."""
    world = config.world
    if not isinstance(world, Own):
        return [line for line in (world.notice, cost(config)) if line]
    return [environment(world), *way_back(world), expert(config, world), policy(config, world), loop(config, world)]


def environment(world: Own) -> str:
    """What is seen and done there."""
    raw = world.raw_translation
    seen = raw.observation_space.shape
    shown = f"pictures of {' x '.join(map(str, seen))}" if raw.picture else f"{seen[0]} numbers"
    if world.columns:
        shown += f", of which the learner sees {len(world.columns)}"
    space = world.raw.action_space
    does = f"{space.n} actions" if hasattr(space, "n") else f"vectors of {space.shape[0]} as actions"
    return f"{world.raw.name}: {shown}, {does}, episodes of at most {world.horizon} steps"


def way_back(world: Own) -> list[str]:
    """How a state is come back to, and what was tried to believe it."""
    said = getattr(world.raw, "said", ())
    return ["; ".join(said)] if said else []


def expert(config: Config, world: Own) -> str:
    """Who it is, and how it is asked."""
    found = world.loaded_expert
    asked = f"asked by the oracle {config.oracle.name}"
    if isinstance(config.oracle, MonteCarloSettings):
        steps = config.oracle.queried_steps
        asked = f"rolled out for Q* at {f'{steps} steps' if steps else 'all steps'} of each trajectory"
    if not config.row.imitates:
        asked = "asked nothing, only measured against"
    said = getattr(found, "said", "")
    return f"expert {found.name}: {asked}{f'; {said}' if said else ''}"


def policy(config: Config, world: Own) -> str:
    """Its shape, and what it reads."""
    hidden = "-".join(map(str, config.policy.values().get("hidden", ()))) or "no hidden layer"
    scaled = world.translation.mean is not None
    reads = "observations scaled by what random actions showed" if scaled else "observations as they come"
    return f"policy: {config.policy.name} of {hidden}, {config.head.name} head, {reads}, {config.start.name} start"


def loop(config: Config, world: Own) -> str:
    """How much of it."""
    own = config.loop
    spent = " or ".join(
        f"{value:,} {what}" for what, value in (("steps", own.budget), ("queries", own.queries)) if value
    )
    length = f"{own.iterations} iterations" if own.length else f"as many iterations as {spent} allow,"
    return (
        f"{config.row.title}, {config.update.name} update: {length} of {own.trajectories} roll-ins, "
        f"{f'{cost(config)}, ' if own.limits else ''}"
        f"the best chosen on {world.validation_episodes} episodes, tested on {world.tested:,} fresh ones"
        f"{fewer_of_expert(world)}"
    )


def cost(config: Config) -> str:
    """What an iteration may take of what is limited; nothing where nothing is."""
    most = most_per_iteration(config)
    words = [f"{most[name]:,} {WORDS[name]}" for name in config.loop.limits]
    return f"an iteration takes at most {' and '.join(words)}" if words else ""


def fewer_of_expert(world: Own) -> str:
    """That the expert may be tested on fewer."""
    fewer = world.tested_expert(0) < world.tested
    return ", the expert on as many of them as take no more answers than training did" if fewer else ""
