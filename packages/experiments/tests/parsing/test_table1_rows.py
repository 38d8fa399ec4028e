"""The rows of the tables of parsers: every row resolves, and all are comparable."""

import pytest

from aggrevated.config import Config
from aggrevated.tasks import algebra
from aggrevated_experiments.figures import make_row_config
from aggrevated_experiments.parsing.table1_rows import count_pages_seen


@pytest.mark.parametrize("quick", [False, True])
def test_every_row_of_the_parsing_tables_resolves(quick: bool) -> None:
    for row in (*algebra.TABLE1, *algebra.CURVES, *algebra.REAL_INK):
        config, full = (make_row_config(algebra.TASK, row, shorter) for shorter in (quick, False))
        assert (config.method, config.update.name, config.policy.name) == (row.method, row.update, row.policy)
        assert config.loop.iterations == (max(1, full.loop.iterations // 5) if quick else full.loop.iterations)
        open_still = {"oracle", "anneal_iterations", *(["iterations"] if quick else [])}
        given = {name: value for name, value in row.settings.items() if name not in open_still}
        assert given.items() <= config.settings.items()
    assert [row.paper_value for row in algebra.CURVES[:2]] == [0.924, 0.915]
    assert all(row in algebra.TABLE1 for row in algebra.CURVES)  # curves use their runs
    assert all(row in algebra.TABLE1 and not changes[0] for row, changes in algebra.TUNING)


def test_table1_rows_have_equal_pages_starts_and_bonuses() -> None:
    """All networks see equally many pages, starts are equal, and cost-based rows have the same bonus."""
    configs = [make_row_config(algebra.TASK, row, quick=False) for row in algebra.TABLE1]
    networks = [config for config in configs if config.policy.name != "kernel-svm"]
    assert {count_pages_seen(config, config.loop.iterations) for config in networks} == {6400}
    assert {config.loop.validate_every * config.loop.trajectories for config in networks} == {320}
    starts = {(config.policy.name, config.start) for config in networks if config.start.name != "random"}
    assert len(starts) == 3 and {start.name for _, start in starts} == {"supervised"}
    for config in networks:
        assert config.loss.entropy == (0.0 if config.update.name == "exponentiated" or is_likelihood(config) else 0.4)
        assert config.oracle.name == ("critic" if not config.method_spec.queries_expert else config.oracle.name)
        assert getattr(config.update, "anneal_iterations", None) == config.loop.iterations
    assert [(c.method, c.policy.name) for c in networks if c.start.name == "random"] == [
        *((method, "lstm") for method in ("aggrevated", "reinforce", "tnpg")),
        *((method, "reactive") for method in ("reinforce", "tnpg")),
    ]


def is_likelihood(config: Config) -> bool:
    return config.loss.name == "likelihood"
