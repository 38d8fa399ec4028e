"""Description of a run for people, printed before it begins."""

from aggrevated.config import Config
from aggrevated.config.loop import LIMIT_UNITS
from aggrevated.config.resolver import max_cost_per_iteration
from aggrevated.oracles.monte_carlo import MonteCarloSettings
from aggrevated.problems.custom import CustomProblem


def describe_config(config: Config) -> list[str]:
    """Return the lines that describe a run: for a custom problem environment, state restoring, expert, policy, loop."""
    problem = config.problem
    if not isinstance(problem, CustomProblem):
        return [line for line in (problem.notice, describe_cost(config)) if line]
    return [
        describe_environment(problem),
        *describe_state_restoring(problem),
        describe_expert(config, problem),
        describe_policy(config, problem),
        describe_loop(config, problem),
    ]


def describe_environment(problem: CustomProblem) -> str:
    """Return observations, actions and the horizon in words."""
    raw = problem.raw_space_adapter
    shape = raw.observation_space.shape
    observations = f"images of {' x '.join(map(str, shape))}" if raw.is_image else f"{shape[0]} numbers"
    if problem.observation_columns:
        observations += f", of which the learner sees {len(problem.observation_columns)}"
    space = problem.environment_simulator.action_space
    actions = f"{space.n} actions" if hasattr(space, "n") else f"action vectors of {space.shape[0]}"
    return (
        f"{problem.environment_simulator.name}: {observations}, {actions}, episodes of at most {problem.horizon} steps"
    )


def describe_state_restoring(problem: CustomProblem) -> list[str]:
    """Return how states are restored and how that was checked."""
    notes = getattr(problem.environment_simulator, "notes", ())
    return ["; ".join(notes)] if notes else []


def describe_expert(config: Config, problem: CustomProblem) -> str:
    """Return the expert and how it is queried."""
    expert = problem.loaded_expert
    use = f"queried by the oracle {config.oracle.name}"
    if isinstance(config.oracle, MonteCarloSettings):
        steps = config.oracle.query_steps
        use = f"rolled out for Q* at {f'{steps} steps' if steps else 'all steps'} of each trajectory"
    if not config.method_spec.queries_expert:
        use = "not queried, only compared with"
    description = getattr(expert, "description", "")
    return f"expert {expert.name}: {use}{f'; {description}' if description else ''}"


def describe_policy(config: Config, problem: CustomProblem) -> str:
    """Return the network and its inputs in words."""
    hidden = "-".join(map(str, config.policy.to_values().get("hidden", ()))) or "no hidden layer"
    scaled = problem.space_adapter.mean is not None
    reads = "observations scaled by episodes of random actions" if scaled else "unscaled observations"
    return f"policy: {config.policy.name} of {hidden}, {config.head.name} head, {reads}, {config.start.name} start"


def describe_loop(config: Config, problem: CustomProblem) -> str:
    """Return the length of the run in words."""
    loop = config.loop
    limits = " or ".join(
        f"{value:,} {unit}" for unit, value in (("steps", loop.budget), ("queries", loop.queries)) if value
    )
    length = f"{loop.iterations} iterations" if loop.known_iterations else f"as many iterations as {limits} allow,"
    return (
        f"{config.method_spec.title}, {config.update.name} update: {length} of {loop.trajectories} roll-ins, "
        f"{f'{describe_cost(config)}, ' if loop.limits else ''}"
        f"the best policy selected on {problem.validation_episodes} episodes, tested on "
        f"{problem.n_test_episodes:,} fresh ones"
        f"{describe_expert_test_episodes(problem)}"
    )


def describe_cost(config: Config) -> str:
    """Return the largest cost of an iteration in the units of the limits; an empty text without limits."""
    costs = max_cost_per_iteration(config)
    amounts = [f"{costs[name]:,} {LIMIT_UNITS[name]}" for name in config.loop.limits]
    return f"an iteration takes at most {' and '.join(amounts)}" if amounts else ""


def describe_expert_test_episodes(problem: CustomProblem) -> str:
    """Return that the expert may be tested on fewer episodes, if so."""
    has_fewer = problem.count_expert_test_episodes(0) < problem.n_test_episodes
    return ", the expert on as many of them as take no more of its answers than training did" if has_fewer else ""
