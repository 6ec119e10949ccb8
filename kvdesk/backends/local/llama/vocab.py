"""The vocabulary of a model: text to token ids and back. Knows nothing of contexts and conversations."""

import ctypes
import functools
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.deep_stack import run_deep
from kvdesk.errors import NO_TOKENIZER, PromptError
from kvdesk.library.preflight import LONG_LINE, SHORT_LINE
from kvdesk.protocol.model import InfillTokens
from kvdesk.reasoning import TOKENS
from kvdesk.translation import tr

REPEATED = 2000
"""Blanks or digits in a row, aligned, that are refused. Some pre-tokenizers need time quadratic in their number
(deepseek-llm and superbpe, 4e-8 s per pair)."""
_CONTROL = lib.LLAMA_TOKEN_ATTR_CONTROL | lib.LLAMA_TOKEN_ATTR_UNKNOWN

_TAG = re.compile(r"</?[a-z][a-z0-9]*>")


class Vocab:
    """Tokens of one model. Valid as long as the model is loaded.

    longest_line   most characters in a line of text that `tokenize` accepts, as found by the preflight
    """

    def __init__(self, model: Any) -> None:
        self._vocab = lib.llama_model_get_vocab(model)
        self._template = (lib.llama_model_chat_template(model, None) or b"").decode("utf-8", "replace")
        self.n_tokens = int(lib.llama_vocab_n_tokens(self._vocab))
        self.has_text = lib.llama_vocab_type(self._vocab) not in (lib.LLAMA_VOCAB_TYPE_NONE, lib.LLAMA_VOCAB_TYPE_TEST)
        self.longest_line = LONG_LINE
        self._has_expressions = lib.llama_vocab_type(self._vocab) == lib.LLAMA_VOCAB_TYPE_BPE
        self._pieces: dict[int, bytes] = {}
        self.shown = TOKENS  # texts of control tokens that the user sees: the marks around reasoning
        self._eog: dict[int, bool] = {}
        self._buffer = ctypes.create_string_buffer(256)
        self.dry: tuple[object, Any] | None = None  # the latest DRY sampler and its values

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash to distinguish vocabularies, of the number of tokens and the texts of about 500 of them."""
        digest = hashlib.sha256(str(self.n_tokens).encode())
        for token in range(0, self.n_tokens, max(1, self.n_tokens // 500)):
            digest.update((lib.llama_vocab_get_text(self._vocab, token) or b"") + b"\0")
        return digest.hexdigest()[:16]

    @property
    def handle(self) -> Any:
        return self._vocab

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Token ids of `text`. With `parse_special` False, control tokens written out in the text stay text;
        user-defined ones do not (llama-vocab.cpp, `tokenizer_st_partition`; `prompt.text_ids` sees to those).

        A BPE vocabulary splits text by regular expressions. The C++ library's implementation recurses once per
        character of a match (unicode.cpp, `unicode_regex_split_stl`), and libstdc++ takes 323 bytes of stack each time.
        No expression of llama.cpp crosses the end of a line except by blanks, so a line's length bounds the recursion.
        Longer lines are tokenized with a stack deep enough for twice LONG_LINE.

        Raises PromptError if the model has no text tokenizer, or if its tokenizer could not take the text.
        """
        if not self.has_text:
            raise PromptError(tr(NO_TOKENIZER))
        data = text.encode("utf-8", "replace")
        if not self._has_expressions or len(text) <= SHORT_LINE:
            return self._tokenize(data, add_special, parse_special)
        self._check_lines(text)
        return run_deep(lambda: self._tokenize(data, add_special, parse_special))

    def _check_lines(self, text: str) -> None:
        """Raises PromptError."""
        longest = max(map(len, text.replace("\r", "\n").split("\n")))
        if longest > self.longest_line:
            raise PromptError(
                tr(
                    "A line of the text has {longest:,} characters, and this model's tokenizer can take "
                    "{longest_line:,}: break it up."
                ).format(longest=longest, longest_line=self.longest_line)
            )
        blocks = (text[at : at + REPEATED] for at in range(0, len(text) - REPEATED + 1, REPEATED))
        if any(block.isspace() or block.isnumeric() for block in blocks):
            raise PromptError(
                tr(
                    "The text has more than {repeated:,} blanks or digits in a row, and this model's tokenizer "
                    "would take far too long for them: break them up."
                ).format(repeated=REPEATED)
            )

    def _tokenize(self, data: bytes, add_special: bool, parse_special: bool) -> list[int]:
        room = len(data) + 8
        tokens = (lib.llama_token * room)()
        n = lib.llama_tokenize(self._vocab, data, len(data), tokens, room, add_special, parse_special)
        if n < 0:
            tokens = (lib.llama_token * -n)()
            n = lib.llama_tokenize(self._vocab, data, len(data), tokens, -n, add_special, parse_special)
        return list(tokens[:n])

    def piece(self, token: int) -> bytes:
        """Bytes of a token as the user sees them: empty for control tokens, except the marks around reasoning. May end
        inside a character.
        """
        known = self._pieces.get(token)
        if known is None:
            known = self._to_piece(token, special=False)
            if not known and (text := self.text_of(token)) in self.shown:
                known = text.encode()
            self._pieces[token] = known
        return known

    def show(self, texts: frozenset[str]) -> bool:
        """Also show these control tokens from now on. Returns whether that is new."""
        new = texts & self.control_texts - self.shown
        if new:
            self.shown |= new
            self._pieces.clear()
        return bool(new)

    def text(self, tokens: Iterable[int]) -> str:
        """The text of the tokens together, with broken characters marked."""
        return b"".join(map(self.piece, tokens)).decode("utf-8", "replace")

    def label(self, token: int) -> str:
        """Text of a token for the inspector: control tokens written out, broken characters marked."""
        if not self.has_text:
            return f"#{token}"
        return self._to_piece(token, special=True).decode("utf-8", "replace")

    def is_control(self, token: int) -> bool:
        """Whether text never becomes this token without `parse_special`."""
        known = 0 <= token < self.n_tokens  # llama.cpp would crash
        return known and bool(lib.llama_vocab_get_attr(self._vocab, token) & _CONTROL)

    def written(self, token: int) -> bytes:
        """Bytes of a token with control tokens written out, for comparison with a grammar."""
        return self._to_piece(token, special=True)

    def only_token(self, text: str) -> int | None:
        """The single token of a text, control tokens included; None if it is several or none."""
        tokens = self.tokenize(text, add_special=False, parse_special=True)
        return tokens[0] if len(tokens) == 1 else None

    def forget_dry(self) -> None:
        """Free the kept DRY sampler."""
        if self.dry is not None:
            lib.llama_sampler_free(self.dry[1])
            self.dry = None

    def is_eog(self, token: int) -> bool:
        """Whether generation ends with this token."""
        known = self._eog.get(token)
        if known is None:
            known = self._eog[token] = bool(lib.llama_vocab_is_eog(self._vocab, token))
        return known

    @functools.cached_property
    def ends(self) -> frozenset[str]:
        """Texts of the tokens with which generation ends."""
        return frozenset(text for text, token in self.controls.items() if lib.llama_vocab_is_eog(self._vocab, token))

    def ignore_eog(self) -> None:
        """Let no token end generation from now on (llama.cpp's --ignore-eog), to measure answers of a known length."""
        self._eog = dict.fromkeys(range(self.n_tokens), False)

    @functools.cached_property
    def controls(self) -> Mapping[str, int]:
        """Marks, texts that only a template may turn into tokens, with those tokens. A user's text must never become
        one, whatever its attribute: control and unknown tokens, and user-defined ones that are not plain text.
        """
        if not self.has_text:
            return {}
        found: dict[str, int] = {}
        for token in range(self.n_tokens):
            attr = lib.llama_vocab_get_attr(self._vocab, token)
            if not attr & (_CONTROL | lib.LLAMA_TOKEN_ATTR_USER_DEFINED) or not (text := self.text_of(token)):
                continue
            if attr & _CONTROL or _is_mark(text, self._template):
                found.setdefault(text, token)
        return found

    @functools.cached_property
    def control_texts(self) -> frozenset[str]:
        """The texts of `controls`."""
        return frozenset(self.controls)

    @functools.cached_property
    def control_ids(self) -> frozenset[int]:
        """The tokens of `controls`."""
        return frozenset(self.controls.values())

    def strips_right(self, token: int) -> bool:
        """Whether llama.cpp removes the white space after this token."""
        known = 0 <= token < self.n_tokens  # llama.cpp would crash
        return known and bool(lib.llama_vocab_get_attr(self._vocab, token) & lib.LLAMA_TOKEN_ATTR_RSTRIP)

    def text_of(self, token: int) -> str:
        """Text of a special token as the template sees it (`bos_token`, `eos_token`); empty outside the vocabulary."""
        if not 0 <= token < self.n_tokens:
            return ""  # llama.cpp would crash
        return (lib.llama_vocab_get_text(self._vocab, token) or b"").decode("utf-8", "replace")

    @property
    def bos(self) -> int:
        """Id of the beginning-of-sequence token, -1 without one."""
        return self._known(lib.llama_vocab_bos(self._vocab))

    @property
    def eos(self) -> int:
        """Id of the end-of-sequence token, -1 without one."""
        return self._known(lib.llama_vocab_eos(self._vocab))

    @property
    def infill(self) -> InfillTokens:
        """Tokens that mark the parts of a text with a gap to fill."""
        of = (
            *(lib.llama_vocab_fim_pre, lib.llama_vocab_fim_suf, lib.llama_vocab_fim_mid),
            *(lib.llama_vocab_fim_rep, lib.llama_vocab_fim_sep),
        )
        return InfillTokens(*(self._known(token(self._vocab)) for token in of))

    @property
    def add_bos(self) -> bool:
        return self.bos >= 0 and bool(lib.llama_vocab_get_add_bos(self._vocab))

    def _known(self, token: int) -> int:
        """`token`, or -1 if a file names one that its vocabulary does not have."""
        return token if 0 <= token < self.n_tokens else -1

    def _to_piece(self, token: int, *, special: bool) -> bytes:
        if not 0 <= token < self.n_tokens:
            return b""  # llama.cpp would crash
        n = lib.llama_token_to_piece(self._vocab, token, self._buffer, len(self._buffer), 0, special)
        if n < 0:
            self._buffer = ctypes.create_string_buffer(-n)
            n = lib.llama_token_to_piece(self._vocab, token, self._buffer, len(self._buffer), 0, special)
        return self._buffer.raw[:n]


def _is_mark(text: str, template: str) -> bool:
    """Whether a user-defined token is a mark, such as `<|channel|>`, `<tool_call>` and `</think>`. Runs of blanks,
    words, rows of signs and Gemma's HTML tags are plain text.
    """
    if len(text) == 1 or all(char.isalnum() or char.isspace() for char in text):
        return False
    if text in template or text in TOKENS:
        return True
    return any(map(str.isalpha, text)) and not _TAG.fullmatch(text)
