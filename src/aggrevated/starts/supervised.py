"""Supervised learning from the expert's own episodes, as the paper starts on Hopper and Walker."""

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
    """Maximise the likelihood of the expert's actions in its own episodes; (simulator steps, queries) it took.

    `steps` are minibatches, and the learning rate falls to 0. A Gaussian's deviation stays what it was: the likelihood
    of an expert without chance would make it vanish, and with it all exploration.
    """
    check_compatible(policy, simulator, expert)
    chosen = derive_seeds(seed, SeedPurpose.DEMONSTRATION, 0, demonstrations)
    episodes = roll_in(simulator, RollInPolicy(expert, None, alpha=1.0), chosen)
    costs = make_zero_one_oracle(expert, simulator.action_space)(episodes)
    deviations = {name: w.clone() for name, w in policy.state_dict().items() if name.endswith("log_deviation")}
    minibatch = min(MAX_MINIBATCH_SIZE, max(1, demonstrations // 10))
    fit = FollowTheLeaderUpdate(learning_rate, steps, minibatch, demonstrations, anneal=True, seed=seed)
    fit(policy, best_action_nll_loss, episodes, costs)
    policy.load_state_dict(deviations, strict=False)
    return episodes.simulator_steps, costs.queries


@dataclass(frozen=True)
class SupervisedStartSettings(StartSettings):
    """Demonstrations of the expert first."""

    name = "supervised"
    start_steps: int = setting(500, "Minibatches of the supervised start.", at_least(1))
    start_learning_rate: float = setting(0.01, "Its learning rate at first; it falls to 0.", POSITIVE)
    demonstrations: int = setting(0, "How many episodes of the expert it learns from; 0: K.", COUNT)

    def begin(self, policy: Policy, simulator: Simulator, expert: Expert, seed: int, k: int) -> tuple[int, int]:
        episodes = self.demonstrations or k
        return pretrain_policy(policy, simulator, expert, episodes, self.start_steps, self.start_learning_rate, seed)

    @property
    def notice(self) -> str:
        return f"supervised start: {self.start_steps} minibatches of the expert's episodes, then the iterations"
