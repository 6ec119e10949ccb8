"""Saves states of single sequences to files and restores them, like the slots of llama-server (`TransferSequence`)."""

import time
from pathlib import Path

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.operation_journal import OperationJournal
from kvdesk.backends.local.cache_manager.sequences import ALL_EXACT
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.state.sequence_file import read_sequence_file, sequence_file
from kvdesk.errors import UserError, explained
from kvdesk.paths import read_regular
from kvdesk.protocol import calls
from kvdesk.protocol.cache import SequenceTransferred, TransferSequence
from kvdesk.translation import tr
from kvdesk.whole_file import write_whole


def transferred(
    context: Context, cache: Cache, journal: OperationJournal, command: TransferSequence
) -> SequenceTransferred:
    """Carry out the command. Raises UserError, RefusedCall, BlobError; then nothing was saved, or nothing restored."""
    began, n_bytes = time.perf_counter(), 0
    context.memory.guards.seq(command.seq_id)
    sequence = cache.pool.by_seq(command.seq_id)
    if sequence is not None and sequence.busy:
        raise UserError(tr("The sequence {seq_id} is answering.").format(seq_id=command.seq_id))
    n_tokens = len(sequence.tokens) if sequence is not None else 0
    if command.action == "restore":
        n_tokens, n_bytes = _restore(context, cache, journal, command)
    elif sequence is not None and command.action == "erase":
        cache.truncate(sequence, 0, tr("erased by a client"))
        cache.release(sequence)
    elif command.action == "save":
        data = sequence_file(sequence.tokens if sequence is not None else (), context.states.seq_get(command.seq_id))
        n_bytes = len(data)
        with explained(tr("The file cannot be written: {why}.")):
            write_whole(_path(command), data, mode=0o600)  # it holds a prompt
    return SequenceTransferred(command.number, n_tokens, n_bytes, (time.perf_counter() - began) * 1e3)


def _restore(context: Context, cache: Cache, journal: OperationJournal, command: TransferSequence) -> tuple[int, int]:
    """Tokens and bytes."""
    seq_id, path = command.seq_id, _path(command)
    with explained(tr("The file cannot be read: {why}.")):
        data = read_regular(path, _most_bytes(context))
    tokens, blob = read_sequence_file(data, seq_id)
    if not 0 < len(tokens) < context.n_ctx_seq or not 0 <= min(tokens) <= max(tokens) < context.model.vocab.n_tokens:
        raise UserError(tr("The tokens in the file are not those of this model and context."))
    context.memory.guards.seq_state(seq_id, blob)
    sequence = cache.lease_at(seq_id, command.conversation, command.client)
    done = False
    try:
        if not cache.make_room(sequence, len(tokens)):
            raise UserError(tr("The cache has no room for the state in the file."))
        reason = tr("restored from the file {name}").format(name=path.name)
        with journal.operation("swap in", command.conversation, reason, call=calls.state_seq_set(seq_id, len(blob))):
            exact = 0 if context.settings.exact else ALL_EXACT  # how the file's were computed is not known
            taken = cache.carry_in(sequence, blob, tokens, exact)
        if not taken or context.memory.seq_pos_max(seq_id) != len(tokens) - 1:
            raise UserError(tr("The state in the file is not that of its tokens."))
        done = True
    finally:
        if not done:
            cache.truncate(sequence, 0, tr("the state in the file does not fit"))
            cache.release(sequence)
    return len(tokens), len(data)


def _most_bytes(context: Context) -> int:
    """More than a file of this context can have: twice its K, V and recurrent states, and what describes a cell."""
    return 2 * sum(context.buffers.get(name, 0) for name in ("KV", "RS")) + 64 * context.n_ctx + (1 << 20)


def _path(command: TransferSequence) -> Path:
    if command.path is None:
        raise UserError(tr("No file is given."))
    return command.path
