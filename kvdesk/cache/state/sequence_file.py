"""The file in which llama-server keeps the state of a slot: a header, its tokens, the state of the sequence.

Owns the layout of llama_state_seq_save_file (llama-context.cpp:3377) with the tokens as llama-server packs them
(server-common.cpp, `server_tokens::serialize`), or as a plain list, as older versions wrote them. Little endian.
"""

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

from kvdesk.cache.state.blob import SEQ_MAGIC, Blob, BlobError
from kvdesk.translation import tr

MAGIC: Final = 0x67677371  # "ggsq"
VERSION: Final = 3
HEAD: Final = struct.Struct("<III")  # magic, version, number of words
BLOB_HEAD: Final = struct.Struct("<Ii")  # of a blob in memory, not in the file: magic, seq_id
_PACKED, _PACKED_VERSION = -1, 1


def sequence_file(tokens: Sequence[int], blob: Blob) -> bytes:
    """The bytes of a file. `blob`: of one sequence, as the engine gives it."""
    words = np.array([_PACKED, _PACKED_VERSION, len(tokens), *tokens, 0], "<i4")  # 0 pictures
    return b"".join((HEAD.pack(MAGIC, VERSION, len(words)), words.tobytes(), memoryview(blob)[BLOB_HEAD.size :]))


def read_sequence_file(data: bytes, seq_id: int) -> tuple[list[int], bytes]:
    """(tokens, the blob for `seq_id` as the engine accepts it). Raises BlobError; the blob itself is not checked."""
    if len(data) < HEAD.size:
        raise BlobError(tr("The file is not the saved state of a sequence."))
    magic, version, n_words = HEAD.unpack_from(data)
    end = HEAD.size + 4 * n_words
    if magic != MAGIC or version != VERSION or end > len(data):
        raise BlobError(tr("The file is not the saved state of a sequence."), f"{magic:08x}, version {version}")
    words = np.frombuffer(data, "<i4", n_words, HEAD.size).tolist()
    return read_token_words(words), BLOB_HEAD.pack(SEQ_MAGIC, seq_id) + data[end:]


def read_token_words(words: list[int]) -> list[int]:
    """The tokens, packed or as a plain list. Raises BlobError for another form, and for pictures among them."""
    if words[:1] != [_PACKED]:
        return words
    n = words[2] if len(words) > 3 and words[1] == _PACKED_VERSION else -1
    if not 0 <= n <= len(words) - 4:
        raise BlobError(tr("The tokens in the file have an unknown form."))
    if words[3 + n]:
        raise BlobError(tr("The file has pictures or sound, which kvdesk does not read."))
    return words[3 : 3 + n]
