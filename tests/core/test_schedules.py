"""Values of schedules."""

from math import exp, log

import pytest

from aggrevated.config.loop import ALPHA_SCHEDULES, LoopSettings
from aggrevated.config.resolver import resolve_config
from aggrevated.core.errors import UsageError
from aggrevated.core.schedules import (
    ZERO_SCHEDULE,
    constant_schedule,
    evaluate_schedule,
    exponential_schedule,
    geometric_schedule,
    inverse_sigmoid_schedule,
    linear_schedule,
    lower_bounded,
)


def test_geometric_schedule_starts_at_iteration_1_and_decays_to_0():
    assert [geometric_schedule(0.5, 0.5)(n) for n in (1, 2, 3, 4)] == [0.5, 0.25, 0.125, 0.0625]
    assert [geometric_schedule(0.3, 1.0)(n) for n in (1, 2, 100)] == [0.3, 0.3, 0.3]
    assert geometric_schedule(1.0, 0.9)(1000) < 1e-40


def test_zero_schedule_is_0_at_every_iteration():
    assert [ZERO_SCHEDULE(n) for n in (1, 2, 100)] == [0.0, 0.0, 0.0]


def test_linear_schedule_is_linear_and_stays_at_its_last_value():
    assert [linear_schedule(1.0, 0.0, 4)(n) for n in (1, 2, 3, 4, 5, 6, 100)] == [1.0, 0.75, 0.5, 0.25, 0.0, 0.0, 0.0]
    assert [linear_schedule(0.5, 1.5, 2)(n) for n in (1, 2, 3, 4)] == [0.5, 1.0, 1.5, 1.5]
    assert [linear_schedule(0.4, 0.04, 3)(n) for n in (1, 2, 3, 4)] == pytest.approx([0.4, 0.28, 0.16, 0.04])


def test_evaluate_schedule_accepts_a_number_or_a_schedule():
    assert [evaluate_schedule(0.3, n) for n in (1, 2, 100)] == [0.3, 0.3, 0.3]
    assert [evaluate_schedule(geometric_schedule(0.5, 0.5), n) for n in (1, 2, 3)] == [0.5, 0.25, 0.125]


def test_constant_schedule_never_changes():
    assert [constant_schedule(0.3)(n) for n in (1, 2, 100)] == [0.3, 0.3, 0.3]


def test_exponential_schedule_is_k_to_the_power_of_completed_iterations():
    """ε_i = k^i of scheduled sampling, for i = n − 1."""
    k = exp(-1 / 8)
    assert [exponential_schedule(1.0, 8.0)(n) for n in (1, 2, 3, 9)] == pytest.approx([1.0, k, k**2, exp(-1)])
    assert exponential_schedule(0.5, 8.0)(9) == pytest.approx(0.5 * exp(-1))


def test_inverse_sigmoid_schedule_matches_scheduled_sampling():
    """ε_i = k / (k + exp(i / k)), for i = n − 1: k / (k + 1) at first, and 1/2 at i = k ln k."""
    schedule = inverse_sigmoid_schedule(1.0, 10.0)
    assert [schedule(n) for n in (1, 11, 51)] == pytest.approx([10 / 11, 10 / (10 + exp(1)), 10 / (10 + exp(5))])
    assert inverse_sigmoid_schedule(1.0, exp(3.0))(1 + 3 * exp(3.0)) == pytest.approx(0.5)
    assert schedule(1 + 10 * log(10)) == pytest.approx(0.5) and 0 <= schedule(10**9) < 1e-100


def test_lower_bounded_schedule_never_falls_below_its_bound():
    """ε_i = max(ε, k − c i)."""
    bounded = lower_bounded(0.2, linear_schedule(1.0, 0.0, 4))
    assert [bounded(n) for n in (1, 2, 3, 4, 5, 100)] == [1.0, 0.75, 0.5, 0.25, 0.2, 0.2]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"alpha_decay": 0.5}, [0.8, 0.4, 0.2]),
        ({"alpha_schedule": "linear", "alpha_scale": 4.0}, [0.8, 0.6, 0.4]),
        ({"alpha_schedule": "exponential", "alpha_scale": 2.0}, [0.8, 0.8 * exp(-0.5), 0.8 * exp(-1)]),
        ({"alpha_schedule": "inverse-sigmoid", "alpha_scale": 1.0}, [0.8 / (1 + exp(i)) for i in range(3)]),
        ({"alpha_schedule": "constant"}, [0.8, 0.8, 0.8]),
        ({"alpha_decay": 0.5, "alpha_min": 0.3}, [0.8, 0.4, 0.3]),
    ],
)
def test_loop_settings_build_every_alpha_schedule_by_name(settings, expected):
    alpha = LoopSettings(alpha_start=0.8, **settings).alpha
    assert [alpha(n) for n in (1, 2, 3)] == pytest.approx(expected)


@pytest.mark.parametrize("name", ALPHA_SCHEDULES)
def test_alpha_schedule_refuses_parameters_of_other_schedules(name):
    shape = ALPHA_SCHEDULES[name][1]
    for other in {"alpha_decay", "alpha_scale"} - {shape}:
        with pytest.raises(UsageError, match=f"--{other.replace('_', '-')} has no effect on --alpha-schedule {name}"):
            resolve_config("cartpole", "dagger", alpha_schedule=name, alpha_start=0.5, **{other: 0.5})
    resolve_config(
        "cartpole", "dagger", alpha_schedule=name, alpha_start=0.5, **({shape: 0.5} if shape != "alpha_start" else {})
    )


def test_natural_update_refuses_alpha_1_in_the_first_iteration():
    settings = {"alpha_start": 1.0, "update": "natural"}
    resolve_config("cartpole", "dagger", alpha_schedule="inverse-sigmoid", **settings)
    with pytest.raises(UsageError, match=r"--alpha-start is 1\.0, but must be below 1 for natural"):
        resolve_config("cartpole", "dagger", alpha_schedule="linear", **settings)
