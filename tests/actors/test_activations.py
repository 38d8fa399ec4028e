"""Activations equal those of torch, and their bits do not depend on the batch."""

import numpy as np
import pytest
import torch

from aggrevated.actors.activations import ACTIVATIONS, find_activation_name

CLASSES = {name: cls for cls in vars(torch.nn).values() if (name := find_activation_name(str(cls)))}


def test_activations_cover_the_names_that_torch_has() -> None:
    assert CLASSES.keys() == ACTIVATIONS.keys()
    assert len(CLASSES) == 22


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_activation_matches_torch_to_a_millionth(name: str, dtype: type) -> None:
    x = np.concatenate([np.linspace(-12, 12, 4_001), [-1e4, -90, -0.0, 0, 30, 1e4, 1e-30]]).astype(dtype)
    expected = CLASSES[name]().eval()(torch.from_numpy(x.copy())).numpy()
    found = ACTIVATIONS[name](x.copy())
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1.5e-6)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_gives_the_same_bits_alone_and_in_a_batch(name: str) -> None:
    x = np.random.default_rng(0).normal(0, 3, (7, 13)).astype(np.float32)
    batch = ACTIVATIONS[name](x.copy())
    for index in np.ndindex(x.shape):
        assert ACTIVATIONS[name](x[index].reshape(1, 1).copy()).tobytes() == batch[index].tobytes()


@pytest.mark.parametrize(
    "text", ["<class 'torch.nn.modules.activation.PReLU'>", "<class 'mine.ReLU'>", "relu", "<function relu at 0x1>", ""]
)
def test_activation_by_name_returns_none_for_unknown_names(text: str) -> None:
    assert find_activation_name(text) is None
