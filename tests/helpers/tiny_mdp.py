"""Tiny MDP whose trajectories can all be enumerated, with its exact values and gradients.

Three states, three actions, H = 3, stochastic transitions, and two actions that end the episode. Every number is a
small fraction, so Q* and d_t can be checked by hand. This module does not use the library's gradients or roll-in.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from aggrevated.config.resolver import REGISTRIES, select_head
from aggrevated.losses import Loss
from aggrevated.oracles import CostToGo
from aggrevated.policies import Policy
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator

Array = NDArray[np.generic]

END = -1
NEXT = np.array(  # [s, a, coin]: next state of s under a, either one with probability 1/2
    [
        [(0, 1), (2, 2), (1, 2)],
        [(0, 2), (1, 1), (END, END)],
        [(0, 0), (2, 1), (END, END)],
    ]
)
COST = np.array([[1.0, 2.0, 0.0], [3.0, 1.0, 4.0], [0.0, 2.0, 1.0]])  # [s, a]
START = np.array([0.5, 0.25, 0.25])  # ρ₀
EXPERT = np.array([2, 1, 0])  # π*(s), optimal at every t

# Q*_t(s, a) for t = 1, 2, 3, computed by hand by backward induction.
Q_STAR = np.array(
    [
        [[2.25, 2.0, 1.0], [3.25, 3.0, 4.0], [0.5, 3.0, 1.0]],
        [[1.5, 2.0, 0.5], [3.0, 2.0, 4.0], [0.0, 2.5, 1.0]],
        [[1.0, 2.0, 0.0], [3.0, 1.0, 4.0], [0.0, 2.0, 1.0]],
    ]
)


@dataclass(frozen=True)
class TinyMdp:
    """Simulator with states [n, 3] int64: (s, t, coins). Coins are the bits of future flips, hidden from policies.

    Seeds 0 … 15 hit every (start, coins) in proportion to its probability, so a mean over them is exact.
    """

    horizon: int = 3
    name: str = "tiny"
    action_space = Discrete(3)
    observation_space = Box(0.0, 1.0, (3,), np.float32)

    def reset(self, seeds: Array) -> Array:
        index = np.array([int(seed) % 16 for seed in seeds])
        return np.stack([np.array([0, 0, 1, 2])[index // 4], np.zeros_like(index), index % 4], axis=1)

    def observe(self, state: Array) -> Array:
        """Return s as a one-hot vector: the learner does not observe t, although Q* depends on it."""
        return np.eye(3, dtype=np.float32)[state[:, 0]]

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        s, t, coins = state.T
        following = NEXT[s, action, coins % 2]
        done = following == END
        return np.stack([np.where(done, s, following), t + 1, coins // 2], axis=1), COST[s, action], done


@dataclass(frozen=True)
class Lucky(TinyMdp):
    """Tiny MDP that supports reseeding."""

    def reseed(self, state: Array, seeds: Array) -> Array:
        """Set the future coin flips to the last bits of the seeds."""
        assert seeds.dtype == np.uint64 and seeds.shape == state.shape[:1], (seeds.dtype, seeds.shape)
        return np.column_stack([state[:, :2], (seeds % np.uint64(4)).astype(np.int64)])


@dataclass(frozen=True)
class TinyExpert:
    """Expert with π* and Q* of the tiny MDP; it sees s and t, not the coins."""

    name: str = "tiny-expert"

    def q(self, states: Array) -> Array:
        return Q_STAR[states[:, 1], states[:, 0]]

    def act(self, states: Array, t: int) -> Array:
        return EXPERT[states[:, 0]]


@dataclass(frozen=True)
class Walk:
    """Simulator of x ← x + (1, 2)·a with cost x², which ends beyond |x| = 3. State and observation [n, 1]."""

    horizon: int = 30
    name: str = "walk"
    action_space = Box(-1.0, 1.0, (2,), np.float32)
    observation_space = Box(-np.inf, np.inf, (1,), np.float32)

    def reset(self, seeds: Array) -> Array:
        return np.array([[int(seed) % 7 / 3.0 - 1.0] for seed in seeds])

    def observe(self, state: Array) -> Array:
        return state.astype(np.float32)

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        following = state + action @ np.array([[1.0], [2.0]])
        return following, state[:, 0] ** 2, np.abs(following[:, 0]) > 3


@dataclass(frozen=True)
class Home:
    """Expert that returns to 0 by the second component of its action."""

    name: str = "home"

    def act(self, states: Array, t: int) -> Array:
        return np.concatenate([np.zeros_like(states), -states / 2], axis=1).astype(np.float32)


def linear_policy(seed: int | None = 0) -> FeedForwardPolicy:
    """Return the policy logits(s) = W[:, s] + b in float64, uniform if the seed is None; closed-form gradient."""
    policy = FeedForwardPolicy(3, CategoricalHead(3), hidden=()).double()
    return randomise(policy, seed) if seed is not None else randomise(policy, 0, scale=0.0)


def deep_policy(seed: int = 0, inputs: int = 3, actions: int = 3) -> FeedForwardPolicy:
    """Return a float64 policy with one hidden layer of five units."""
    return randomise(FeedForwardPolicy(inputs, CategoricalHead(actions), hidden=(5,)).double(), seed)


def randomise(policy: FeedForwardPolicy, seed: int, scale: float = 0.7) -> FeedForwardPolicy:
    """Draw all parameters of the policy at random, including the biases; return the policy."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return policy


def probabilities(policy: Policy) -> Array:
    """Return π_θ(a|s) as [S, A]."""
    dtype = next(policy.parameters()).dtype
    with torch.no_grad():
        return policy.distribution(torch.eye(3, dtype=dtype)[None], torch.ones(1, 3)).probs[0].numpy()


def mixture(pi: Array, alpha: float) -> Array:
    """Return α π* + (1 − α) π as [S, A]."""
    return alpha * np.eye(3)[EXPERT] + (1 - alpha) * pi


def transitions() -> Array:
    """Return P(s'|s, a) as [S, A, S]; the probability missing from 1 is that of an end."""
    return np.stack([(following == NEXT).mean(axis=2) for following in range(3)], axis=2)


def state_distributions(pi: Array, horizon: int = 3) -> Array:
    """Return d_t^π(s) as [H, S] by forward recursion; it sums to less than 1 where episodes have ended."""
    d = [START]
    for _ in range(horizon - 1):
        d.append(np.einsum("s,sa,sax->x", d[-1], pi, transitions()))
    return np.stack(d)


def exact_gradient(pi: Array, alpha: float = 0.0) -> Array:
    """Return the closed-form gradient of Eq. 3 for a linear policy, flat as its parameters (W [A, S], then b [A])."""
    d = state_distributions(mixture(pi, alpha))
    advantage = Q_STAR - np.einsum("sa,tsa->ts", pi, Q_STAR)[..., None]
    logits = np.einsum("ts,sa,tsa->sa", d, pi, advantage) / 3
    return np.concatenate([logits.T.reshape(-1), logits.sum(axis=0)])


@dataclass(frozen=True)
class Enumerated:
    """Every possible trajectory with its probability; trajectories that differ in who acted are distinct."""

    trajectories: Trajectories  # J trajectories, observations in float64
    probability: Array  # [J]

    def expectation(self, estimate: Callable[[Trajectories], Array]) -> Array:
        """Return Σ_τ ρ(τ) estimate(τ), with each trajectory as a batch of one."""
        each = [estimate(self.trajectories.take(np.array([j]))) for j in range(len(self.probability))]
        return np.einsum("j,j...->...", self.probability, np.stack(each))


def every_trajectory(
    policy: Policy, alpha: float = 0.0, horizon: int = 3, starts: tuple[int, ...] = (0, 1, 2)
) -> Enumerated:
    """Enumerate all trajectories of α π* + (1 − α) π_θ over all actions and coin flips."""
    simulator = TinyMdp(horizon)
    pi = probabilities(policy)

    def choices(s: int) -> Iterator[tuple[int, bool, float]]:
        yield from ((a, False, (1 - alpha) * pi[s, a]) for a in range(3))
        if alpha > 0:
            yield EXPERT[s], True, alpha

    def walk(state: Array, t: int) -> Iterator[tuple[float, list[tuple[Array, int, float, bool]]]]:
        for action, by_expert, chance in choices(state[0]):
            following, cost, done = simulator.step(state[None], np.array([action]))
            here = [(state, action, cost[0], by_expert)]
            if done[0] or t + 1 == horizon:
                yield chance, here
            else:
                yield from ((chance * p, here + rest) for p, rest in walk(following[0], t + 1))

    flips = 2 ** (horizon - 1)  # no trajectory depends on the last flip
    rho = START / START[list(starts)].sum()
    paths = [
        (rho[s] / flips * p, path)
        for s in starts
        for coins in range(flips)
        for p, path in walk(np.array([s, 0, coins]), 0)
    ]
    return Enumerated(_lay_out([path for _, path in paths], simulator, alpha), np.array([p for p, _ in paths]))


def _lay_out(paths: list[list[tuple[Array, int, float, bool]]], simulator: TinyMdp, alpha: float) -> Trajectories:
    shape = len(paths), simulator.horizon
    states = np.zeros((*shape, 3), np.int64)
    actions = np.zeros(shape, np.int64)
    costs = np.zeros(shape)
    observations = np.zeros((*shape, 3))
    mask = np.zeros(shape, bool)
    by_expert = np.zeros(shape, bool)
    for j, path in enumerate(paths):
        for t, (state, action, cost, expert) in enumerate(path):
            states[j, t] = state
            actions[j, t] = action
            costs[j, t] = cost
            by_expert[j, t] = expert
            observations[j, t] = np.eye(3)[state[0]]
            mask[j, t] = True
    return Trajectories(states, observations, actions, costs, mask, by_expert, simulator.horizon, alpha)


def gradient(policy: Policy, loss: Loss, trajectories: Trajectories, cost_to_go: CostToGo) -> Array:
    """Return ∇_θ loss as one flat float64 vector."""
    value = loss(policy, trajectories, cost_to_go)
    gradients = torch.autograd.grad(value, list(policy.parameters()))
    return torch.cat([g.reshape(-1) for g in gradients]).double().numpy()


def flat(policy: Policy) -> Array:
    """Return a copy of θ as one vector."""
    return torch.cat([p.detach().reshape(-1) for p in policy.parameters()]).numpy().copy()


def random_trajectories(
    k: int = 6, t: int = 4, inputs: int = 3, actions: int = 3, seed: int = 0, dtype: type = np.float64
) -> Trajectories:
    """Return trajectories of no MDP: Gaussian observations, random actions, some ended early."""
    generator = np.random.default_rng(seed)
    observations = generator.normal(size=(k, t, inputs)).astype(dtype)
    mask = np.arange(t) < generator.integers(1, t + 1, (k, 1))
    mask[0] = True
    taken = generator.integers(actions, size=(k, t))
    costs = generator.normal(size=(k, t))
    observations[~mask] = 0.0
    taken[~mask] = 0
    costs[~mask] = 0.0
    return Trajectories(observations, observations, taken, costs, mask, np.zeros((k, t), bool), horizon=t + 1)


def with_expert_steps(trajectories: Trajectories, alpha: float = 0.4, seed: int = 0) -> Trajectories:
    """Return the trajectories with a fraction `alpha` of their steps marked as the expert's."""
    coins = np.random.default_rng(seed).random(trajectories.mask.shape)
    return replace(trajectories, by_expert=(coins < alpha) & trajectories.mask, alpha=alpha)


def with_legal(trajectories: Trajectories, actions: int = 3, seed: int = 0) -> Trajectories:
    """Return the trajectories with about half of all actions illegal; taken actions are legal, none at padded steps."""
    legal = np.random.default_rng(seed).random((*trajectories.mask.shape, actions)) < 0.5
    np.put_along_axis(legal, trajectories.actions[..., None], True, axis=2)
    return replace(trajectories, action_mask=legal & trajectories.mask[..., None])


def with_vectors(trajectories: Trajectories, size: int = 3, seed: int = 0) -> Trajectories:
    """Return the trajectories with Gaussian vectors as actions, zeros at padded steps."""
    drawn = np.random.default_rng(seed).normal(size=(*trajectories.mask.shape, size))
    drawn[~trajectories.mask] = 0.0
    return replace(trajectories, actions=drawn.astype(trajectories.observations.dtype))


def random_costs(
    trajectories: Trajectories,
    policy: Policy | None = None,
    *,
    actions: int | None = 3,
    seed: int = 1,
    scale: float = 1.0,
) -> CostToGo:
    """Return random costs of every action, or of the taken one if `actions` is None. It can serve as an oracle."""
    shape = trajectories.mask.shape if actions is None else (*trajectories.mask.shape, actions)
    values = scale * np.random.default_rng(seed).normal(size=shape)
    values[~trajectories.mask] = 0.0
    dtype = trajectories.observations.dtype
    return CostToGo(values.astype(dtype), trajectories.mask.astype(dtype))


POLICIES = [name for name in REGISTRIES["policy"].names() if name != "cnn"]  # kinds of policies that read vectors


def random_policy(simulator: Simulator, kind: str, hidden: tuple[int, ...], seed: int, **of_the_head: float) -> Policy:
    """Return a random policy of that kind, as at the start of a run."""
    head = select_head(simulator.action_space)(**of_the_head).build(simulator.action_space)
    policy: Policy = REGISTRIES["policy"].get(kind)(hidden).build(simulator.observation_space, head, seed)
    return policy
