"""Utf8Decoder: any cut of any bytes gives the text that decoding them at once gives."""

from hypothesis import given
from hypothesis import strategies as st

from kvdesk.backends.local.llama.samplers.utf8 import Utf8Decoder


@given(st.lists(st.binary(max_size=6), max_size=30))
def test_any_bytes_in_any_pieces(pieces: list[bytes]) -> None:
    decoder = Utf8Decoder()
    text = "".join(decoder.decode(piece) for piece in pieces) + decoder.flush()
    assert text == b"".join(pieces).decode("utf-8", errors="replace")


@given(st.text(max_size=50))
def test_text_in_single_bytes_has_no_replacement(text: str) -> None:
    decoder = Utf8Decoder()
    pieces = [decoder.decode(bytes([byte])) for byte in text.encode()]
    assert "".join(pieces) == text
    assert not decoder.pending
    assert decoder.flush() == ""


def test_an_invalid_byte_shows_when_it_is_certain() -> None:
    decoder = Utf8Decoder()
    assert decoder.decode(b"\xe4\xb8") == ""
    assert decoder.pending
    assert decoder.decode(b"x") == "\N{REPLACEMENT CHARACTER}x"
    assert decoder.decode(b"\xff") == "\N{REPLACEMENT CHARACTER}"


def test_flush_ends_one_text_and_starts_another() -> None:
    decoder = Utf8Decoder()
    assert decoder.decode(b"\xc3") == ""
    assert decoder.flush() == "\N{REPLACEMENT CHARACTER}"
    assert decoder.decode(b"\xc3\xa9") == "é"
