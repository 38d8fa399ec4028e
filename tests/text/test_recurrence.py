"""The recurrent layer against torch's LSTM cell, its gradient by finite differences, and a sentence alone."""

import numpy as np
import pytest
import torch

from aggrevated.text.recurrence import BothWays, recur

INPUTS, HIDDEN = 5, 3
LENGTHS = np.array([4, 1, 6])


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return BothWays(INPUTS, HIDDEN)


def some_words():
    return torch.randn(int(LENGTHS.sum()), INPUTS, generator=torch.Generator().manual_seed(1))


def by_torch(layer, x):
    """The same by torch's LSTM, sentence by sentence."""
    lstm = torch.nn.LSTM(INPUTS, HIDDEN, bidirectional=True)
    inputs, bias = layer.gates.weight, layer.gates.bias
    half = 4 * HIDDEN
    weights = {
        "weight_ih_l0": inputs[:half],
        "bias_ih_l0": bias[:half],
        "weight_hh_l0": layer.memory[0].T,
        "bias_hh_l0": torch.zeros(half),
        "weight_ih_l0_reverse": inputs[half:],
        "bias_ih_l0_reverse": bias[half:],
        "weight_hh_l0_reverse": layer.memory[1].T,
        "bias_hh_l0_reverse": torch.zeros(half),
    }
    return torch.cat([torch.func.functional_call(lstm, weights, (one,))[0] for one in x.split(LENGTHS.tolist())])


def test_it_is_torchs_lstm_both_ways(layer):
    x = some_words()
    torch.testing.assert_close(layer(x, LENGTHS), by_torch(layer, x), rtol=1e-5, atol=1e-6)


def test_its_gradient_is_that_of_torchs(layer):
    x, weight = some_words().requires_grad_(), torch.randn(len(some_words()), 2 * HIDDEN)
    own = torch.autograd.grad((layer(x, LENGTHS) * weight).sum(), [x, *layer.parameters()])
    other = torch.autograd.grad((by_torch(layer, x) * weight).sum(), [x, *layer.parameters()])
    for found, expected in zip(own, other, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_its_gradient_by_finite_differences(layer):
    x, step = some_words(), 1e-2
    (slope,) = torch.autograd.grad(layer(x, LENGTHS).square().sum(), [layer.memory])
    for place in ((0, 1, 2), (1, 2, 11), (0, 0, 7)):
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                layer.memory[place] += sign * step
                values.append(layer(x, LENGTHS).square().sum().item())
                layer.memory[place] -= sign * step
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(slope[place].item(), rel=1e-2, abs=1e-4)


def test_a_sentence_has_the_same_bits_alone_and_among_others(layer):
    inputs = layer.gates(some_words()).detach().numpy()
    memory = layer.memory.detach().numpy()
    together, first = recur(inputs, memory, LENGTHS)[0], 0
    for length in LENGTHS:
        alone = recur(inputs[first : first + length], memory, np.array([length]))[0]
        assert np.array_equal(alone, together[first : first + length])
        first += length


def test_its_second_derivative_by_finite_differences(layer):
    x, direction, step = some_words(), torch.randn(2, HIDDEN, 4 * HIDDEN), 1e-2

    def slope():
        (found,) = torch.autograd.grad(layer(x, LENGTHS).square().sum(), [layer.memory], create_graph=True)
        return found

    (curved,) = torch.autograd.grad((slope() * direction).sum(), [layer.memory])
    with torch.no_grad():
        layer.memory += step * direction
        up = slope_of(layer, x)
        layer.memory -= 2 * step * direction
        down = slope_of(layer, x)
        layer.memory += step * direction
    torch.testing.assert_close(curved, (up - down) / (2 * step), rtol=2e-2, atol=2e-2)


def slope_of(layer, x):
    with torch.enable_grad():
        return torch.autograd.grad(layer(x, LENGTHS).square().sum(), [layer.memory])[0]
