"""The contract of parser policies, for the policies of the library."""

import pytest

from helpers.parser_policies import LIBRARY_KINDS, reader
from helpers.parser_policy_contract import PAGES, ParserPolicyContract
from helpers.policy_classes import policy_classes_in


def test_parser_policy_contract_covers_every_parser_policy_class():
    """A new policy needs a kind in `LIBRARY_KINDS`."""
    assert policy_classes_in("aggrevated.parsing.learners") == {type(reader(kind, PAGES)) for kind in LIBRARY_KINDS}


@pytest.mark.parametrize("kind", LIBRARY_KINDS)
class TestLibraryParserPolicies(ParserPolicyContract):
    """The contract, for every kind of the library."""
