"""Numbers as people type them anywhere."""

import pytest

from kvdesk.numerals import read_real, read_whole


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.7", 0.7),
        ("0,7", 0.7),
        (".5", 0.5),
        (",5", 0.5),
        ("5,", 5.0),
        (" 2 ", 2.0),
        ("+1,5", 1.5),
        ("-1,5", -1.5),
        ("−1.5", -1.5),
        ("1,234", 1.234),
        ("1,234.5", 1234.5),
        ("1.234,5", 1234.5),
        ("1'234.5", 1234.5),
        ("1 234,5", 1234.5),
        ("1\u202f234,5", 1234.5),
        ("1,234,567", 1234567.0),
        ("12,34,567.25", 1234567.25),
        ("٠٫٧", 0.7),
        ("٠،٧", 0.7),
        ("۱٬۲۳۴٫۵", 1234.5),
        ("\u061c-٠٫٧", -0.7),
        ("०.७", 0.7),
        ("0。7", 0.7),
        ("０．７", 0.7),
        ("\U0001e950.\U0001e957", 0.7),
    ],
)
def test_a_point_and_a_comma_separate_decimals_in_every_script(text: str, number: float) -> None:
    assert read_real(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4096", 4096),
        ("4,096", 4096),
        ("4.096", 4096),
        ("4'096", 4096),
        ("4’096", 4096),
        ("4\u00a0096", 4096),
        ("٤٬٠٩٦", 4096),
        ("1,234,567", 1234567),
        ("12,34,567", 1234567),
        ("-12", -12),
        ("007", 7),
    ],
)
def test_whole_numbers_may_be_grouped(text: str, number: int) -> None:
    assert read_whole(text) == number


@pytest.mark.parametrize(
    "text", ["", " ", ".", "-", "--1", "abc", "1e3", "0x10", "1.2.3", "1,23,4", "1,,2", "1..", "²", "½"]
)
def test_what_is_no_number_is_none(text: str) -> None:
    assert read_real(text) is None
    assert read_whole(text) is None


@pytest.mark.parametrize("text", ["0,7", "0.7", ".5", "1,5", "0,125", "4,0960", "1,234.5", "9" * 200])
def test_no_decimals_are_lost_from_a_whole_number(text: str) -> None:
    assert read_whole(text) is None
