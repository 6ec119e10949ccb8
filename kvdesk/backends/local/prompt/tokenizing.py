"""Text to tokens and back, for whoever asks (`Tokenize`, `Detokenize`)."""

from __future__ import annotations

from kvdesk.backends.local.prompt.prompt import PromptBuilder
from kvdesk.errors import NO_TOKENIZER, UserError
from kvdesk.protocol.prompt import Detokenize, Tokenize, Tokenized


def tokenized(prompts: PromptBuilder | None, asked: Tokenize | Detokenize) -> Tokenized:
    """The answer. `prompts`: None without a model, or without a text tokenizer."""
    if prompts is None:
        return Tokenized(asked.number, problem=NO_TOKENIZER)
    try:
        if isinstance(asked, Tokenize):
            tokens = prompts.read(asked.text, add_special=asked.add_special, parse_special=asked.parse_special)
        else:
            tokens = list(asked.tokens)
    except UserError as error:
        return Tokenized(asked.number, problem=str(error))
    pieces = prompts.written(tokens)
    return Tokenized(asked.number, b"".join(pieces).decode("utf-8", "replace"), tuple(tokens), tuple(pieces))
