"""DAgger of the library `imitation`, used as in its tutorial, with our expert and a student of our size."""

from collections.abc import Callable, Mapping
from tempfile import TemporaryDirectory
from typing import Any

import datasets
import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Space
from imitation.algorithms.bc import BC
from imitation.algorithms.dagger import SimpleDAggerTrainer
from imitation.policies.base import NonTrainablePolicy
from imitation.util import logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv

from aggrevated.core.arrays import Array
from aggrevated.experts.loading import load_expert
from aggrevated.simulators import Simulator
from aggrevated.tasks import find_task
from as_environment import AsEnvironment


class Advisor(NonTrainablePolicy):
    """Our expert with the interface of `imitation`."""

    def __init__(self, choose: Callable[[Array], Array], observation_space: Space, action_space: Space) -> None:
        super().__init__(observation_space, action_space)
        self.choose = choose

    def _choose_action(self, obs: Array) -> Array:
        return self.choose(obs)


def train(
    simulator: Simulator,
    environment: str | AsEnvironment,
    seed: int,
    settings: Mapping[str, Any],
    budget: int,
    report: Callable[[int, Callable[[Array], Array]], None],
) -> None:
    """Train round by round until the budget is used; call `report(environment steps, mode)` after each."""
    datasets.disable_progress_bars()  # `imitation` stores its demonstrations with it
    set_random_seed(seed)
    steps, choose = taught(simulator, environment)
    advisor = Advisor(choose, steps.observation_space, steps.action_space)
    least = {f"rollout_round_min_{name}": settings[name] for name in ("episodes", "timesteps") if name in settings}
    # without the episodes that it runs for its log only
    cloning = {"log_rollouts_venv": None, "progress_bar": False, "n_epochs": settings.get("n_epochs", 4)}
    with TemporaryDirectory() as folder:
        trainer = trainer_for(advisor, steps, seed, settings, folder)

        def mode(observations: Array) -> Array:
            return trainer.policy.predict(observations, deterministic=True)[0]

        report(0, mode)
        while steps.get_total_steps() < budget:
            trainer.train(1, bc_train_kwargs=cloning, **least)  # one round
            report(steps.get_total_steps(), mode)


def taught(simulator: Simulator, environment: str | AsEnvironment) -> tuple[Monitor, Callable[[Array], Array]]:
    """Return the environment and π*, which sees Gymnasium's observations or, where the student sees less, our state."""
    if isinstance(environment, AsEnvironment):
        hidden = find_task(simulator.name).problem.loaded_expert
        return Monitor(environment), lambda obs: hidden.act(environment.state, 0)[0]
    expert = load_expert(simulator.name, simulator)
    steps = gymnasium.make(environment, max_episode_steps=simulator.horizon, disable_env_checker=True)
    return Monitor(steps), lambda obs: np.argmax(expert.network(obs[None]), axis=1)[0]


def trainer_for(
    advisor: Advisor, environment: Monitor, seed: int, settings: Mapping[str, Any], folder: str
) -> SimpleDAggerTrainer:
    """Return the tutorial's trainer, with a student of one layer of ReLU instead of two layers of 32 tanh."""
    environments = DummyVecEnv([lambda: environment])
    environments.seed(seed)
    spaces = environments.observation_space, environments.action_space
    rng = np.random.default_rng(seed)
    silent = logger.configure(folder, format_strs=[])
    # the learning rate of this policy's optimizer is not used: BC has its own Adam
    student = ActorCriticPolicy(
        *spaces, lambda _: np.inf, net_arch=list(settings["net_arch"]), activation_fn=torch.nn.ReLU
    )
    cloning = BC(
        observation_space=spaces[0], action_space=spaces[1], rng=rng, policy=student, device="cpu", custom_logger=silent
    )
    return SimpleDAggerTrainer(
        venv=environments, scratch_dir=folder, expert_policy=advisor, bc_trainer=cloning, rng=rng, custom_logger=silent
    )
