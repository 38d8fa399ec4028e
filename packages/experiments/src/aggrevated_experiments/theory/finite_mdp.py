"""AggreVaTeD with EG on finite MDPs (Theorem upper_bound): a distribution π^{s,t} per state and time."""

from collections.abc import Callable
from itertools import islice

import numpy as np
import torch

from aggrevated.algorithm import Learner, aggrevated
from aggrevated.core.arrays import Array
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.reward_to_go import RewardToGoOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.simulators.tabular import (
    TabularSimulator,
    compute_optimal_q,
    compute_state_distributions,
    compute_total_cost,
    sample_categorical,
)
from aggrevated.updates import Update
from aggrevated.updates.tabular_exponentiated import apply_exponentiated_step
from aggrevated_experiments.theory.study import Recorder, Regret

Mdps = tuple[Array, Array, Array]  # transitions [trials, S, A, S], costs [trials, S, A], start [trials, S]
Noise = Callable[
    [Array, Array, np.random.Generator], Array
]  # (Q*, visited states [trials, H], generator) to Q̃ [trials, H, A]


def step_size(q_max: Array, horizon: int, states: int, actions: int, episodes: int) -> Array:
    """Return μ = (H / Q_max) √(2 S ln A / N), which minimizes the bound.

    The appendix has the inverse by mistake.
    """
    size: Array = horizon / q_max * np.sqrt(2 * states * np.log(actions) / episodes)
    return size


def run_with_exact_q(mdps: Mdps, horizon: int, episodes: int, step: float = 1.0) -> Regret:
    """Return the regret of EG as in the proof: infinitely many roll-ins and exact Q*.

    η is `step` times the theorem's.
    """
    transitions, costs, start = mdps
    q_star = compute_optimal_q(transitions, costs, horizon)
    best = (start * q_star[:, 0].min(axis=2)).sum(axis=1)
    _, states, actions = costs.shape
    eta = step * step_size(q_star.max(axis=(1, 2, 3)), horizon, states, actions, episodes)[:, None, None, None]
    log_policy = np.full(q_star.shape, -np.log(actions))
    recorder = Recorder(len(costs), episodes)
    for n in range(1, episodes + 1):
        policy = np.exp(log_policy)
        d = compute_state_distributions(transitions, start, policy)
        recorder.add(n, (d[..., None] * policy * costs[:, None]).sum(axis=(1, 2, 3)) - best)
        log_policy = apply_exponentiated_step(log_policy, d[..., None] / horizon * q_star, eta)
    return recorder.make_regret("AggreVaTeD, EG, exact Q*")


def run_with_sampled_q(
    mdps: Mdps, horizon: int, episodes: int, seed: int, noise: Noise, label: str, step: float = 1.0
) -> Regret:
    """Return the regret of EG with one roll-in per episode and noisy Q̃ of all actions at its H states.

    Args:
        mdps: transitions, costs and start of all trials.
        horizon: H.
        episodes: N.
        seed: seed of roll-ins and noise.
        noise: the function that samples Q̃.
        label: name of the curve.
        step: factor of the theorem's η.
    """
    transitions, costs, start = mdps
    generator = np.random.default_rng(seed)
    (trials, states, actions) = costs.shape
    trial = np.arange(trials)[:, None]
    times = np.arange(horizon)[None]
    q_star = compute_optimal_q(transitions, costs, horizon)
    best = (start * q_star[:, 0].min(axis=2)).sum(axis=1)
    q_max = np.sqrt(horizon * q_star.max(axis=(1, 2, 3)))  # E[Q̃²] ≤ H Q*, as Q̃ lies between 0 and H
    eta = step * step_size(q_max, horizon, states, actions, episodes)[:, None, None]
    log_policy = np.full(q_star.shape, -np.log(actions))
    recorder = Recorder(trials, episodes)
    for n in range(1, episodes + 1):
        policy = np.exp(log_policy)
        recorder.add(n, compute_total_cost(transitions, costs, start, policy) - best)
        visited = roll_in(transitions, start, policy, generator)  # [trials, H]
        visited_log_policy = log_policy[trial, times, visited]
        log_policy[trial, times, visited] = apply_exponentiated_step(
            visited_log_policy, noise(q_star, visited, generator) / horizon, eta
        )
    return recorder.make_regret(label)


def add_bounded_noise(q_star: Array, visited: Array, generator: np.random.Generator, width: float = 1.0) -> Array:
    """Return Q* plus uniform noise between −width and width."""
    exact = q_star[np.arange(len(visited))[:, None], np.arange(visited.shape[1]), visited]
    return exact + generator.uniform(-width, width, exact.shape)


def make_rollout_noise(mdps: Mdps, rollouts: int) -> Noise:
    """Return a sampler of Q̃ by `rollouts` roll-outs of each action followed by π*; costs are 0 or 1."""

    def sample_q(q_star: Array, visited: Array, generator: np.random.Generator) -> Array:
        transitions, costs, _ = mdps
        trials, horizon, _, actions = q_star.shape
        expert = q_star.argmin(axis=3)
        shape = (trials, horizon, actions, rollouts)
        trial = np.broadcast_to(np.arange(trials)[:, None, None, None], shape)
        s = np.broadcast_to(visited[:, :, None, None], shape)
        a = np.broadcast_to(np.arange(actions)[None, None, :, None], shape)
        t = np.broadcast_to(np.arange(horizon)[None, :, None, None], shape)
        total = np.zeros(shape)
        for _ in range(horizon):
            is_running = t < horizon
            total += is_running * (generator.random(shape) < costs[trial, s, a])
            s = sample_categorical(transitions[trial, s, a], generator)
            t = t + 1
            a = expert[trial, np.minimum(t, horizon - 1), s]
        mean: Array = total.mean(axis=3)
        return mean

    return sample_q


def roll_in(transitions: Array, start: Array, policy: Array, generator: np.random.Generator) -> Array:
    """Return the states [trials, H] of one episode of each policy."""
    trial = np.arange(len(policy))
    s = sample_categorical(start, generator)
    visited = [s]
    for t in range(policy.shape[1] - 1):
        s = sample_categorical(transitions[trial, s, sample_categorical(policy[trial, t, s], generator)], generator)
        visited.append(s)
    return np.stack(visited, axis=1)


def run_policy_gradient(
    mdps: Mdps, horizon: int, episodes: int, seed: int, update: Callable[[], Update], label: str, k: int = 10
) -> Regret:
    """Return the regret of REINFORCE or TNPG by Algorithm 1, with a table as policy.

    All K episodes of an iteration have one policy, and so one regret.
    """
    transitions, costs, start = mdps
    iterations = -(-episodes // k)
    curves = []
    for trial in range(len(costs)):
        mdp = TabularSimulator(transitions[trial], costs[trial], start[trial], horizon)
        best = (mdp.start * mdp.q_star[0].min(axis=1)).sum()
        recorder = Recorder(1, episodes)
        policy = FeedForwardPolicy(mdp.observation_space.shape[0], CategoricalHead(costs.shape[2]), hidden=())
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.zero_()
        learning = aggrevated(
            Learner(policy, update()), mdp, None, AdvantageOracle(RewardToGoOracle()), taken_action_loss,
            seed=seed + trial, k=k, validation_episodes=1, validate_every=iterations + 1,
        )  # fmt: skip
        for iteration in range(iterations):
            table = compute_probabilities(policy, mdp)
            regret = compute_total_cost(mdp.transitions, mdp.costs, mdp.start, table) - best
            for n in range(iteration * k + 1, min((iteration + 1) * k, episodes) + 1):
                recorder.add(n, np.array([regret]))
            next(islice(learning, 1))
        curves.append(recorder.make_regret(label).curve[0])
    return Regret(label, np.stack(curves), learns_from_expert=False)


def compute_probabilities(policy: FeedForwardPolicy, mdp: TabularSimulator) -> Array:
    """Return π(a|s, t) of a table, [H, S, A]."""
    states, actions = mdp.costs.shape
    with torch.no_grad():
        observations = torch.eye(mdp.horizon * states)[None]
        table = policy.distribution(observations, torch.ones(1, len(observations[0]))).probs[0]  # type: ignore[attr-defined]
    return table.double().numpy().reshape(mdp.horizon, states, actions)  # type: ignore[no-any-return]
