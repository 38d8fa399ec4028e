"""Roll-in speed with the paper's LSTM of 32, in environment steps per second: 50 episodes at once, one thread."""

import interleave

# isort: split
from collections.abc import Callable
from dataclasses import dataclass

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import TransformObservation
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.vec_env import DummyVecEnv
from torch.distributions import Categorical

from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.policies.heads import CategoricalHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import Simulator
from aggrevated.simulators.cartpole import CartPole
from aggrevated.tasks.acrobot_partial import make_partial_acrobot
from roll_in import VECTOR_STEPS, K, Work, ours
from steered import recurrent_balancing, recurrent_swinging


@dataclass(frozen=True)
class Task:
    """A simulator, its Gymnasium environment, and a good policy for it."""

    simulator: Simulator
    make: Callable[[], gymnasium.Env]
    policy: RecurrentPolicy


def cartpole() -> gymnasium.Env:
    return gymnasium.make("CartPole-v1", disable_env_checker=True)


def acrobot_positions() -> gymnasium.Env:
    """Acrobot without its velocities, with the paper's horizon."""
    whole = gymnasium.make("Acrobot-v1", max_episode_steps=200, disable_env_checker=True)
    return TransformObservation(whole, lambda seen: seen[:4], make_partial_acrobot(200).observation_space)


def peer_parts(task: Task, policy: RecurrentPolicy) -> tuple[DummyVecEnv, RecurrentPPO]:
    """Return a DummyVecEnv of 50 environments and a RecurrentPPO agent with the weights of our policy."""
    environments = DummyVecEnv([task.make] * K)
    layout = {"lstm_hidden_size": policy.recurrent.hidden_size, "net_arch": []}
    model = RecurrentPPO("MlpLstmPolicy", environments, policy_kwargs=layout, device="cpu")
    model.policy.lstm_actor.load_state_dict(policy.recurrent.state_dict())
    model.policy.action_net.load_state_dict(policy.readout.state_dict())
    observation = torch.from_numpy(environments.reset())
    memory = (torch.zeros(1, K, policy.recurrent.hidden_size),) * 2
    expected = policy(observation[:, None], torch.ones(K, 1)).logits[:, 0]
    found, _ = model.policy.get_distribution(observation, memory, torch.ones(K))
    assert isinstance(found.distribution, Categorical)
    torch.testing.assert_close(found.distribution.logits, expected)
    return environments, model


def recurrent_ppo(task: Task, policy: RecurrentPolicy) -> Work:
    """DummyVecEnv and `predict`; ended episodes restart at once, so all 50 environments are always live."""
    environments, model = peer_parts(task, policy)
    observation = environments.reset()
    memory = None
    done = np.ones(K, bool)

    def work() -> int:
        nonlocal observation, memory, done
        for _ in range(VECTOR_STEPS):
            action, memory = model.predict(observation, memory, done, deterministic=False)
            observation, _, done, _ = environments.step(action)
        return VECTOR_STEPS * K

    return work


def recurrent_ppo_episodes(task: Task, policy: RecurrentPolicy) -> Work:
    """DummyVecEnv and `predict` for our product, 50 whole episodes; steps after the end of an episode do not count."""
    environments, model = peer_parts(task, policy)

    def work() -> int:
        observation = environments.reset()
        memory = None
        done = np.ones(K, bool)
        live = np.ones(K, bool)
        steps = 0
        while live.any():
            action, memory = model.predict(observation, memory, done, deterministic=False)
            observation, _, done, _ = environments.step(action)
            steps += int(live.sum())
            live &= ~done
        return steps

    return work


def mean_return(task: Task, policy: RecurrentPolicy, episodes: int = 400) -> float:
    """Return the mean return of the policy in our simulator."""
    trajectories = roll_in(
        task.simulator, RollInPolicy(None, policy.actor()), derive_seeds(0, SeedPurpose.TEST, 0, episodes)
    )
    return float(trajectories.returns.mean())


def main() -> None:
    options = interleave.arguments(__doc__, rounds=9, seconds=0.3)
    tasks = [
        Task(CartPole(), cartpole, recurrent_balancing()),
        Task(make_partial_acrobot(200), acrobot_positions, recurrent_swinging()),
    ]
    contenders: dict[tuple[str, str], Work] = {}
    for task in tasks:
        head = CategoricalHead(int(task.simulator.action_space.n))
        random = RecurrentPolicy(
            task.simulator.observation_space.shape[0], head, generator=torch.Generator().manual_seed(0)
        )
        for kind, policy in {"decent": task.policy, "random": random}.items():
            case = f"{task.simulator.name}, {kind} policy (return {mean_return(task, policy):.0f})"
            for name, contender in CONTENDERS.items():
                contenders[case, name] = contender(task, policy)
    spent = interleave.interleave(contenders, options.rounds, options.seconds)
    rows = []
    targets = []
    for (case, name), seconds in spent.items():
        rows.append(interleave.summary(case, name, "steps/s", [1 / s for s in seconds]))
        if name != "aggrevated":
            ratio = interleave.ratios(seconds, spent[case, "aggrevated"])
            targets.append(interleave.at_least(case, f"speed / {name}", 6, ratio))
    interleave.report("Roll-in speed, recurrent policies", rows, targets, options)


CONTENDERS = {
    "aggrevated": ours,
    "RecurrentPPO": recurrent_ppo,
    "RecurrentPPO, whole episodes": recurrent_ppo_episodes,
}

if __name__ == "__main__":
    main()
