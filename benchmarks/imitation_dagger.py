"""DAgger of the library `imitation`, used as in its tutorial, with our expert and a student of our size."""

from collections.abc import Callable, Sequence
from tempfile import TemporaryDirectory

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

from aggrevated.arrays import Array
from aggrevated.experts.loading import load_expert
from aggrevated.experts.q_network import QNetworkExpert
from aggrevated.simulators import Simulator


class Advisor(NonTrainablePolicy):
    """Our expert, as `imitation` asks one: π*(s) is what its Q-network expects the highest reward of."""

    def __init__(self, expert: QNetworkExpert, observation_space: Space, action_space: Space) -> None:
        super().__init__(observation_space, action_space)
        self.network = expert.network

    def _choose_action(self, obs: Array) -> Array:
        return np.argmax(self.network(obs[None]), axis=1)[0]


def train(
    simulator: Simulator,
    environment: str,
    seed: int,
    hidden: Sequence[int],
    budget: int,
    report: Callable[[int, Callable[[Array], Array]], None],
) -> None:
    """Round after round until the budget is used; `report(environment steps, mode)` before the first and after each."""
    datasets.disable_progress_bars()  # `imitation` keeps its demonstrations with it
    set_random_seed(seed)
    steps = Monitor(gymnasium.make(environment, max_episode_steps=simulator.horizon, disable_env_checker=True))
    advisor = Advisor(load_expert(simulator.name, simulator), steps.observation_space, steps.action_space)
    with TemporaryDirectory() as folder:
        trainer = trainer_for(advisor, steps, seed, hidden, folder)

        def mode(observations: Array) -> Array:
            return trainer.policy.predict(observations, deterministic=True)[0]

        report(0, mode)
        while steps.get_total_steps() < budget:
            # one round; episodes that it would run for its log only are no part of DAgger
            trainer.train(1, bc_train_kwargs={"log_rollouts_venv": None, "progress_bar": False})
            report(steps.get_total_steps(), mode)


def trainer_for(
    advisor: Advisor, environment: Monitor, seed: int, hidden: Sequence[int], folder: str
) -> SimpleDAggerTrainer:
    """The tutorial's trainer, with a student of so many ReLU instead of two layers of 32 tanh."""
    lanes = DummyVecEnv([lambda: environment])
    lanes.seed(seed)
    spaces = lanes.observation_space, lanes.action_space
    rng, silent = np.random.default_rng(seed), logger.configure(folder, format_strs=[])
    # the learning rate of this policy's own optimiser is not used: BC has an Adam of its own
    student = ActorCriticPolicy(*spaces, lambda _: np.inf, net_arch=list(hidden), activation_fn=torch.nn.ReLU)
    cloning = BC(
        observation_space=spaces[0], action_space=spaces[1], rng=rng, policy=student, device="cpu", custom_logger=silent
    )
    return SimpleDAggerTrainer(
        venv=lanes, scratch_dir=folder, expert_policy=advisor, bc_trainer=cloning, rng=rng, custom_logger=silent
    )
