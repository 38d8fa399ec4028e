"""Q* by rolling the expert out: restore s_t, take an action, follow π* to the horizon. For experts that only act."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from gymnasium.spaces import Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.core.rng import RandomStream, make_generator
from aggrevated.core.settings import COUNT, at_least, setting
from aggrevated.core.user_code import add_error_position
from aggrevated.experts import Expert
from aggrevated.experts.checked import query_actions
from aggrevated.oracles import CostOracleSettings, CostToGo, Feedback, Oracle, max_rollout_steps
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator, count_replayed_steps, find_reseedable, max_batch_size
from aggrevated.simulators.checked import step_and_check

if TYPE_CHECKING:
    from aggrevated.policies import Policy

Act: TypeAlias = Callable[[Array, Array, int], Array]  # from lanes [n], their states [n, ...] and t to actions


@dataclass(frozen=True)
class MonteCarloOracle:
    """Q*(s_t, a_t), [K, T]; with `advantage` A* = Q* − V*, where V*(s_t) is π*'s own action rolled out likewise.

    With `all_actions` it is that of all actions of a finite set, [K, T, A]. All roll-outs of a question start from one
    snapshot and so meet the same luck, which cancels in the difference: a control variate. Asking about `steps` of a
    trajectory's T steps, drawn at random, and counting each T/steps-fold leaves the gradient unbiased and saves
    simulator steps.
    """

    simulator: Simulator
    expert: Expert
    steps: int | None = None  # M: how many steps of each trajectory are asked about; None: all
    rollouts: int = 1  # per question, each with its own luck
    advantage: bool = True
    all_actions: bool = False  # of a finite set
    is_per_trajectory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.rollouts < 1 or (self.steps is not None and self.steps < 1):
            raise UsageError(
                f"{self.rollouts} roll-outs at {self.steps} steps of a trajectory tell nothing; give 1 or more, "
                "or steps=None for all"
            )
        if self.rollouts > 1 and find_reseedable(self.simulator) is None:
            raise UsageError(
                f"nothing in {self.simulator.name} is left to chance, so a second roll-out would repeat the first; "
                "use one roll-out per query"
            )

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None) -> CostToGo:
        open_to = include_expert_steps(trajectories) if self.all_actions else trajectories
        k, t = np.nonzero(sample_query_steps(open_to, self.steps))
        states = trajectories.states[k, t]
        total = np.zeros((len(k), 1))
        sound = np.zeros(len(k), int)
        simulated = 0
        for rollout in range(self.rollouts):
            start = states if rollout == 0 else self._reseed_states(states, trajectories.seeds[k], t, rollout)
            with add_error_position(trajectories.seeds[k]):
                if self.all_actions:
                    q, steps = self._query_all_actions(start, t, trajectories.action_mask[k, t])
                else:
                    q, steps = self._query_taken_action(start, t, trajectories.actions[k, t])
            fine = np.asarray(np.isfinite(q).all(axis=1))  # else the simulation diverged
            total = total + np.where(fine[:, None], q, 0.0)
            sound = sound + fine
            simulated = simulated + steps
        values = np.zeros((*trajectories.mask.shape, total.shape[1]), np.float32)
        values[k, t] = total / np.maximum(sound, 1)[:, None]
        known = np.zeros(trajectories.mask.shape, bool)
        known[k, t] = sound > 0
        diverged = int(self.rollouts * len(k) - sound.sum())
        found = values if self.all_actions else values[..., 0]
        weight, lost = query_weights(open_to, known)
        return CostToGo(found, weight, len(k), simulated, diverged, lost, advantage=self.advantage)

    def _query_taken_action(self, states: Array, t: Array, actions: Array) -> tuple[Array, int]:
        """([n, 1] Q* or A* of these actions, all the steps)."""
        q, simulated = rollout_expert_cost(self.simulator, self.expert, states, t, actions)
        if not self.advantage:
            return q[:, None], simulated
        v, steps = rollout_expert_cost(self.simulator, self.expert, states, t)
        return (q - v)[:, None], simulated + steps

    def _query_all_actions(self, states: Array, t: Array, legal: Array) -> tuple[Array, int]:
        """([n, A] Q* or A* of every legal action, all the steps); of others 0. π*'s own is what following it costs."""
        assert isinstance(self.simulator.action_space, Discrete), "there are infinitely many actions"
        actions = int(self.simulator.action_space.n)
        v, simulated = rollout_expert_cost(self.simulator, self.expert, states, t)
        own = np.zeros((len(states), actions), bool)
        for now in np.unique(t):
            rows = np.flatnonzero(t == now)
            with add_error_position(rows=rows):
                own[rows, query_actions(self.expert, states[rows], int(now), self.simulator.action_space)] = True
        row, action = np.nonzero(~own & (legal if legal.shape[1] else True))
        q = own * v[:, None]
        q[row, action], steps = rollout_expert_cost(self.simulator, self.expert, states[row], t[row], action)
        if self.advantage:
            q[row, action] -= v[row]
            q[own] = np.where(np.isfinite(v), 0.0, v)
        return q, simulated + steps

    def _reseed_states(self, states: Array, seeds: Array, t: Array, rollout: int) -> Array:
        chance = find_reseedable(self.simulator)
        assert chance is not None, "checked when this oracle was made"
        own = [
            make_generator(int(seed), RandomStream.LUCK).integers(2**64, size=rollout + 1, dtype=np.uint64)
            for seed in seeds
        ]
        drawn = np.array([luck[rollout] for luck in own], np.uint64)  # none where the expert took every step
        return chance.reseed(states, drawn + t.astype(np.uint64))


def sample_query_steps(trajectories: Trajectories, steps: int | None) -> Array:
    """[K, T] bool: the learner's own steps, or as many of each trajectory's as `steps` says, drawn at random.

    Which ones belongs to the trajectory and its seed.
    """
    own = trajectories.by_learner
    if steps is None:
        return own
    length = own.shape[1]
    lots = np.stack([make_generator(int(seed), RandomStream.QUERIES).random(length) for seed in trajectories.seeds])
    lots[~own] = np.inf
    rank = lots.argsort(axis=1).argsort(axis=1)
    chosen: Array = own & (rank < steps)
    return chosen


def include_expert_steps(trajectories: Trajectories) -> Trajectories:
    """The same, with every step open to questions, whoever took it: what all actions cost depends on the state only."""
    return replace(trajectories, by_expert=np.zeros_like(trajectories.by_expert))


def query_weights(trajectories: Trajectories, known: Array) -> tuple[Array, int]:
    """(float32 [K, T]: T/M for each of the M steps of a trajectory that are known, T being all that might have been;
    how many trajectories are lost, because nothing is known of them).
    """
    own = trajectories.by_learner.sum(axis=1)
    found = known.sum(axis=1)
    factor = own / np.maximum(found, 1)
    weight: Array = (known * factor[:, None]).astype(np.float32)
    return weight, int(((own > 0) & (found == 0)).sum())


def rollout_expert_cost(
    simulator: Simulator, expert: Expert, states: Array, times: Array, first: Array | None = None
) -> tuple[Array, int]:
    """([n] what it costs to take `first` and then follow π* from `states` at `times` to the horizon, all the steps)."""
    space = simulator.action_space
    return rollout_cost(simulator, lambda _, state, t: query_actions(expert, state, t, space), states, times, first)


def rollout_cost(
    simulator: Simulator, act: Act, states: Array, times: Array, first: Array | None = None
) -> tuple[Array, int]:
    """The same with whoever acts. Without `first` it is they from the beginning.

    A diverged one costs NaN. Replays are counted; more lanes than can be kept where they stand go in blocks.
    """
    n = len(states)
    most = max_batch_size(simulator)
    if n <= most:
        return rollout_cost_batch(simulator, act, states, times, first)
    total = np.zeros(n)
    simulated = 0
    for start in range(0, n, most):
        rows = np.arange(start, min(start + most, n))

        def act_there(lanes: Array, state: Array, t: int, rows: Array = rows) -> Array:
            return act(rows[lanes], state, t)

        with add_error_position(rows=rows):
            own = None if first is None else first[rows]
            total[rows], steps = rollout_cost_batch(simulator, act_there, states[rows], times[rows], own)
        simulated += steps
    return total, simulated


def rollout_cost_batch(
    simulator: Simulator, act: Act, states: Array, times: Array, first: Array | None = None
) -> tuple[Array, int]:
    """The same in one batch.

    Lanes join at their own time, so that whoever depends on t is asked rightly, and leave when they have ended.
    """
    total = np.zeros(len(states))
    simulated = -count_replayed_steps(simulator)
    lanes = np.zeros(0, int)
    state = states[:0]
    for t in range(int(times.min(initial=simulator.horizon)), simulator.horizon):
        joining = np.flatnonzero(times == t)
        lanes = np.concatenate([lanes, joining])
        state = np.concatenate([state, states[joining]])
        if not len(lanes):
            continue
        with add_error_position(rows=lanes, step=t):
            action = act(lanes, state, t)
            if first is not None and len(joining):
                action = np.concatenate([action[: -len(joining)], first[joining]])
            state, cost, done = step_and_check(simulator, state, action)
        total[lanes] += cost
        simulated += len(lanes)
        if done.any():
            lanes = lanes[~done]
            state = state[~done]
    return total, simulated + count_replayed_steps(simulator)


@dataclass(frozen=True)
class MonteCarloSettings(CostOracleSettings):
    """Q* by rolling the expert out: of every action of a finite set, or of the action taken."""

    name = "monte-carlo"
    query_steps: int = setting(
        2, "M: of each trajectory, how many steps the Monte-Carlo oracle is asked about; 0: all.", COUNT
    )
    query_rollouts: int = setting(1, "Roll-outs per query, for simulators with chance in them.", at_least(1))
    all_actions: bool = setting(True, "Roll out every action of a finite set, not only the one taken.")

    def get_feedback(self, finite: bool) -> Feedback:
        return Feedback.ALL_ACTIONS if finite and self.all_actions else Feedback.TAKEN_ACTION

    def is_partial(self, finite: bool) -> bool:
        return bool(self.query_steps) or super().is_partial(finite)

    def max_steps(self, horizon: int, actions: int | None) -> int:
        every = actions if actions is not None and self.all_actions else 1 + self.advantage
        return max_rollout_steps(horizon, self.query_steps, every * self.query_rollouts)

    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        every = self.get_feedback(isinstance(simulator.action_space, Discrete)) is Feedback.ALL_ACTIONS
        return MonteCarloOracle(simulator, expert, self.query_steps or None, self.query_rollouts, self.advantage, every)
