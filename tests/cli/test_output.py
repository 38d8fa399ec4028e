"""Text that commands print for people."""

from aggrevated.cli.console import format_value


def test_format_value_lists_uas_breakdowns_and_shows_other_values_as_they_are():
    assert format_value({"x": {"uas": 0.5, "symbols": 3}}) == "x 0.50 (3)"
    assert format_value({"heads": [[0.1, 0.2, 3]]}) == "{'heads': [[0.1, 0.2, 3]]}"  # bins of confidence
    assert format_value(0.123456) == "0.1235" and format_value(None) == "None"
