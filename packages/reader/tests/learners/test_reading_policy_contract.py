"""The policy of the page reader, held to the contract of all policies that read pages."""

import pytest

from helpers.parser_policies import reader
from helpers.parser_policy_contract import PAGES, ParserPolicyContract
from helpers.policy_classes import policy_classes_in


def test_parser_policy_contract_covers_every_reader_policy_class():
    assert policy_classes_in("aggrevated_reader.learners") == {type(reader("reading", PAGES))}


@pytest.mark.parametrize("kind", ["reading"])
class TestReadingPolicy(ParserPolicyContract):
    """The contract, for the policy of the page reader."""
