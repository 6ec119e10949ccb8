"""Strings that end an answer: its text comes out without the one that was found, and without the beginning of one."""

from __future__ import annotations

from collections.abc import Callable

from kvdesk.backends.local.llama.utf8 import Utf8Decoder


class StopStrings:
    """The text of one answer, from its tokens to what may be sent. Where tokens begin and end makes no difference: the
    answer ends at the string whose last character comes first, of several the longest. Text that may be the beginning
    of a string is held back until it is certain, and the tokens that it belongs to with it.

    piece  the bytes of a token
    utf8   where the answer is continued, with the beginning of its next character
    found  the string that ended the answer; "" while none has
    n_sent characters that `take` has returned
    """

    def __init__(self, strings: tuple[str, ...], piece: Callable[[int], bytes], utf8: Utf8Decoder) -> None:
        self._strings, self._piece, self._utf8 = strings, piece, utf8
        beginnings = {text[:n] for text in strings for n in range(1, len(text))}
        self._beginnings = tuple(sorted(beginnings, key=len, reverse=True))
        self._text = ""  # not sent yet
        self._n_certain = 0  # characters of it that belong to no string
        self._tokens: list[tuple[int, int]] = []  # not sent yet, and how many characters there are with them
        self.found = ""
        self.n_sent = 0

    def add(self, token: int) -> bool:
        """The answer's next token. True: it ends here."""
        new = self._utf8.decode(self._piece(token))
        text = self._text = self._text + new
        # a token with half a character belongs to that character
        self._tokens.append((token, self.n_sent + len(text) + self._utf8.pending))
        if not new:
            return False
        matches = [(at + len(string), at, string) for string in self._strings if (at := text.find(string)) >= 0]
        if matches:
            _, self._n_certain, self.found = min(matches)
            self._text = text[: self._n_certain]
            return True
        held = 0
        if text.endswith(self._beginnings):
            held = next(len(beginning) for beginning in self._beginnings if text.endswith(beginning))
        self._n_certain = len(text) - held
        return False

    def take(self, *, over: bool) -> tuple[str, list[int]]:
        """The text that can be sent now, and its tokens. `over`: no token comes any more, and nothing is held back."""
        n = len(self._text) if over else self._n_certain
        text, self._text, self._n_certain = self._text[:n], self._text[n:], 0
        self.n_sent += n
        all_of_them = over and not self.found
        n_tokens = sum(all_of_them or end <= self.n_sent for _, end in self._tokens)
        tokens, self._tokens = self._tokens[:n_tokens], self._tokens[n_tokens:]
        return text, [token for token, _ in tokens]
