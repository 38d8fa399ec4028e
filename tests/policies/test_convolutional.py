"""Image policies: actor and network agree, results do not depend on the batch, every update trains them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from aggrevated.actors.convolutional import NumpyConvolution
from aggrevated.config.resolver import resolve_config
from aggrevated.core.errors import UsageError
from aggrevated.policies.convolutional import ConvolutionalPolicy, ConvolutionalSettings, choose_convolutions
from aggrevated.policies.feed_forward import MlpSettings
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.serialization import load_policy
from aggrevated.storage import digest_tensors
from aggrevated.training.run_folder import Run
from helpers.image_simulators import GRID
from helpers.small_runs import fit_run
from helpers.tiny_mdp import flat, randomise

SHAPES = [(8, 8), (9, 13, 3), (33, 8, 1), (84, 84), (12, 70, 2)]


def sample_images(shape: tuple[int, ...], *batch: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (*batch, *shape)).astype(np.float32)


def make_random_policy(
    shape: tuple[int, ...], head: Any = None, hidden: tuple[int, ...] = (16,)
) -> ConvolutionalPolicy:
    policy = ConvolutionalPolicy(shape, head or CategoricalHead(3), hidden)
    return randomise(policy, 5, 0.1)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("shape", SHAPES)
def test_convolutional_actor_matches_its_network(shape: tuple[int, ...]) -> None:
    policy = make_random_policy(shape, GaussianHead(3))
    seen = sample_images(shape, 2, 3)
    with torch.no_grad():
        expected = policy.distribution(torch.from_numpy(seen), torch.ones(2, 3, dtype=torch.bool)).mean.numpy()
    actual, memory = policy.actor().parameters(seen.reshape(6, *shape), np.zeros((6, 0), np.float32))
    assert expected.std() > 0.01 and memory.shape == (6, 0)
    np.testing.assert_allclose(actual.reshape(2, 3, 3), expected, rtol=1e-5, atol=1e-5)


def test_numpy_convolution_matches_hand_computed_patches() -> None:
    """Each position of the output from its own patch, with zeros beyond the edges."""
    layer = torch.nn.Conv2d(2, 3, 5, 2, padding=2)
    picture = sample_images((9, 12, 2), 1) / 255
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()  # type: ignore[union-attr]
    expected = np.zeros((5, 6, 3))
    wide = np.pad(picture[0], ((2, 2), (2, 2), (0, 0)))
    for row, column, output in np.ndindex(5, 6, 3):
        patch = wide[2 * row : 2 * row + 5, 2 * column : 2 * column + 5]
        expected[row, column, output] = max(0.0, (patch * weight[output].transpose(1, 2, 0)).sum() + bias[output])
    actual = NumpyConvolution.copy_of(layer)(picture)
    np.testing.assert_allclose(actual[0], expected, atol=1e-5)


def test_convolutional_actor_gives_the_same_bits_alone_and_in_a_batch() -> None:
    policy = make_random_policy((10, 11, 3))
    seen = sample_images((10, 11, 3), 17)
    actor = policy.actor()
    none = np.zeros((17, 0), np.float32)
    together, _ = actor.parameters(seen, none)
    for rows in ([0], [16], [3, 9, 4], [*range(5, 17)]):
        np.testing.assert_array_equal(actor.parameters(seen[rows], none[rows])[0], together[rows])


def test_convolutional_policy_scores_match_autograd_per_trajectory() -> None:
    policy = make_random_policy((8, 8))
    seen = torch.from_numpy(sample_images((8, 8), 3, 4))
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], dtype=torch.bool)
    actions = torch.arange(12).reshape(3, 4) % 3
    scores = policy.compute_scores(seen, actions, mask, mask)
    for k in range(3):
        policy.zero_grad()
        (policy.distribution(seen[k : k + 1], mask[k : k + 1]).log_prob(actions[k]) * mask[k]).sum().backward()
        expected = torch.cat([w.grad.flatten() for w in policy.parameters()])  # type: ignore[union-attr]
        torch.testing.assert_close(scores[k], expected, rtol=1e-4, atol=1e-5)


def test_convolutional_policy_starts_near_uniform_and_repeatable_by_seed() -> None:
    pictures = Box(0, 255, (20, 20, 3), np.float32)
    one, same, other = (ConvolutionalSettings().build(pictures, CategoricalHead(3), seed) for seed in (1, 1, 2))
    assert np.array_equal(flat(one), flat(same)) and not np.array_equal(flat(one), flat(other))
    logits, _ = one.actor().parameters(sample_images((20, 20, 3), 50), np.zeros((50, 0), np.float32))
    assert 0 < np.ptp(logits, axis=1).max() < 1


def test_choose_convolutions_depends_on_the_image_size() -> None:
    assert choose_convolutions(8, 8) == [(16, 5, 2), (32, 3, 2)]
    assert choose_convolutions(63, 40) == [(16, 5, 2), (32, 3, 2), (32, 3, 2)]
    assert choose_convolutions(10, 64) == [(16, 5, 4), (32, 3, 2), (32, 3, 2)]


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (Box(0, 255, (7, 20), np.float32), r"at least 8 × 8 pixels, not Box\(7, 20\)"),
        (Box(0, 1, (400,), np.float32), r"choose another --policy"),
        (Discrete(3), "not Discrete"),
        (Box(0, 255, (96, 96, 3), np.float32), r"at most 16,384 numbers, these have 27,648.*GrayscaleObservation"),
    ],
)
def test_convolutional_settings_refuse_non_images_and_large_images(space: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ConvolutionalSettings().build(space, CategoricalHead(2), 0)


def test_mlp_settings_point_to_the_cnn_policy_for_images() -> None:
    with pytest.raises(UsageError, match=r"cannot read observations of type Box\(9, 9\): choose --policy cnn"):
        MlpSettings().build(Box(0, 255, (9, 9), np.float32), CategoricalHead(2), 0)


def test_convolutional_actor_refuses_an_image_of_another_shape() -> None:
    actor = make_random_policy((8, 9)).actor()
    assert actor.parameters(sample_images((8, 9, 1), 2), np.zeros((2, 0), np.float32))[0].shape == (2, 3)
    for shape in ((9, 8), (8, 9, 2), (72,)):
        with pytest.raises(ValueError, match=r"but the policy reads \(8, 9, 1\)"):
            actor.parameters(sample_images(shape, 2), np.zeros((2, 0), np.float32))


LEARNERS = {
    "exponentiated": ("aggrevated", {"iterations": 8, "trajectories": 40}),
    "natural": ("aggrevated", {"update": "natural", "iterations": 3, "trajectories": 10}),
    "per trajectory": ("aggrevated", {"update": "natural", "solver": "held-out", "iterations": 3, "trajectories": 10}),
    "regular": ("aggrevated", {"update": "regular", "iterations": 3, "trajectories": 10}),
    "dagger": ("dagger", {"iterations": 3, "trajectories": 10}),
    "searn": ("searn", {"iterations": 2, "trajectories": 5}),
    "reinforced": ("loki", {"iterations": 3, "trajectories": 5, "imitation_max": 1}),
}


@pytest.mark.parametrize(("method", "given"), LEARNERS.values(), ids=LEARNERS)
def test_convolutional_policy_learns_and_resumes_bit_for_bit(
    tmp_path: Path, method: str, given: dict[str, Any]
) -> None:
    oracle = {"oracle": "q-star"} if method in ("aggrevated", "loki") else {}
    config = resolve_config(GRID, method, **given, **oracle, checkpoint_every=1)
    uninterrupted = Run.create(tmp_path / "whole", config)
    result = fit_run(uninterrupted)
    assert all(line.kl > 0 for line in uninterrupted.metrics())
    if method == "aggrevated" and config.update.name == "exponentiated":
        assert result.initial_return < -12 and result.more["ratio"] > 0.7
    broken = Run.create(tmp_path / "broken", config)

    class StoppedError(Exception): ...

    def stop(line: Any) -> None:
        if line.iteration == 2:
            raise StoppedError

    if config.loop.iterations > 2:
        with pytest.raises(StoppedError):
            fit_run(broken, stop)
    resumed = fit_run(Run.open(broken.folder, GRID))
    assert (
        resumed.weights_sha256
        == result.weights_sha256
        == digest_tensors(Run.open(uninterrupted.folder, GRID).policy.state_dict())
    )


def test_convolutional_policy_round_trips_through_a_file(tmp_path: Path) -> None:
    policy = ConvolutionalPolicy((9, 8, 3), CategoricalHead(3), hidden=(5,))
    policy.save(tmp_path / "p.safetensors")
    loaded = load_policy(tmp_path / "p.safetensors")
    picture = np.random.default_rng(0).integers(0, 256, (9, 8, 3))
    assert loaded.predict(picture, deterministic=True)[0] == policy.predict(picture, deterministic=True)[0]
    assert loaded.predict(np.stack([picture] * 2), deterministic=True)[0].shape == (2,)
    assert all(torch.equal(a, b) for a, b in zip(policy.parameters(), loaded.parameters(), strict=True))
