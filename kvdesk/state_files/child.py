"""The child process that reads saved KV caches: it may be killed by a file, by a limit, or by its parent.

Answers with one value. Started by `reader`.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kvdesk.children.entry import Parent, limit
from kvdesk.codec import decode
from kvdesk.errors import KvdeskError
from kvdesk.library.gguf_header import read_header
from kvdesk.settings import ContextSettings
from kvdesk.state_files.difference import compare
from kvdesk.state_files.found import Answer, StateFile
from kvdesk.state_files.limits import ADDRESS_SPACE
from kvdesk.state_files.reading import open_file
from kvdesk.state_files.restore import judge
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace

if TYPE_CHECKING:
    from kvdesk.backends.local.llama.vocab import Vocab


@dataclass(frozen=True, slots=True)
class Asked:
    """What to read. other: the file to compare with, model: to restore into, settings: as JSON; "" for none."""

    path: str
    other: str = ""
    model: str = ""
    settings: str = ""


def child_main(parent: Parent, argv: Sequence[str]) -> int:
    """`argv`: the request as JSON, and bytes of address space besides the fixed ones."""
    limit(ADDRESS_SPACE + int(argv[1]))
    try:
        answer = answer_of(decode(Asked, argv[0]))
    except KvdeskError as error:
        answer = Answer(sentence=str(error), detail=error.detail)
    except MemoryError:
        answer = Answer(sentence=tr("Reading the file needs more memory than kvdesk allows."))
    except OSError as error:
        why = error.strerror or str(error)
        answer = Answer(sentence=tr("The file cannot be read: {why}.").format(why=why))
    parent.send_value(answer)
    os._exit(0)  # what a library does at the end of a process is of no use here


def answer_of(asked: Asked) -> Answer:
    """Read what was asked for. Raises KvdeskError, OSError and MemoryError."""
    one = open_file(Path(asked.path))
    files, difference, fit = [one.file], None, None
    if asked.other:
        other = open_file(Path(asked.other))
        files.append(other.file)
        difference = compare(one, other)
    if asked.model:
        model = Path(asked.model)
        fit = judge(one.file, read_header(model), ContextSettings.model_validate_json(asked.settings))
        files = [_with_texts(file, model) for file in files]
    return Answer(tuple(files), fit, difference)


def _with_texts(file: StateFile, model: Path) -> StateFile:
    """With the text of each token, a character in that which ends it; without where the model has no texts."""
    from kvdesk.backends.local.llama.model import vocabulary

    if not file.tokens:
        return file
    with vocabulary(model) as vocab:
        if not vocab.has_text:
            return file
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        texts = [decoder.decode(_bytes(vocab, token)) for token in file.tokens]
    return replace(file, texts=tuple(texts))


def _bytes(vocab: Vocab, token: int) -> bytes:
    """A control token as it is written."""
    if not 0 <= token < vocab.n_tokens:
        return b""
    return vocab.piece(token) or vocab.text_of(token).encode("utf-8", "replace")
