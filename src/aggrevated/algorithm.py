"""Algorithm 1 of the paper, AggreVaTeD. The numbers in the margin are its lines."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from aggrevated.collection import RolloutCollector
from aggrevated.compatibility import check_compatible
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.core.schedules import ZERO_SCHEDULE, Schedule
from aggrevated.engines import IN_PROCESS, Engine
from aggrevated.experts import Expert
from aggrevated.losses import Loss
from aggrevated.oracles import Oracle
from aggrevated.policies import Policy
from aggrevated.rollout.roll_in import RollInPolicy
from aggrevated.simulators import Simulator
from aggrevated.updates import Update, UpdateResult
from aggrevated.validation import BestPolicy, EpisodeEvaluator, ValidationScore, Validator, as_validation_score


@dataclass
class Learner:
    """All that changes while learning, and so all that a checkpoint holds."""

    policy: Policy  # π_θ
    update: Update
    best: BestPolicy = field(default_factory=BestPolicy)
    n: int = 0  # iterations done
    simulator_steps: int = 0  # by start, roll-ins and oracle: all that is learned from
    start_simulator_steps: int = 0  # of these, before iteration 1
    oracle_steps: int = 0  # of these, by the oracle
    validation_steps: int = 0  # besides these, by `validate`, as far as it tells
    oracle_queries: int = 0
    diverged_trajectories: int = 0  # simulations of roll-ins and oracle that were left out, because they diverged
    diverged_validation_episodes: int = 0  # and episodes of `validate`

    def update_best(self, score: ValidationScore | float, n: int) -> None:
        """Save π_θ as the best policy if its score is the highest so far, and count the steps of the validation."""
        score = as_validation_score(score)
        self.best.update_best(self.policy, score.value, n)
        self.validation_steps += score.steps
        self.diverged_validation_episodes += score.diverged


@dataclass(frozen=True)
class Iteration:
    """What happened in iteration n."""

    n: int
    roll_in_return: float  # of π̂_n, on the K roll-ins
    current_return: float  # of π_{n+1}, on validation, or of the last before it that was validated
    best_return: float  # of the best policy so far, on validation
    step: UpdateResult


# fmt: off
def aggrevated(
    learner: Learner, simulator: Simulator, expert: Expert | None, oracle: Oracle, loss: Loss,
    *, seed: int = 0, k: int = 50, alpha: Schedule = ZERO_SCHEDULE, validation_episodes: int = 200,
    validate: Validator | None = None, validate_every: int = 1, engine: Engine = IN_PROCESS,
) -> Iterator[Iteration]:
    """Train the learner by Algorithm 1, one iteration each time the caller asks for the next.

    With other oracles, losses and updates this is DAgger or reinforcement learning (`aggrevated.methods`).

    Args:
        learner: Policy and update; a learner that has iterations behind it continues after them.
        simulator: Where the policy acts.
        expert: π*, for the roll-in policy; None if `alpha` is 0.
        oracle: Returns the cost-to-go at the visited states.
        loss: ℓ_n, a function of policy, trajectories and cost-to-go.
        seed: Determines, with the iteration, every random number.
        k: K, the trajectories per iteration.
        alpha: α_n, the fraction of roll-in steps that the expert takes.
        validation_episodes: Episodes by which the best policy is selected, unless `validate` is given.
        validate: Scores a policy; by default by the mean return of fresh episodes.
        validate_every: Iterations between validations.
        engine: Does the work; it changes nothing in the result.

    Yields:
        What happened in the iteration.
    """
    policy = learner.policy
    update = learner.update
    best = learner.best
    check_compatible(policy, simulator, expert)
    collect = RolloutCollector(simulator, expert, oracle, engine)
    if validate is None:
        episodes = derive_seeds(seed, SeedPurpose.VALIDATION, 0, validation_episodes)
        validate = EpisodeEvaluator(simulator, episodes, engine)
    if learner.n == 0:
        learner.update_best(validate(policy), n=0)                              # line 2: π_θ₁ is a candidate
    while True:                                                                 # line 3: for n = 1 to N
        n = learner.n + 1
        roll_in_policy = RollInPolicy(expert, policy.actor(), alpha(n), n)      # line 4: α_n π* + (1−α_n) π_θ
        seeds = derive_seeds(seed, SeedPurpose.ROLL_IN, n, k)                   # one for each of the K trajectories
        # Line 5: roll in with π̂_n to collect K trajectories; line 6: query the expert for Q* at the states visited.
        # One job does both for a part of the seeds, since the states, which only the oracle needs, stay in its worker.
        trajectories, cost_to_go = collect(roll_in_policy, seeds, policy)
        step = update(policy, loss, trajectories, cost_to_go)                   # line 7: θ_n − η_n δ_θ
        if n % validate_every == 0:
            learner.update_best(validate(policy), n)                            # line 9: the best on validation
        learner.n = n
        learner.simulator_steps += trajectories.simulator_steps + cost_to_go.simulator_steps
        learner.oracle_steps += cost_to_go.simulator_steps
        learner.oracle_queries += cost_to_go.queries
        learner.diverged_trajectories += trajectories.diverged + cost_to_go.diverged
        yield Iteration(n, float(trajectories.returns.mean()), best.latest_return, best.best_return, step)
# fmt: on
