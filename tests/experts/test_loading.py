"""Experts: shipped ones fit their cards, a Stable-Baselines3 zip acts as it did there, and nothing else gets in."""

from pathlib import Path

import numpy as np
import pytest
import torch

from aggrevated.errors import DataError
from aggrevated.experts.loading import SHIPPED, load_expert
from aggrevated.experts.training import RECIPES
from aggrevated.runs.storage import seal, unseal
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.cartpole import CartPole


@pytest.mark.parametrize("task", RECIPES)
def test_a_shipped_expert_is_in_the_band_of_its_recipe(task: str) -> None:
    card, recipe = unseal(SHIPPED / f"{task}.safetensors")[1], RECIPES[task]
    assert recipe.band[0] <= card["mean_return"] <= recipe.band[1]
    assert card["why"] == recipe.why and card["settings"] == recipe.settings and card["seed"] == 0


def test_a_stable_baselines_zip_gives_the_actions_it_gave_there(tmp_path: Path) -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    import gymnasium

    model = sb3.DQN(
        "MlpPolicy", gymnasium.make("Acrobot-v1"), policy_kwargs={"net_arch": [32, 16]}, seed=3, device="cpu"
    )
    model.save(tmp_path / "model.zip")
    simulator = Acrobot()
    expert = load_expert(str(tmp_path / "model.zip"), simulator)
    states = np.random.default_rng(0).normal(size=(200, 4))
    with torch.no_grad():
        rewards = model.q_net(torch.from_numpy(simulator.observe(states))).numpy()
    np.testing.assert_allclose(expert.q(states), -rewards, atol=1e-5)
    actions, _ = model.predict(simulator.observe(states), deterministic=True)
    np.testing.assert_array_equal(expert.act(states, 0), actions)


def test_a_file_with_other_tensors_is_refused(tmp_path: Path) -> None:
    seal(tmp_path / "other.safetensors", {"weight": torch.zeros(2, 4)}, {})
    with pytest.raises(DataError, match="not fully connected, or not of the kind that cartpole needs; give a DQN"):
        load_expert(str(tmp_path / "other.safetensors"), CartPole())
