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
    """The state of a training: everything that changes while learning, and that a checkpoint holds.

    Attributes:
        policy: π_θ; the update changes its parameters in place.
        update: The rule for line 7.
        best: The best policy so far, by its score on validation.
        n: Iterations done.
        simulator_steps: Simulator steps of start, roll-ins and oracle, without those of the validation.
        start_simulator_steps: The part of `simulator_steps` that was taken before iteration 1.
        oracle_steps: The part of `simulator_steps` that the oracle took.
        validation_steps: Simulator steps of the validation, if it counts them.
        oracle_queries: States at which the oracle was evaluated.
        diverged_trajectories: Roll-ins and rollouts of the oracle that diverged and were left out.
        diverged_validation_episodes: Validation episodes that diverged and were left out.
    """

    policy: Policy
    update: Update
    best: BestPolicy = field(default_factory=BestPolicy)
    n: int = 0
    simulator_steps: int = 0
    start_simulator_steps: int = 0
    oracle_steps: int = 0
    validation_steps: int = 0
    oracle_queries: int = 0
    diverged_trajectories: int = 0
    diverged_validation_episodes: int = 0

    def update_best(self, score: ValidationScore | float, n: int) -> None:
        """Copy π_θ as the best policy if its score is the highest so far, and count the validation's steps.

        Args:
            score: The result of the validation; a plain number is a score that took no simulator steps.
            n: Iteration after which the policy was validated; 0 for the initial policy.
        """
        score = as_validation_score(score)
        self.best.update_best(self.policy, score.value, n)
        self.validation_steps += score.steps
        self.diverged_validation_episodes += score.diverged


@dataclass(frozen=True)
class Iteration:
    """The result of one iteration of Algorithm 1.

    Attributes:
        n: Number of the iteration; the first is 1.
        roll_in_return: Mean return of π̂_n on the K roll-ins.
        current_return: Validation score of π_{n+1}, or of the last policy validated before it.
        best_return: Validation score of the best policy so far.
        step: The result of the update.
    """

    n: int
    roll_in_return: float
    current_return: float
    best_return: float
    step: UpdateResult


# fmt: off
def aggrevated(
    learner: Learner, simulator: Simulator, expert: Expert | None, oracle: Oracle, loss: Loss,
    *, seed: int = 0, k: int = 50, alpha: Schedule = ZERO_SCHEDULE, validation_episodes: int = 200,
    validate: Validator | None = None, validate_every: int = 1, engine: Engine = IN_PROCESS,
) -> Iterator[Iteration]:
    """Train the learner by Algorithm 1, one iteration each time the caller asks for the next.

    Other oracles, losses and updates make it DAgger or reinforcement learning (`aggrevated.methods`).

    Args:
        learner: Policy and update; training continues after the iterations that the learner has done.
        simulator: The simulator in which the policy acts.
        expert: π*, for the roll-in policy; None is allowed if `alpha` is 0.
        oracle: Returns the cost-to-go at the visited states.
        loss: ℓ_n, a function of policy, trajectories and cost-to-go.
        seed: Determines every random number, together with the iteration.
        k: K, the number of trajectories per iteration.
        alpha: α_n, the fraction of roll-in steps that the expert takes.
        validation_episodes: Number of episodes that select the best policy, unless `validate` is given.
        validate: Returns the score of a policy; by default the mean return on `validation_episodes` episodes.
        validate_every: Iterations between validations.
        engine: Runs the jobs; results do not depend on it.

    Yields:
        The result of each iteration.

    Raises:
        UsageError: Policy, simulator and expert do not fit together.

    Example:
        >>> import numpy as np
        >>> from aggrevated import CategoricalHead, FeedForwardPolicy, NaturalUpdate, QStarOracle
        >>> from aggrevated import TabularExpert, TabularSimulator, all_actions_loss
        >>> simulator = TabularSimulator(np.full((2, 2, 2), 0.5), np.eye(2), np.array([0.5, 0.5]), horizon=3)
        >>> expert = TabularExpert(simulator)
        >>> learner = Learner(FeedForwardPolicy(6, CategoricalHead(2)), NaturalUpdate())
        >>> loop = aggrevated(learner, simulator, expert, QStarOracle(expert), all_actions_loss, k=10)
        >>> next(loop).n, next(loop).n
        (1, 2)
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
        # Line 5: roll in with π̂_n to collect K trajectories; line 6: query for Q* at the visited states.
        # One job does both for a block of seeds: only the oracle needs the states, so they stay in the worker.
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
