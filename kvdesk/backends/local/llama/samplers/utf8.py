"""Decodes the bytes of tokens to text, piece by piece.

Owns the bytes of an incomplete character. Knows nothing of tokens, models or stop conditions.
"""

import codecs


class Utf8Decoder:
    """Turns pieces of UTF-8 into text; a character split over pieces appears once, whole, when its last byte comes.

    Bytes that can no longer become a character appear as U+FFFD as soon as that is certain, never sooner.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def pending(self) -> bool:
        """Whether the start of a character is held back."""
        return bool(self._decoder.getstate()[0])

    def decode(self, piece: bytes) -> str:
        """The text that `piece` completes; empty while a character is still incomplete."""
        return self._decoder.decode(piece)

    def flush(self) -> str:
        """The end of the text: pending bytes become U+FFFD. The decoder can then decode another text."""
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text
