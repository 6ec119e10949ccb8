"""Strings that end an answer. Its text comes out without the string that was found, and without the beginning of one.
They do not apply to its reasoning.
"""

from collections.abc import Callable

from kvdesk.backends.local.llama.samplers.utf8 import Utf8Decoder
from kvdesk.reasoning import SaidStart


class StopStrings:
    """The text of one answer, from its tokens to what may be sent. Token boundaries do not matter: the answer ends at
    the string whose last character comes first, among several the longest. Text that may begin a string is held back
    with its tokens until that is certain.

    piece  the bytes of a token
    utf8   where the answer is continued, with the beginning of its next character
    said   finds where the answer begins to say something: a string before that, in its reasoning, does not count;
           None if all of it counts
    before where the answer is continued, its text
    found  the string that ended the answer; "" while none has
    n_sent characters that `take` has returned
    """

    def __init__(
        self,
        strings: tuple[str, ...],
        piece: Callable[[int], bytes],
        utf8: Utf8Decoder,
        said: SaidStart | None = None,
        before: str = "",
    ) -> None:
        self._strings, self._piece, self._utf8 = strings, piece, utf8
        self._said, self._n_before = said, len(before)
        if said is not None and before:
            said.take(before)
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
        start = self._start(new)
        if start is None:
            return False
        matches = [(at + len(string), at, string) for string in self._strings if (at := text.find(string, start)) >= 0]
        if matches:
            _, self._n_certain, self.found = min(matches)
            self._text = text[: self._n_certain]
            return True
        held = 0
        if text.endswith(self._beginnings, start):
            held = next(len(beginning) for beginning in self._beginnings if text.endswith(beginning, start))
        self._n_certain = len(text) - held
        return False

    def _start(self, new: str) -> int | None:
        """From where on strings count in the text that was not sent; None while that is not known."""
        if self._said is None:
            return 0
        self._said.take(new)
        n_gone = self._n_before + self.n_sent
        if self._said.at is None:
            self._n_certain = max(0, self._said.n_other - n_gone)
            return None
        start = max(0, self._said.at - n_gone)
        if not start:
            self._said = None
        return start

    def take(self, *, over: bool) -> tuple[str, list[int]]:
        """The text that can be sent now, and its tokens. `over`: no token comes any more, and nothing is held back."""
        n = len(self._text) if over else self._n_certain
        text, self._text, self._n_certain = self._text[:n], self._text[n:], 0
        self.n_sent += n
        all_of_them = over and not self.found
        n_tokens = sum(all_of_them or end <= self.n_sent for _, end in self._tokens)
        tokens, self._tokens = self._tokens[:n_tokens], self._tokens[n_tokens:]
        return text, [token for token, _ in tokens]
