"""LOKI: AggreVaTeD before the switch and reinforcement learning after it, bit for bit; sampling of the switch."""

from itertools import islice

import numpy as np
import pytest

from aggrevated.algorithm import Learner, aggrevated
from aggrevated.config.builder import build_oracle
from aggrevated.config.resolver import resolve_config
from aggrevated.core.errors import UsageError
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles import iter_stateful
from aggrevated.oracles.advantage import AdvantageOracle, TakenActionOracle
from aggrevated.oracles.critic import CriticOracle
from aggrevated.oracles.loki import LokiOracle, sample_switch_iteration
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.oracles.reward_to_go import RewardToGoOracle
from aggrevated.updates.natural import NaturalUpdate
from aggrevated.updates.regular import RegularUpdate
from helpers.tiny_mdp import TinyExpert, TinyMdp, flat, linear_policy

IMITATION = TakenActionOracle(AdvantageOracle(QStarOracle(TinyExpert())))
REINFORCEMENT = AdvantageOracle(RewardToGoOracle())


def weights_of_iterations(learner: Learner, oracle, iterations: int) -> list[np.ndarray]:
    """Return θ after each of the next `iterations`."""
    loop = aggrevated(learner, TinyMdp(), TinyExpert(), oracle, taken_action_loss, k=20, validation_episodes=16)
    return [flat(learner.policy) for _ in islice(loop, iterations)]


@pytest.mark.parametrize(
    "update", [lambda: RegularUpdate(0.05), lambda: NaturalUpdate(1e-2, 0.1)], ids=["regular", "natural"]
)
@pytest.mark.parametrize("make_reinforcement", [lambda: REINFORCEMENT, CriticOracle], ids=["reward-to-go", "critic"])
def test_loki_imitates_before_switch_and_reinforces_after_it(update, make_reinforcement):
    """The critic is trained on all trajectories before the switch and continues from there."""
    loki, other = (Learner(linear_policy(None).float(), update()) for _ in range(2))
    actual = weights_of_iterations(loki, LokiOracle(IMITATION, make_reinforcement(), switch=3), 6)
    reinforcement = make_reinforcement()
    np.testing.assert_array_equal(
        actual[:3], weights_of_iterations(other, LokiOracle(IMITATION, reinforcement, switch=99), 3)
    )
    np.testing.assert_array_equal(
        actual[:3], weights_of_iterations(Learner(linear_policy(None).float(), update()), IMITATION, 3)
    )
    assert loki.oracle_queries == other.oracle_queries > 0  # the expert is not queried after the switch
    np.testing.assert_array_equal(actual[3:], weights_of_iterations(other, reinforcement, 3))
    assert not np.array_equal(actual[2], actual[3])


def test_loki_oracle_trains_critic_before_switch():
    critic = CriticOracle()
    learner = Learner(linear_policy(None).float(), RegularUpdate(0.05))
    loki = LokiOracle(IMITATION, critic, switch=3)
    assert dict(iter_stateful(loki)) == {"oracle.reinforcement": critic} and not critic.state()
    weights_of_iterations(learner, loki, 1)
    assert critic.state()


@pytest.mark.parametrize(("minimum", "maximum", "power"), [(3, 6, 3.0), (2, 4, 0.0), (1, 5, 1.0)])
def test_sample_switch_iteration_follows_power_law(minimum, maximum, power):
    drawn = np.array([sample_switch_iteration(minimum, maximum, power, seed) for seed in range(3000)])
    n = np.arange(minimum, maximum + 1)
    probability = n**power / (n**power).sum()
    share = np.array([(drawn == one).mean() for one in n])
    assert share.sum() == 1
    assert (np.abs(share - probability) < 4 * np.sqrt(probability * (1 - probability) / 3000)).all(), (
        share,
        probability,
    )


def test_sample_switch_iteration_depends_on_seed_only():
    assert {sample_switch_iteration(7, 7, 3.0, seed) for seed in range(20)} == {7}
    assert len({sample_switch_iteration(10, 20, 3.0, 5) for _ in range(5)}) == 1
    assert 1 <= sample_switch_iteration(1, 10**6, 60.0, 0) <= 10**6  # no overflow


def test_loki_settings_fill_in_missing_switch_bounds():
    def bounds(**given):
        actual = resolve_config("cartpole", "loki", **given).reinforcement
        return actual.imitation_min, actual.imitation_max

    assert bounds(iterations=40) == (2, 4) and bounds(iterations=1) == (1, 1) and bounds(iterations=900) == (5, 10)
    assert bounds(imitation_min=8) == (8, 16) and bounds(imitation_max=9) == (5, 9)
    assert bounds(imitation_min=9, imitation_max=9) == (9, 9)
    with pytest.raises(UsageError, match="--imitation-min is 3, but must be between 1 and --imitation-max, which"):
        bounds(imitation_min=3, imitation_max=2)


def test_build_oracle_combines_imitation_oracle_and_critic_for_loki():
    config = resolve_config("cartpole", "loki", update="natural", imitation_min=4, imitation_max=4)
    oracle = build_oracle(config)
    assert isinstance(oracle, LokiOracle) and oracle.switch == 4
    assert isinstance(oracle.imitation, TakenActionOracle) and oracle.reinforcement == CriticOracle()
    assert isinstance(
        build_oracle(resolve_config("cartpole", reinforcement="reward-to-go")), LokiOracle
    )  # AggreVaTeD with reinforcement is LOKI
    assert build_oracle(resolve_config("cartpole", oracle="monte-carlo", method="loki")).imitation.expert
