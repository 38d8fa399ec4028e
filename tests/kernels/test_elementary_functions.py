"""Elementary functions: close to the true values, and independent of their neighbors in an array."""

import numpy as np

from aggrevated.kernels.elementary_functions import exp_scalar, gumbel, log_scalar, tanh, tanh_scalar


def test_tanh_is_within_a_few_bits_everywhere():
    x = np.concatenate([np.linspace(-12, 12, 200_001), np.logspace(-30, 0, 10_000)]).astype(np.float32)
    true = np.tanh(x.astype(np.float64))
    np.testing.assert_allclose(tanh(x), true, rtol=4e-7, atol=0)


def test_tanh_of_infinite_and_nan_inputs_is_exact():
    x = np.array([np.nan, np.inf, -np.inf, 0.0, 88.0, -88.0], np.float32)
    np.testing.assert_array_equal(tanh(x), np.array([np.nan, 1, -1, 0, 1, -1], np.float32))


def test_tanh_of_float64_is_numpys():
    x = np.linspace(-3, 3, 7)
    assert tanh(x).dtype == np.float64
    np.testing.assert_array_equal(tanh(x), np.tanh(x))


def test_tanh_of_a_number_does_not_depend_on_its_neighbors():
    x = np.random.default_rng(0).normal(size=1003).astype(np.float32)
    together = tanh(x)
    assert all(tanh(x[i : i + 1])[0] == together[i] == tanh_scalar(x[i]) for i in range(0, 1003, 17))
    np.testing.assert_array_equal(tanh(x[5:]), together[5:])
    np.testing.assert_array_equal(tanh(x[:-3].reshape(8, 125)[:, ::2]), together[:-3].reshape(8, 125)[:, ::2])


def test_log_scalar_and_gumbel_are_within_a_few_bits():
    u = (np.arange(1, 2**24, 997) * 2.0**-24).astype(np.float32)
    logs = np.array([log_scalar(x) for x in u[::50]])
    np.testing.assert_allclose(logs, np.log(u[::50].astype(np.float64)), rtol=4e-7, atol=1e-9)
    true = -np.log(-np.log(u.astype(np.float64)))
    np.testing.assert_allclose(gumbel(u), true, rtol=4e-7, atol=4e-7)


def test_gumbel_and_tanh_do_not_depend_on_memory_order():
    u = (np.arange(1, 13, dtype=np.float32) / 14).reshape(3, 4)
    np.testing.assert_array_equal(gumbel(u.T).T, gumbel(u))
    np.testing.assert_array_equal(tanh(u.T).T, tanh(u))


def test_gumbel_of_0_is_minus_infinity():
    assert gumbel(np.zeros(3, np.float32)).tolist() == [-np.inf] * 3


def test_exp_scalar_of_non_positive_inputs_is_within_a_few_bits():
    x = np.concatenate([np.linspace(-80, 0, 20_001), [-np.inf, -200.0]]).astype(np.float32)
    actual = np.array([exp_scalar(value) for value in x])
    np.testing.assert_allclose(actual[:-2], np.exp(x[:-2].astype(np.float64)), rtol=4e-7)
    assert (actual[-2:] < 2e-35).all()
