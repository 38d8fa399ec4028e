from aggrevated.schedules import NEVER, geometric


def test_geometric_starts_at_n_1_and_goes_to_0():
    assert [geometric(0.5, 0.5)(n) for n in (1, 2, 3, 4)] == [0.5, 0.25, 0.125, 0.0625]
    assert [geometric(0.3, 1.0)(n) for n in (1, 2, 100)] == [0.3, 0.3, 0.3]
    assert geometric(1.0, 0.9)(1000) < 1e-40


def test_never_mixes():
    assert [NEVER(n) for n in (1, 2, 100)] == [0.0, 0.0, 0.0]
