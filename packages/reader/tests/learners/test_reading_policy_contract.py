"""The contract of parser policies for the policy of the page reader."""

import pytest

from helpers.parser_policies import reader
from helpers.parser_policy_contract import PAGES, ParserPolicyContract
from helpers.policy_classes import policy_classes_in


def test_parser_policy_contract_covers_every_reader_policy_class():
    assert policy_classes_in("aggrevated_reader.learners") == {type(reader("reading", PAGES))}


@pytest.mark.parametrize("kind", ["reading"])
class TestReadingPolicy(ParserPolicyContract):
    """Contract of parser policies for the reading policy."""
