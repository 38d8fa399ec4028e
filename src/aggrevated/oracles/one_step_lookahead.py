"""Q* of every action of a finite set from the expert's critic: each is taken once in the simulator, then V* stands."""

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
    """c(s_t, a) + γ V*(s′) for every legal a, [K, T, A], of others 0: one simulator step for each.

    V* is 0 where an action ends the episode, and after the last step before the horizon. All actions of a state are
    taken from one snapshot, and so with the same luck.
    """

    simulator: Simulator
    expert: StateValueExpert
    is_per_trajectory: ClassVar[bool] = True
    all_actions: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_expert_has(self.expert, "v")

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        assert isinstance(self.simulator.action_space, Discrete), "there are infinitely many actions"
        k, t = np.nonzero(trajectories.mask)
        allowed = np.ones((len(k), int(self.simulator.action_space.n)), bool)
        if trajectories.action_mask.shape[2]:
            allowed = trajectories.action_mask[k, t]
        row, action = np.nonzero(allowed)
        simulated = -count_replayed_steps(self.simulator)
        with add_error_position(trajectories.seeds[k[row]]):
            ahead = self._compute_lookahead_costs(trajectories.states[k, t][row], action, t[row])
        simulated += len(row) + count_replayed_steps(self.simulator)
        q = np.zeros(allowed.shape)
        q[row, action] = ahead
        sound: Array = np.asarray(np.isfinite(q).all(axis=1))  # else the simulation diverged
        values = np.zeros((*trajectories.mask.shape, q.shape[1]), np.float32)
        known = trajectories.mask.copy()
        values[k, t] = np.where(sound[:, None], q, 0.0)
        known[k, t] = sound
        weight, lost = query_weights(include_expert_steps(trajectories), known)
        return CostToGo(values, weight, len(k), simulated, int((~sound).sum()), lost)

    def _compute_lookahead_costs(self, states: Array, actions: Array, times: Array) -> Array:
        """[n] what it costs to take these actions and then to be where they lead; NaN where that diverged."""
        following, costs, done = step_and_check(self.simulator, states, actions)
        on = np.flatnonzero(~done & (times + 1 < self.simulator.horizon))
        q = np.where(np.isfinite(costs), costs, np.nan).astype(np.float64)
        if len(on):
            with add_error_position(rows=on):
                q[on] += get_discount(self.expert) * query_state_values(self.expert, following[on])
        return q
