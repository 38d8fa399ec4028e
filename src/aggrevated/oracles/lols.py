"""Q of a mixture of expert and learner: restore s_t, take an action, then roll out π* or the learner.

If π* makes a fraction β of the roll-outs, this is LOLS (Chang et al. 2015). If π* takes a fraction α_n of the
steps, as in the roll-in, it is SEARN (Daumé, Langford and Marcu 2009). Both suit a learner that cannot become
as good as π*.
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
    """Oracle of Q(s_t, a) for every action, [K, T, A], or the action taken, [K, T], followed by π* or π_n.

    All roll-outs from s_t share their initial snapshot, their policy, and the noise of simulator and learner,
    so that these cancel in differences. The advantage is relative to the cheapest action or, for the action
    taken, to a roll-out from s_t without it.

    Args:
        simulator: simulator that the roll-outs step.
        expert: π*.
        beta: fraction of roll-outs that follow π*; None: π* takes a fraction α_n of the steps, as in the
            roll-in.
        steps: M, number of queried steps per trajectory; None: all.
        advantage: return advantages instead of Q.
        all_actions: query all actions of a discrete set, not only the action taken.
    """

    simulator: Simulator
    expert: Expert
    beta: float | None
    steps: int | None = None
    advantage: bool = True
    all_actions: bool = True

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        assert policy is not None, "LolsOracle rolls the learner out; pass the policy"
        queryable = include_expert_steps(trajectories) if self.all_actions else trajectories
        k, t = np.nonzero(sample_query_steps(queryable, self.steps))
        queries = self._make_queries(trajectories, policy, k, t)
        if self.all_actions:
            q, simulated = queries.query_all_actions(trajectories.action_mask[k, t], self.simulator.action_space)
        else:
            q, simulated = queries.query_taken_action(trajectories.actions[k, t], self.advantage)
        is_finite = np.isfinite(q).all(axis=tuple(range(1, q.ndim)))  # else a simulation diverged
        shape = trajectories.mask.shape
        values = np.zeros((*shape, *q.shape[1:]), np.float32)
        known = np.zeros(shape, bool)
        values[k[is_finite], t[is_finite]] = q[is_finite]
        known[k, t] = is_finite
        if self.all_actions and self.advantage:
            values -= min_cost(values, trajectories.action_mask)
        weight, lost = query_weights(queryable, known)
        return CostToGo(values, weight, len(k), simulated, int((~is_finite).sum()), lost)

    def _make_queries(self, trajectories: Trajectories, policy: Policy, k: Array, t: Array) -> RolloutQueries:
        """Return the queries at the states [k, t]."""
        actor = policy.actor()
        mixture = RollInPolicy(self.expert, actor, trajectories.alpha if self.beta is None else self.beta)
        horizon = self.simulator.horizon
        memory = replay_hidden_states(actor, trajectories)
        _, noise, by_expert = mixture.start(trajectories.seeds, horizon, False, RandomStream.ROLL_OUTS)
        is_lols = self.beta is not None  # one policy makes the whole roll-out
        by_expert = np.broadcast_to(by_expert[t, k], (horizon, len(k))) if is_lols else by_expert[:, k]
        states = trajectories.states[k, t]
        return RolloutQueries(self.simulator, mixture, states, t, memory[k, t], noise, k, by_expert)


@dataclass(frozen=True)
class RolloutQueries:
    """Q queried states, and the noise that all roll-outs from a state share."""

    simulator: Simulator
    mixture: RollInPolicy
    states: Array  # [Q, ...]
    times: Array  # [Q]
    memory: Array  # [Q, M]: the learner's memory before it observes the states
    noise: Array  # [H, K, A]: the learner's noise in each trajectory
    trajectory: Array  # [Q]: index k of the state's trajectory
    by_expert: Array  # [H, Q]: whether π* acts

    def query_taken_action(self, actions: Array, advantage: bool) -> tuple[Array, int]:
        """Return (costs of the actions [Q], simulator steps), relative to V for advantages."""
        rows = np.arange(len(self.states))
        q, simulated = self.query_cost(rows, actions)
        if not advantage:
            return q, simulated
        v, steps = self.query_cost(rows)
        return q - v, simulated + steps

    def query_all_actions(self, legal: Array, space: object) -> tuple[Array, int]:
        """Return (costs [Q, A], simulator steps); illegal actions are not rolled out and cost 0."""
        assert isinstance(space, Discrete), "vector actions cannot be enumerated; use all_actions=False"
        q = np.zeros((len(self.states), int(space.n)))
        simulated = 0
        for action in range(q.shape[1]):
            rows = np.flatnonzero(legal[:, action]) if legal.shape[1] else np.arange(len(q))
            q[rows, action], steps = self.query_cost(rows, np.full(len(rows), action))
            simulated += steps
        return q, simulated

    def query_cost(self, rows: Array, first: Array | None = None) -> tuple[Array, int]:
        """Return (costs [n], simulator steps) of `first` in the states at `rows`, then of the mixture."""
        memory = self.memory[rows]
        masked = find_action_mask(self.simulator)

        def act(episodes: Array, state: Array, t: int) -> Array:
            queries = rows[episodes]
            observation = observe_and_check(self.simulator, state)
            legal = masked.action_mask(state) if masked else None
            noise = self.noise[t, self.trajectory[queries]]
            by_expert = self.by_expert[t, queries]
            action, memory[episodes] = self.mixture.act(
                state, observation, legal, memory[episodes], noise, by_expert, t, self.simulator.action_space
            )
            started = episodes[self.times[queries] == t]
            if first is not None and len(started):  # `first` is taken instead, and may be observed
                assert self.mixture.learner is not None
                memory[started] = update_history(self.mixture.learner, memory[started], first[started])
            return action

        return rollout_cost(self.simulator, act, self.states[rows], self.times[rows], first)


@dataclass(frozen=True)
class LolsSettings(CostOracleSettings):
    """Q from roll-outs that follow the expert, or the learner in the others."""

    name = "lols"
    query_steps: int = setting(10, "M: number of steps per trajectory that are queried; 0: all.", COUNT)
    rollout_beta: float = setting(0.5, "beta of LOLS: fraction of the roll-outs by the expert.", UNIT_INTERVAL)
    all_actions: bool = setting(True, "Roll out every discrete action, not only the action taken.")

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.ALL_ACTIONS if finite and self.all_actions else Feedback.TAKEN_ACTION

    def max_steps(self, horizon: int, actions: int | None) -> int:
        rollouts = actions if actions is not None and self.all_actions else 1 + self.advantage
        return max_rollout_steps(horizon, self.query_steps, rollouts)

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        all_actions = self.get_feedback(isinstance(simulator.action_space, Discrete)) is Feedback.ALL_ACTIONS
        steps = self.query_steps or None
        return LolsOracle(simulator, expert, self.rollout_beta, steps, self.advantage, all_actions)


@dataclass(frozen=True)
class SearnOracleSettings(CostOracleSettings):
    """Q of every action from roll-outs of the same mixture of expert and learner as the roll-in."""

    name = "searn"
    query_steps: int = setting(50, "M: number of steps per trajectory that are queried; 0: all.", COUNT)

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.ALL_ACTIONS if finite else Feedback.TAKEN_ACTION

    def max_steps(self, horizon: int, actions: int | None) -> int:
        return max_rollout_steps(horizon, self.query_steps, actions or 1 + self.advantage)

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        all_actions = isinstance(simulator.action_space, Discrete)
        return LolsOracle(simulator, expert, None, self.query_steps or None, self.advantage, all_actions)
