"""Code shared by tests: small problems, environments, contracts of components, and ways to run commands."""

import pytest

pytest.register_assert_rewrite(
    "helpers.parser_policy_contract", "helpers.problem_contract", "helpers.simulator_contract"
)
