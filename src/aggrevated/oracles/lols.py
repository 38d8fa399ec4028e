"""Q of a mixture, by rolling it out: restore s_t, take an action, go on with π* or with the learner itself.

With π* in a share β of the roll-outs it is LOLS (Chang et al. 2015), with π* in a share α_n of the steps, as in the
roll-in, SEARN (Daumé, Langford and Marcu 2009). Neither lets a learner that cannot be as good as π* rely on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from gymnasium.spaces import Discrete

from aggrevated.actors.window import update_history
from aggrevated.core.arrays import Array
from aggrevated.core.rng import RandomStream
from aggrevated.core.settings import COUNT, UNIT_INTERVAL, setting
from aggrevated.experts import Expert
from aggrevated.oracles import CostOracleSettings, CostToGo, Feedback, Oracle, max_rollout_steps
from aggrevated.oracles.advantage import min_cost
from aggrevated.oracles.monte_carlo import include_expert_steps, query_weights, rollout_cost, sample_query_steps
from aggrevated.rollout.roll_in import RollInPolicy, replay_hidden_states
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator, find_action_mask
from aggrevated.simulators.checked import observe_and_check

if TYPE_CHECKING:
    from aggrevated.policies import Policy


@dataclass(frozen=True)
class LolsOracle:
    """Q(s_t, a) of every action, [K, T, A], or of the one taken, [K, T], when π* or π_n goes on.

    All roll-outs from s_t begin at one snapshot and share who goes on, their luck and the learner's noise, so that
    these cancel in a difference. With `advantage` the cheapest action is subtracted, or, where only the action taken
    is asked about, what it costs to go on from s_t at once.
    """

    simulator: Simulator
    expert: Expert
    beta: float | None  # the share of roll-outs that π* makes; None: of every step the share α_n, as in the roll-in
    steps: int | None = None  # M: how many steps of each trajectory are asked about; None: all
    advantage: bool = True
    all_actions: bool = True  # of a finite set

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        assert policy is not None, "this oracle rolls the learner out; give it the policy"
        open_to = include_expert_steps(trajectories) if self.all_actions else trajectories
        k, t = np.nonzero(sample_query_steps(open_to, self.steps))
        roll_outs = self._roll_outs(trajectories, policy, k, t)
        if self.all_actions:
            q, simulated = roll_outs.query_all_actions(trajectories.action_mask[k, t], self.simulator.action_space)
        else:
            q, simulated = roll_outs.query_taken_action(trajectories.actions[k, t], self.advantage)
        fine = np.isfinite(q).all(axis=tuple(range(1, q.ndim)))  # else a simulation diverged
        shape = trajectories.mask.shape
        values = np.zeros((*shape, *q.shape[1:]), np.float32)
        known = np.zeros(shape, bool)
        values[k[fine], t[fine]] = q[fine]
        known[k, t] = fine
        if self.all_actions and self.advantage:
            values -= min_cost(values, trajectories.action_mask)
        weight, lost = query_weights(open_to, known)
        return CostToGo(values, weight, len(k), simulated, int((~fine).sum()), lost)

    def _roll_outs(self, trajectories: Trajectories, policy: Policy, k: Array, t: Array) -> RolloutQueries:
        """Those from the states at [k, t]."""
        actor = policy.actor()
        mixture = RollInPolicy(self.expert, actor, trajectories.alpha if self.beta is None else self.beta)
        horizon = self.simulator.horizon
        before = replay_hidden_states(actor, trajectories)
        _, noise, by_expert = mixture.start(trajectories.seeds, horizon, False, RandomStream.ROLL_OUTS)
        one_coin = self.beta is not None  # whoever goes on does so to the end
        by_expert = np.broadcast_to(by_expert[t, k], (horizon, len(k))) if one_coin else by_expert[:, k]
        return RolloutQueries(self.simulator, mixture, trajectories.states[k, t], t, before[k, t], noise, k, by_expert)


@dataclass(frozen=True)
class RolloutQueries:
    """Q states to begin at, and all that is random on the way: the same however often one begins."""

    simulator: Simulator
    mixture: RollInPolicy
    states: Array  # [Q, ...]
    times: Array  # [Q]
    memory: Array  # [Q, M]: of the learner, before it sees the states
    noise: Array  # [H, K, A]: the learner's, of each trajectory
    trajectory: Array  # [Q]: which it is of
    by_expert: Array  # [H, Q]

    def query_taken_action(self, actions: Array, advantage: bool) -> tuple[Array, int]:
        """([Q] the cost of these actions, all the steps), less what it costs to go on at once."""
        everyone = np.arange(len(self.states))
        q, simulated = self.query_cost(everyone, actions)
        if not advantage:
            return q, simulated
        v, steps = self.query_cost(everyone)
        return q - v, simulated + steps

    def query_all_actions(self, legal: Array, space: object) -> tuple[Array, int]:
        """([Q, A] the cost of every legal action, all the steps); of others 0, and they are not tried."""
        assert isinstance(space, Discrete), "there are infinitely many actions; ask about the one taken"
        q = np.zeros((len(self.states), int(space.n)))
        simulated = 0
        for action in range(q.shape[1]):
            rows = np.flatnonzero(legal[:, action]) if legal.shape[1] else np.arange(len(q))
            q[rows, action], steps = self.query_cost(rows, np.full(len(rows), action))
            simulated += steps
        return q, simulated

    def query_cost(self, rows: Array, first: Array | None = None) -> tuple[Array, int]:
        """([n] what it costs to take `first` in the states of these rows and then go on, all the steps)."""
        memory = self.memory[rows]
        rules = find_action_mask(self.simulator)

        def act(lanes: Array, state: Array, t: int) -> Array:
            own = rows[lanes]
            shown = observe_and_check(self.simulator, state)
            legal = rules.action_mask(state) if rules else None
            noise = self.noise[t, self.trajectory[own]]
            action, memory[lanes] = self.mixture.act(
                state, shown, legal, memory[lanes], noise, self.by_expert[t, own], t, self.simulator.action_space
            )
            begun = lanes[self.times[own] == t]
            if first is not None and len(begun):  # `first` is taken instead, and may be seen
                assert self.mixture.learner is not None
                memory[begun] = update_history(self.mixture.learner, memory[begun], first[begun])
            return action

        return rollout_cost(self.simulator, act, self.states[rows], self.times[rows], first)


@dataclass(frozen=True)
class LolsSettings(CostOracleSettings):
    """Q by rolling out the expert in some roll-outs, and the learner itself in the others."""

    name = "lols"
    query_steps: int = setting(10, "M: of each trajectory, how many steps the roll-outs begin at; 0: all.", COUNT)
    rollout_beta: float = setting(0.5, "beta of LOLS: the share of roll-outs that the expert makes.", UNIT_INTERVAL)
    all_actions: bool = setting(True, "Roll out every action of a finite set, not only the one taken.")

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.ALL_ACTIONS if finite and self.all_actions else Feedback.TAKEN_ACTION

    def max_steps(self, horizon: int, actions: int | None) -> int:
        every = actions if actions is not None and self.all_actions else 1 + self.advantage
        return max_rollout_steps(horizon, self.query_steps, every)

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        every = self.get_feedback(isinstance(simulator.action_space, Discrete)) is Feedback.ALL_ACTIONS
        return LolsOracle(simulator, expert, self.rollout_beta, self.query_steps or None, self.advantage, every)


@dataclass(frozen=True)
class SearnOracleSettings(CostOracleSettings):
    """Q of every action by rolling out the very mixture of expert and learner that rolled in."""

    name = "searn"
    query_steps: int = setting(50, "M: of each trajectory, how many steps the roll-outs begin at; 0: all.", COUNT)

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.ALL_ACTIONS if finite else Feedback.TAKEN_ACTION

    def max_steps(self, horizon: int, actions: int | None) -> int:
        return max_rollout_steps(horizon, self.query_steps, actions or 1 + self.advantage)

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        every = isinstance(simulator.action_space, Discrete)
        return LolsOracle(simulator, expert, None, self.query_steps or None, self.advantage, every)
