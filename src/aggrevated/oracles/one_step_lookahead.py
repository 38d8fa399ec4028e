"""Q* of every discrete action from the expert's critic: one simulator step per action, then V*."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from gymnasium.spaces import Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.user_code import add_error_position
from aggrevated.experts import StateValueExpert, get_discount
from aggrevated.experts.checked import query_state_values
from aggrevated.oracles import CostToGo, check_expert_has
from aggrevated.oracles.monte_carlo import include_expert_steps, query_weights
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator, count_replayed_steps
from aggrevated.simulators.checked import step_and_check

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class LookaheadOracle:
    """Oracle of c(s_t, a) + γ V*(s′) for every legal action, [K, T, A], from one simulator step each.

    The values of illegal actions are 0.
    V* is 0 where an action ends the episode, and after the last step before the horizon. All actions of a
    state start from one snapshot with the same random numbers.

    Args:
        simulator: simulator with discrete actions.
        expert: expert with V*.
    """

    simulator: Simulator
    expert: StateValueExpert
    is_per_trajectory: ClassVar[bool] = True
    all_actions: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_expert_has(self.expert, "v")

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        assert isinstance(self.simulator.action_space, Discrete), "vector actions cannot be enumerated"
        k, t = np.nonzero(trajectories.mask)
        legal = np.ones((len(k), int(self.simulator.action_space.n)), bool)
        if trajectories.action_mask.shape[2]:
            legal = trajectories.action_mask[k, t]
        row, action = np.nonzero(legal)
        simulated = -count_replayed_steps(self.simulator)
        with add_error_position(trajectories.seeds[k[row]]):
            costs = self._compute_lookahead_costs(trajectories.states[k, t][row], action, t[row])
        simulated += len(row) + count_replayed_steps(self.simulator)
        q = np.zeros(legal.shape)
        q[row, action] = costs
        is_finite: Array = np.asarray(np.isfinite(q).all(axis=1))  # else the simulation diverged
        values = np.zeros((*trajectories.mask.shape, q.shape[1]), np.float32)
        known = trajectories.mask.copy()
        values[k, t] = np.where(is_finite[:, None], q, 0.0)
        known[k, t] = is_finite
        weight, lost = query_weights(include_expert_steps(trajectories), known)
        return CostToGo(values, weight, len(k), simulated, int((~is_finite).sum()), lost)

    def _compute_lookahead_costs(self, states: Array, actions: Array, times: Array) -> Array:
        """Return c + γ V*(s′) [n] of the actions; NaN where the simulation diverged."""
        following, costs, done = step_and_check(self.simulator, states, actions)
        live = np.flatnonzero(~done & (times + 1 < self.simulator.horizon))
        q = np.where(np.isfinite(costs), costs, np.nan).astype(np.float64)
        if len(live):
            with add_error_position(rows=live):
                q[live] += get_discount(self.expert) * query_state_values(self.expert, following[live])
        return q
