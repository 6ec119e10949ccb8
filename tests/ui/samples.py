"""Values the window is shown in these tests: written by hand, no engine."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kvdesk.cache.snapshot import CacheMap, CacheSnapshot, SeqId, SequenceSpan, StreamMap, Verification
from kvdesk.chat import Conversation
from kvdesk.conversations.changes import BranchChanged, MessagesAdded, MessagesChanged, MessagesDeleted
from kvdesk.message import ConversationId, Message, MessageId, MessageState, Role, TurnStats
from kvdesk.protocol.cache import CacheView, ContextInfo, Lease
from kvdesk.protocol.model import LocalFile, ModelInfo
from kvdesk.ui.shell.main_window import MainWindow

ONE, TWO = ConversationId("one"), ConversationId("two")
CONVERSATIONS = (Conversation(ONE, "A village far away", 0), Conversation(TWO, "Caches", 1))
MODEL = ModelInfo(
    source=LocalFile(Path("/models/tiny.gguf")),
    name="Tiny",
    architecture="llama",
    description="llama 1M F16",
    size_bytes=1_000_000,
    n_params=1_000_000,
    n_ctx_train=2048,
    n_layer=2,
    n_vocab=512,
    has_text=True,
)
CONTEXT = ContextInfo(
    n_ctx=1024,
    n_ctx_seq=1024,
    n_seq_max=8,
    n_batch=512,
    n_ubatch=512,
    n_threads=2,
    type_k="f16",
    type_v="f16",
    flash_attn=True,
    kv_unified=True,
    k_bytes=6_000_000,
    v_bytes=6_000_000,
)
STATS = TurnStats(
    prompt_tokens=140,
    reused_tokens=128,
    prefilled_tokens=12,
    generated_tokens=40,
    ttft_ms=90.0,
    prefill_tok_s=640.0,
    decode_tok_s=118.2,
    seq_id=0,
    cells_used=180,
    high_water=180,
    n_kv=256,
)
Run = tuple[int, int, tuple[int, ...], int, int]


def message(
    name: str,
    role: Role,
    text: str,
    state: MessageState = "complete",
    conversation: ConversationId = ONE,
    stats: TurnStats | None = None,
    note: str = "",
) -> Message:
    return Message(MessageId(name), conversation, None, role, text, state, stats=stats, note=note)


def stream(size: int, runs: Sequence[Run], head: int = 0) -> StreamMap:
    """Cells [a, b) held by sequences, positions rising from p0, born at an operation: (a, b, seqs, p0, born)."""
    pos = np.full(size, -1, np.int32)
    bits = np.zeros((size, 1), np.uint64)
    token = np.full(size, -1, np.int32)
    written_at_op = np.zeros(size, np.int64)
    for a, b, seqs, p0, operation in runs:
        pos[a:b] = np.arange(p0, p0 + b - a)
        token[a:b] = np.arange(a, b)
        written_at_op[a:b] = operation
        for seq in seqs:
            bits[a:b, 0] |= np.uint64(1 << seq)
    used = np.flatnonzero(bits.any(axis=1))
    high = int(used[-1]) + 1 if used.size else 0
    return StreamMap(pos[:high], bits[:high], token[:high], written_at_op[:high], size, head, int(used.size), high)


def spans(cells: StreamMap) -> tuple[SequenceSpan, ...]:
    found = []
    for seq in range(8):
        mask = (cells.seq_bits[:, 0] & np.uint64(1 << seq)).astype(np.bool_)
        if mask.any():
            shared = int((np.bitwise_count(cells.seq_bits[mask, 0]) > 1).sum())
            low, high = int(cells.pos[mask].min()), int(cells.pos[mask].max())
            found.append(SequenceSpan(SeqId(seq), low, high, int(mask.sum()), shared))
    return tuple(found)


def cache_view(
    operation: int = 7,
    runs: Sequence[Run] = ((0, 32, (0, 1), 0, 1), (32, 180, (0,), 32, 3), (200, 240, (1,), 32, 6)),
    size: int = 1024,
    verification: Verification | None = None,
) -> CacheView:
    cells = stream(size, runs, head=240)
    n_kv = min(size, max(256, -(-cells.high_water // 256) * 256))
    snapshot = CacheSnapshot(
        operation=operation,
        maps=(CacheMap("kv", (cells,), 0),),
        recurrent=(),
        sequences=spans(cells),
        n_kv=n_kv,
        n_ctx=size,
        verification=verification or Verification("verified", operation),
    )
    return CacheView(snapshot, (Lease(ONE, 0), Lease(TWO, 1)))


def show_messages(window: MainWindow, conversation: ConversationId, messages: Sequence[Message]) -> None:
    window.store.apply(BranchChanged(conversation, tuple(messages)))


def append_message(window: MainWindow, added: Message) -> None:
    window.store.apply(MessagesAdded((added,)))


def update_message(window: MainWindow, changed: Message) -> None:
    window.store.apply(MessagesChanged((changed,)))


def remove_messages(
    window: MainWindow, conversation: ConversationId, deleted: Sequence[MessageId], left: Sequence[Message]
) -> None:
    window.store.apply(MessagesDeleted(conversation, tuple(deleted), tuple(left)))
