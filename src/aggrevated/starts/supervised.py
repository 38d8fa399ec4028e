"""The supervised start: learning from the expert's episodes, as in the paper on Hopper and Walker."""

from dataclasses import dataclass

from aggrevated.compatibility import check_compatible
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.core.settings import COUNT, POSITIVE, at_least, setting
from aggrevated.experts import Expert
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.oracles.zero_one import make_zero_one_oracle
from aggrevated.policies import Policy
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import Simulator
from aggrevated.starts import StartSettings
from aggrevated.updates.follow_the_leader import FollowTheLeaderUpdate

MAX_MINIBATCH_SIZE = 16  # demonstrations


def pretrain_policy(
    policy: Policy,
    simulator: Simulator,
    expert: Expert,
    demonstrations: int,
    steps: int,
    learning_rate: float = 0.01,
    seed: int = 0,
) -> tuple[int, int]:
    """Maximize the likelihood of the expert's actions in its own episodes, in place.

    The deviation of a Gaussian policy is not learned. The likelihood of a deterministic expert would shrink
    it to 0, and end all exploration.

    Args:
        policy: the policy.
        simulator: the simulator that the learner observes.
        expert: π*.
        demonstrations: number of episodes of the expert.
        steps: number of minibatches.
        learning_rate: initial learning rate, which falls to 0.
        seed: seed of the episodes and of the minibatches.

    Returns:
        (simulator steps, expert queries) that it took.

    Raises:
        UsageError: policy, simulator and expert do not fit each other.
    """
    check_compatible(policy, simulator, expert)
    seeds = derive_seeds(seed, SeedPurpose.DEMONSTRATION, 0, demonstrations)
    episodes = roll_in(simulator, RollInPolicy(expert, None, alpha=1.0), seeds)
    costs = make_zero_one_oracle(expert, simulator.action_space)(episodes)
    deviations = {name: w.clone() for name, w in policy.state_dict().items() if name.endswith("log_deviation")}
    minibatch = min(MAX_MINIBATCH_SIZE, max(1, demonstrations // 10))
    fit = FollowTheLeaderUpdate(learning_rate, steps, minibatch, demonstrations, anneal=True, seed=seed)
    fit(policy, best_action_nll_loss, episodes, costs)
    policy.load_state_dict(deviations, strict=False)
    return episodes.simulator_steps, costs.queries


@dataclass(frozen=True)
class SupervisedStartSettings(StartSettings):
    """Settings of the supervised start.

    Args:
        start_steps: number of minibatches.
        start_learning_rate: initial learning rate, which falls to 0.
        demonstrations: number of episodes of the expert; 0: K.
    """

    name = "supervised"
    start_steps: int = setting(500, "Number of minibatches of the supervised start.", at_least(1))
    start_learning_rate: float = setting(
        0.01, "Initial learning rate of the supervised start, which falls to 0.", POSITIVE
    )
    demonstrations: int = setting(0, "Number of episodes of the expert for the supervised start; 0: K.", COUNT)

    def begin(self, policy: Policy, simulator: Simulator, expert: Expert, seed: int, k: int) -> tuple[int, int]:
        episodes = self.demonstrations or k
        return pretrain_policy(policy, simulator, expert, episodes, self.start_steps, self.start_learning_rate, seed)

    @property
    def notice(self) -> str:
        """Message on the number of minibatches before the first iteration."""
        return f"supervised start: {self.start_steps} minibatches of the expert's episodes, then the iterations"
