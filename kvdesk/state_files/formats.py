"""Which kind of file it is: its tokens, and the bytes of the state in it. Must never look into those bytes.

Owns the headers of llama_state_seq_save_file and llama_state_save_file (llama-context.cpp:3262-3395), and what a
LlamaState and kvdesk's own saved states have around the blob. Little endian. Raises BlobError.
"""

import re
import zlib
from pathlib import Path
from typing import Final

import numpy as np

from kvdesk.backends.local.cache_manager.saved_state import SUFFIX, read_indexed
from kvdesk.cache.state.blob import SEQ_MAGIC, BlobError
from kvdesk.cache.state.sequence_file import BLOB_HEAD, HEAD, MAGIC, VERSION, read_token_words
from kvdesk.state_files.found import Format
from kvdesk.state_files.pickled import PickleError, read_llama_state
from kvdesk.translation import tr
from kvdesk.values import dataclass

SESSION_MAGIC, SESSION_VERSION = 0x6767736E, 10  # "ggsn"
MOST_UNPACKED: Final = 8 << 30
"""Bytes of a saved state of kvdesk that is packed."""
_ARCHITECTURE: Final = re.compile(rb"[a-z0-9][a-z0-9._-]{1,63}")
_GGUF: Final = b"GGUF"
_JOURNAL: Final = b'{"format":"k'  # kvdesk-journal


@dataclass(frozen=True, slots=True)
class Parts:
    """A file taken apart.

    blob      as the engine gives it in memory; None if `problem` says why not
    whole     of a context, else of one sequence
    the rest  as in `StateFile`
    """

    format: Format
    version: int
    tokens: tuple[int, ...] | None
    blob: memoryview | None
    whole: bool
    problem: str = ""
    made_by: dict[str, str] | None = None
    n_context: int = 0


def take_apart(path: Path, data: memoryview) -> Parts:
    """The parts of a file. `data` is a private copy: some of it is written over. Raises BlobError for what is no saved
    state.
    """
    if len(data) < HEAD.size:
        raise BlobError(tr("The file is too short for a saved state."))
    magic, version, n_words = HEAD.unpack_from(data)
    if magic == MAGIC:
        return _with_tokens(data, "slot", version, n_words, VERSION)
    if magic == SESSION_MAGIC:
        return _with_tokens(data, "session", version, n_words, SESSION_VERSION)
    if bytes(data[:4]) == _GGUF:
        raise BlobError(tr("The file is a model; kvdesk MODEL opens it."))
    if bytes(data[: len(_JOURNAL)]) == _JOURNAL:
        raise BlobError(tr("The file is a journal; kvdesk replay opens it."))
    if path.suffix == SUFFIX:
        return _of_kvdesk(path, data)
    if magic == SEQ_MAGIC:
        return Parts("sequence", 0, None, data, whole=False)
    if magic <= 64 and _ARCHITECTURE.fullmatch(data[4 : 4 + magic]):
        return Parts("context", 0, None, data, whole=True)
    if data[0] == 0x80 or bytes(data[:1]) == b"c":
        return _pickled(data)
    raise BlobError(
        tr("The file is not a saved state of llama-server, llama.cpp, llama-cpp-python or kvdesk."),
        f"magic {magic:08x}",
    )


def _with_tokens(data: memoryview, kind: Format, version: int, n_words: int, known: int) -> Parts:
    end = HEAD.size + 4 * n_words
    if end > len(data):
        raise BlobError(
            tr("The file is damaged or truncated: it claims {n:,} tokens but is too short for them.").format(n=n_words)
        )
    words = np.frombuffer(data, "<i4", n_words, HEAD.size).tolist()
    problem = ""
    try:
        tokens: tuple[int, ...] | None = tuple(read_token_words(words) if kind == "slot" else words)
    except BlobError as error:
        tokens, problem = None, str(error)
    if version != known:
        problem = tr("Its format has version {version}; this llama.cpp reads version {known}.").format(
            version=version, known=known
        )
        return Parts(kind, version, tokens, None, kind == "session", problem)
    if kind == "session":
        return Parts(kind, version, tokens, data[end:], whole=True, problem=problem)
    BLOB_HEAD.pack_into(data, end - BLOB_HEAD.size, SEQ_MAGIC, 0)  # which a blob has in memory, and not in a file
    return Parts(kind, version, tokens, data[end - BLOB_HEAD.size :], whole=False, problem=problem)


def _of_kvdesk(path: Path, data: memoryview) -> Parts:
    found, blob, problem = read_indexed(path, data), data, ""
    most = MOST_UNPACKED if found is None else found.saved.n_bytes
    if int.from_bytes(data[:4], "little") != SEQ_MAGIC:
        try:
            blob = memoryview(zlib.decompressobj().decompress(data, most + 1))
        except zlib.error as error:
            raise BlobError(tr("The saved state is damaged or cut off."), str(error)) from error
    if found is None:
        return Parts("kvdesk", 0, None, blob, whole=False)
    if not found.intact or len(blob) != most:
        problem = tr("It does not match its index: kvdesk would not restore it.")
    made_by = {name: str(value) for name, value in found.kind.items()}
    if found.saved.rounded:
        made_by["kept_as"] = "q8_0"
    return Parts("kvdesk", 0, found.saved.tokens, blob, whole=False, problem=problem, made_by=made_by)


def _pickled(data: memoryview) -> Parts:
    try:
        fields = read_llama_state(data)
        n = fields["n_tokens"]
        ids = np.asarray(fields["input_ids"])
        state = fields["llama_state"]
        if not isinstance(state, bytes | bytearray | memoryview):
            raise PickleError("its state has no bytes")
        blob = memoryview(state)[: int(fields["llama_state_size"])]
        if ids.ndim != 1 or not 0 <= n <= len(ids):
            raise PickleError("it has fewer tokens than it says")
        return Parts("pickle", 0, tuple(ids[:n].astype(int).tolist()), blob, whole=True, n_context=len(ids))
    except (PickleError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise BlobError(
            tr("The file is a pickle, but not of llama-cpp-python's Llama.save_state. kvdesk never runs a pickle."),
            str(error),
        ) from error
