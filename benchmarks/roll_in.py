"""Roll-in speed, in environment steps per second: 50 episodes at once, the paper's layer of 16 ReLU, one thread."""

import interleave

# isort: split
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count

import gymnasium
import numpy as np
import torch
from gymnasium.vector import SyncVectorEnv, VectorEnv
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv
from torch.distributions import Categorical

from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import Simulator
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.cartpole import CartPole
from fused import acrobot_roll_in, cartpole_roll_in
from steered import HIDDEN, balancing, swinging

K = 50
VECTOR_STEPS = 20  # of the vector environments in one call, 1,000 environment steps

Work = Callable[[], int]
Act = Callable[[np.ndarray], np.ndarray]  # from observations to actions


@dataclass(frozen=True)
class Task:
    """A simulator, its versions in Gymnasium and numba, and a good policy for it."""

    simulator: Simulator
    gymnasium_id: str
    fused: Callable[..., tuple[np.ndarray, ...]]
    policy: FeedForwardPolicy

    def make(self) -> gymnasium.Env:
        """Return Gymnasium's environment with our horizon, without the wrapper that checks its output."""
        horizon = self.simulator.horizon
        return gymnasium.make(self.gymnasium_id, max_episode_steps=horizon, disable_env_checker=True)


def ours(task: Task, policy: FeedForwardPolicy) -> Work:
    """`aggrevated.rollout.roll_in`, from θ to trajectories, including the copy of the weights."""
    iteration = count()

    def work() -> int:
        chosen = derive_seeds(0, SeedPurpose.ROLL_IN, next(iteration), K)
        return roll_in(task.simulator, RollInPolicy(None, policy.actor()), chosen).steps

    return work


def stable_baselines_parts(task: Task, policy: FeedForwardPolicy) -> tuple[DummyVecEnv, PPO]:
    """Return a DummyVecEnv of 50 environments and a PPO agent with our policy's weights."""
    environments = DummyVecEnv([task.make] * K)
    layout = {"net_arch": [16], "activation_fn": torch.nn.ReLU}
    model = PPO("MlpPolicy", environments, policy_kwargs=layout, device="cpu")
    model.policy.mlp_extractor.policy_net[0].load_state_dict(policy.network[0].state_dict())
    model.policy.action_net.load_state_dict(policy.network[2].state_dict())
    observation = torch.from_numpy(environments.reset())
    expected = Categorical(logits=policy.network(observation)).logits
    torch.testing.assert_close(model.policy.get_distribution(observation).distribution.logits, expected)
    return environments, model


def stable_baselines(task: Task, policy: FeedForwardPolicy) -> Work:
    """DummyVecEnv and `predict`; ended episodes restart at once, so all 50 environments are always live."""
    environments, model = stable_baselines_parts(task, policy)
    observation = environments.reset()

    def work() -> int:
        nonlocal observation
        for _ in range(VECTOR_STEPS):
            action, _ = model.predict(observation, deterministic=False)
            observation, _, _, _ = environments.step(action)
        return VECTOR_STEPS * K

    return work


def stable_baselines_episodes(task: Task, policy: FeedForwardPolicy) -> Work:
    """DummyVecEnv and `predict` for our product, 50 whole episodes; steps after the end of an episode do not count."""
    environments, model = stable_baselines_parts(task, policy)

    def work() -> int:
        observation = environments.reset()
        live = np.ones(K, bool)
        steps = 0
        while live.any():
            action, _ = model.predict(observation, deterministic=False)
            observation, _, done, _ = environments.step(action)
            steps += int(live.sum())
            live &= ~done
        return steps

    return work


def gymnasium_torch(task: Task, policy: FeedForwardPolicy) -> Work:
    """SyncVectorEnv and `torch.distributions.Categorical`."""

    def act(observation: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return Categorical(logits=policy.network(torch.from_numpy(observation))).sample().numpy()

    return refilled(SyncVectorEnv([task.make] * K), act)


def gymnasium_arrays(task: Task, policy: FeedForwardPolicy) -> Work | None:
    """Gymnasium's vectorized environment, where it has one, with the policy in NumPy."""
    if gymnasium.spec(task.gymnasium_id).vector_entry_point is None:
        return None
    kind = "vector_entry_point"
    horizon = task.simulator.horizon
    environments = gymnasium.make_vec(task.gymnasium_id, num_envs=K, vectorization_mode=kind, max_episode_steps=horizon)
    return refilled(environments, on_numpy(policy))


def env_pool(task: Task, policy: FeedForwardPolicy) -> Work | None:
    """EnvPool's C++ environments on one thread, where it is installed, with the policy in NumPy."""
    if find_spec("envpool") is None:
        return None
    import envpool

    act = on_numpy(policy)
    options = {"num_envs": K, "num_threads": 1, "seed": 0}
    with warnings.catch_warnings(action="ignore"):  # its spaces are in float64
        environments = envpool.make_gymnasium(task.gymnasium_id, max_episode_steps=task.simulator.horizon, **options)
    return refilled(environments, lambda observation: act(observation).astype(np.int32))


def on_numpy(policy: FeedForwardPolicy) -> Act:
    """The policy in plain NumPy: two products, and the greatest of the logits with Gumbel noise."""
    first = policy.network[0]
    last = policy.network[2]
    w1, b1, w2, b2 = (w.detach().numpy() for layer in (first, last) for w in (layer.weight.T, layer.bias))
    random = np.random.default_rng(0)

    def act(observation: np.ndarray) -> np.ndarray:
        logits = np.maximum(observation @ w1 + b1, 0) @ w2 + b2
        return (logits - np.log(random.standard_exponential(logits.shape, np.float32))).argmax(axis=1)

    return act


def refilled(environments: VectorEnv, act: Act) -> Work:
    """Restart ended episodes; reset-only steps do not count."""
    observation, _ = environments.reset()
    ended = np.zeros(K, bool)

    def work() -> int:
        nonlocal observation, ended
        steps = 0
        for _ in range(VECTOR_STEPS):
            steps += K - int(ended.sum())
            observation, _, terminated, truncated, _ = environments.step(act(observation))
            ended = terminated | truncated
        return steps

    return work


def numba_fused(task: Task, policy: FeedForwardPolicy) -> Work:
    """One compiled loop over simulator, policy and sampling."""
    random = np.random.default_rng(0)
    weights = fused_weights(policy)

    def work() -> int:
        return int(task.fused(random, K, task.simulator.horizon, *weights)[-1].sum())

    return work


def fused_weights(policy: FeedForwardPolicy) -> list[np.ndarray]:
    """W₁ [inputs, 16], b₁, W₂ [A, 16], b₂."""
    first = policy.network[0]
    last = policy.network[2]
    tensors = (first.weight.T.contiguous(), first.bias, last.weight, last.bias)
    return [tensor.detach().numpy().copy() for tensor in tensors]


def mean_return(task: Task, policy: FeedForwardPolicy, episodes: int = 400) -> float:
    """Return the mean return in our simulator; assert that the fused loop agrees within 4 standard errors."""
    trajectories = roll_in(
        task.simulator, RollInPolicy(None, policy.actor()), derive_seeds(0, SeedPurpose.TEST, 0, episodes)
    )
    costs = task.fused(np.random.default_rng(0), episodes, task.simulator.horizon, *fused_weights(policy))[3]
    both = np.stack([trajectories.returns, -costs.sum(1)])
    error = np.sqrt((both.var(1) / episodes).sum())
    assert abs(both[0].mean() - both[1].mean()) <= 4 * error + 0.5, both.mean(1)
    return float(both[0].mean())


def main() -> None:
    options = interleave.arguments(__doc__, rounds=9, seconds=0.3)
    tasks = [
        Task(CartPole(), "CartPole-v1", cartpole_roll_in, balancing()),
        Task(Acrobot(), "Acrobot-v1", acrobot_roll_in, swinging()),
    ]
    contenders: dict[tuple[str, str], Work] = {}
    for task in tasks:
        head = CategoricalHead(int(task.simulator.action_space.n))
        inputs = task.simulator.observation_space.shape[0]
        generator = torch.Generator().manual_seed(0)
        random = FeedForwardPolicy(inputs, head, HIDDEN, generator)
        for kind, policy in {"decent": task.policy, "random": random}.items():
            case = f"{task.simulator.name}, {kind} policy (return {mean_return(task, policy):.0f})"
            works = {name: contender(task, policy) for name, contender in CONTENDERS.items()}
            contenders |= {(case, name): work for name, work in works.items() if work}
    spent = interleave.interleave(contenders, options.rounds, options.seconds)
    rows = []
    targets = []
    for (case, name), seconds in spent.items():
        rows.append(interleave.summary(case, name, "steps/s", [1 / s for s in seconds]))
        if name in TARGETS:
            ratio = interleave.ratios(seconds, spent[case, "aggrevated"])
            targets.append(interleave.at_least(case, f"speed / {name}", TARGETS[name], ratio))
    interleave.report("Roll-in speed", rows, targets, options)


CONTENDERS = {
    "aggrevated": ours,
    "stable-baselines3": stable_baselines,
    "stable-baselines3, whole episodes": stable_baselines_episodes,
    "gymnasium + torch": gymnasium_torch,
    "gymnasium's CartPoleVectorEnv": gymnasium_arrays,
    "EnvPool": env_pool,
    "numba, fused": numba_fused,
}
TARGETS = {"stable-baselines3": 12, "stable-baselines3, whole episodes": 12, "numba, fused": 0.30}

if __name__ == "__main__":
    main()
