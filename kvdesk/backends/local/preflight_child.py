"""The child process of a preflight: loads the model and does with it, on a small scale, what kvdesk will do.

Owns nothing that outlives it, and may crash at any point. `kvdesk.library.preflight` starts it and judges by its last
message.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kvdesk.children.entry import Parent, limit
from kvdesk.errors import KvdeskError, ModelFileError, TemplateError, TemplateStopped
from kvdesk.library.preflight import LONG_LINE, Answer
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr
from kvdesk.values import replace

if TYPE_CHECKING:
    from kvdesk.backends.local.llama.context import Context
    from kvdesk.backends.local.llama.model import Model
    from kvdesk.backends.local.llama.vocab import Vocab

LONG_OF = "A\u4e2d. 1"
"""One line of each is tried: letters with and without case, signs, blanks, digits."""


def child_main(parent: Parent, argv: Sequence[str]) -> int:
    """`argv`: file, bytes of address space, settings as JSON. Returns 0 if the model works, 2 if it does not."""
    try:
        file, memory_bytes, settings = argv
        limit(int(memory_bytes))
        wanted = ContextSettings.model_validate_json(settings)
    except ValueError as error:  # includes pydantic's errors
        sys.stderr.write(f"usage: kvdesk --preflight FILE BYTES SETTINGS ({error})\n")
        return 2
    ok = True
    try:
        for answer in _try(Path(file), wanted):
            parent.send_value(answer)
    except KvdeskError as error:
        ok = False
        parent.send_value(Answer(False, str(error), error.detail))
    except MemoryError:
        ok = False
        sentence = tr("{name} needs more memory than a model of its size should.")
        parent.send_value(Answer(False, sentence.format(name=Path(file).name)))
    return 0 if ok else 2


def _try(file: Path, settings: ContextSettings) -> Iterator[Answer]:
    """Try one thing after another, and yield after each what is known to work. Raises KvdeskError if one fails."""
    from kvdesk.backends.local.llama.model import Model
    from kvdesk.backends.local.llama.self_check import checked_context

    model = Model(file)
    context = checked_context(model, settings)
    _decode(model, context)
    context.close()
    answer = Answer(True)
    if model.vocab.has_text:
        _vocabulary(model.vocab)
        problem, certain = _template_problem(model)
        answer = Answer(True, template_problem=problem, certain=certain)
        yield replace(answer, in_long_lines=True)
        for char in LONG_OF:
            _long_lines(model.vocab, char)
    model.close()
    yield answer


def _decode(model: Model, context: Context) -> None:
    """A prompt and one more token must give numbers."""
    import numpy as np

    from kvdesk.cache.batch import Batch

    token = max(0, model.vocab.bos)
    for pos, tokens in ((0, (token, 0, token)), (3, (model.vocab.n_tokens - 1,))):
        context.decode(Batch.of(0, pos, tokens, "last"))
        logits = context.logits()
        if np.isnan(logits).any() or not np.isfinite(logits).any():
            raise ModelFileError(
                tr("{name} computes no numbers (NaN): its weights are damaged.").format(name=model.path.name)
            )


def _vocabulary(vocab: Vocab) -> None:
    """Every token has a piece, and every byte of UTF-8 can be tokenized: alone, twice and beside others."""
    for token in range(vocab.n_tokens):
        vocab.piece(token)
        vocab.label(token)
        vocab.text_of(token)
        vocab.is_eog(token)
    chars = [
        *map(chr, range(0x800)),
        *map(chr, range(0x800, 0xD800, 0x1000)),
        *map(chr, range(0xE000, 0x10000, 0x1000)),
    ]
    chars += map(chr, range(0x10000, 0x110000, 0x40000))
    for text in ("".join(chars), "".join(char * 2 for char in chars), "a ".join(chars), *vocab.control_texts):
        for parse_special in (False, True):
            vocab.tokenize(text, add_special=False, parse_special=parse_special)


def _template_problem(model: Model) -> tuple[str, bool]:
    """Why its chat template must not be rendered ("": it may), and whether that is certain."""
    from kvdesk.backends.local.prompt.prompt import PromptBuilder

    message = Message(MessageId("1"), ConversationId("1"), None, "user", "Hello")
    builder = PromptBuilder(model.vocab, model.chat_template)
    try:
        builder.tokens([message])
    except TemplateError as error:
        return str(error), not isinstance(error, TemplateStopped)
    finally:
        builder.close()
    return "", True


def _long_lines(vocab: Vocab, char: str) -> None:
    from kvdesk.backends.local.llama.vocab import REPEATED

    line = char * ((REPEATED if char in " 1" else LONG_LINE) - 1)
    vocab.tokenize(line + "\u4e2d", add_special=False, parse_special=False)
