"""Operations by hand: carried out, measured before and after, audited, and kept so that they can be undone.

Owns the order of these steps and the saved states for undo. The caller first ends the requests that cannot continue
after an operation (`ends`). Runs on the engine's thread.
"""

from collections.abc import Callable
from typing import assert_never

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.hand_cells import CacheCopy, HandCells
from kvdesk.backends.local.cache_manager.operation_journal import Emit, OperationJournal
from kvdesk.backends.local.cache_manager.probe import Logits
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.requantize import loses_nothing_more, stored_otherwise
from kvdesk.backends.local.operations.conversion import Before, Left, left, restore_saved
from kvdesk.backends.local.operations.undo import UndoBlobs
from kvdesk.cache.compare import compare_logits, compare_snapshots
from kvdesk.errors import DecodeError, KvdeskError, RefusedCall, UserError
from kvdesk.message import ConversationId
from kvdesk.protocol import calls
from kvdesk.protocol.cache import TokenTexts
from kvdesk.protocol.operations import (
    TO_COMPARE,
    BatchRefused,
    ClearCache,
    Compact,
    CopySequence,
    Effect,
    HandOperation,
    KeepOnly,
    OneConversation,
    OneSequence,
    OtherSequences,
    RemoveRange,
    ShiftPositions,
    SwapIn,
    SwapOut,
    TryDecode,
    Undo,
)
from kvdesk.translation import marked, plural, tr
from kvdesk.values import dataclass, replace

BY_HAND = marked("by hand")
MOST_MEASURED = 4
"""Sequences whose next token is measured before and after. Each measurement decodes one token."""


@dataclass(frozen=True, slots=True)
class _Done:
    """The sequence of the operation's conversation; bytes of K and V that moved; llama.cpp's answer, if it is shown;
    whether the sequence is now empty; whether the cache changed; a sentence for the user.
    """

    seq_id: int = -1
    bytes_moved: int = 0
    answer: str = ""
    emptied: bool = False
    changed: bool = True
    note: str = ""


class CacheOperations:
    """Operations by hand on the cache of one context.

    cost   learns how long moving bytes of state takes
    noise  how much of a difference between logits is rounding: `LoadedModel.noise`
    """

    def __init__(
        self, context: Context, cache_manager: Cache, journal: OperationJournal, noise: tuple[float, float], emit: Emit
    ) -> None:
        self._context = context
        self._cache_manager = cache_manager
        self._journal = journal
        self._noise = noise
        self._emit = emit
        self._cells = HandCells(context, cache_manager)
        self.blobs = UndoBlobs(self._cells)

    def ends(self, operation: HandOperation) -> Callable[[CacheSequence], bool]:
        """Whether a sequence's answer cannot continue after the operation."""
        affected = operation.affected
        match affected:
            case OneSequence(seq_id, moved_from):
                found = {seq_id}
                if moved_from is not None and (owner := self._cache_manager.pool.by_seq(seq_id)) is not None:
                    found |= {s.seq_id for s in self._cache_manager.shared_cells.sharing(owner, moved_from)}
                return lambda s: -1 in found or s.seq_id in found
            case OtherSequences(seq_id):
                return lambda s: s.seq_id != seq_id
            case OneConversation(conversation):
                return lambda s: s.conversation == conversation
            case "every sequence":
                return lambda _: True
            case "no sequence":
                return lambda _: False
            case _:
                assert_never(affected)

    def do(self, operation: HandOperation, *, measured: bool) -> None:
        """Carry it out and report it. Raises UserError, RefusedCall, EngineError; nothing is lost then."""
        journal = self._journal
        kept = None if isinstance(operation, Undo) else self.blobs.take()
        with journal.purpose(None, tr(TO_COMPARE)):
            before = self._look(measured)
        with journal.operation(operation.name, self._conversation(operation), tr(BY_HAND)) as told:
            done = self._do(operation)
            told.call = operation.call(done.seq_id) + done.answer
            told.emptied, told.note = done.emptied, done.note
            journal.end(told)
            if kept is not None and done.changed:
                self.blobs.keep(told.number, kept)
            told.undoable = told.number in self.blobs.numbers
            audited = self._context.auditor.audit().state == "verified"
            self._remember(operation, before)
            with journal.purpose(None, tr(TO_COMPARE)):
                told.effect = self._effect(before, done, audited=audited)

    # --- another context in the place of this one -----------------------------------------------------------------

    def leave(self) -> Left | None:
        """Everything the next context needs to continue with this cache; None if it cannot be saved. Read-only."""
        with self._journal.purpose(None, tr(TO_COMPARE)):
            before = self._look(measured=True)
        cells = self._cells.save()
        if cells is None:
            return None
        store = self._cache_manager.swapper.saved_states
        return left(cells, self._context.traits, store, before)

    def take_over(self, from_before: Left, undone: CacheCopy | None = None) -> str:
        """Continue with what the previous context left: K and V are converted. `undone`: restore this copy instead,
        made with the current settings.

        Returns why that failed, "" if it did not. Changes the cache, which must be empty, and audits it.
        """
        context, cache_manager, journal = self._context, self._cache_manager, self._journal
        old, now = from_before.settings, context.settings
        types = f"K {old.type_k} -> {now.type_k}, V {old.type_v} -> {now.type_v}"
        converts = undone is None and stored_otherwise(old, now)  # an undo restores the old bytes
        name = "requantize" if converts else "undo"
        call = f"{calls.state_get()}; /* {types} */ {calls.state_set()}"
        with journal.operation(name, None, tr(BY_HAND), call=call) as told:
            try:
                cells = undone or from_before.converted(context.traits)
                told.note = self._cells.restore(cells, self.blobs.most_bytes)
            except KvdeskError as error:
                told.told = False
                return str(error)
            store = cache_manager.swapper.saved_states
            if undone is not None:
                restore_saved(store, undone.saved)
            elif not loses_nothing_more(old, now):
                cache_manager.round_again()
            for sequence in cache_manager.pool:
                cache_manager.pop_eviction_reason(sequence.conversation)
            journal.end(told)
            if converts:
                told.note = " ".join(filter(None, (told.note, self._keep(told.number, from_before.cells))))
                told.undoable = told.number in self.blobs.numbers
            audited = context.auditor.audit().state == "verified"
            done = _Done(bytes_moved=len(from_before.cells.blob) + len(cells.blob))
            with journal.purpose(None, tr(TO_COMPARE)):
                told.effect = self._effect(from_before.before, done, audited=audited)
        from_before.convert_saved(store, context.traits, self._emit)
        return ""

    def _keep(self, number: int, copy: CacheCopy) -> str:
        """Keep the cache from before a conversion, for undo. Returns why not, "" if it is kept."""
        for kept in (copy, replace(copy, saved=())):  # saved chats are saved again after their next turn
            self.blobs.keep(number, kept)
            if number in self.blobs.numbers:
                return ""
        most = f"{self.blobs.most_bytes / 1e6:,.0f}"
        return tr("It cannot be undone: copies for undo take at most {mb} MB, and this one is larger.").format(mb=most)

    # --- each -----------------------------------------------------------------------------------------------------

    def _do(self, operation: HandOperation) -> _Done:
        cells = self._cells
        match operation:
            case RemoveRange(seq_id, p0, p1):
                return self._remove(seq_id, p0, p1)
            case KeepOnly(seq_id):
                cells.keep_only(seq_id)
                return _Done()
            case CopySequence(src, conversation, p0, p1):
                return self._copy(src, conversation, p0, p1)
            case ShiftPositions(seq_id, p0, p1, shift):
                cells.shift(seq_id, p0, p1, shift)
                return _Done()
            case ClearCache():
                cells.clear()
                return _Done(emptied=True)
            case Compact(layout, hot):
                n_bytes = self._cache_manager.compact(layout, hot)
                return _Done(bytes_moved=n_bytes)
            case SwapOut(conversation):
                sequence = self._leased(conversation)
                n_bytes = self._cache_manager.swap_out(sequence)
                return _Done(sequence.seq_id, n_bytes, emptied=True)
            case SwapIn(conversation):
                n_bytes = self._cache_manager.swap_in(conversation)
                return _Done(self._leased(conversation).seq_id, n_bytes)
            case TryDecode(seq_id, pos):
                return self._try(seq_id, pos)
            case Undo(number):
                return _Done(note=self.blobs.restore(number))
            case _:
                assert_never(operation)

    def _remove(self, seq_id: int, p0: int, p1: int) -> _Done:
        if not self._cells.remove(seq_id, p0, p1):
            raise RefusedCall(tr("Only a whole conversation can be removed: no part of this model's state can."))
        empty = (seq_id == -1 and p0 <= 0 and p1 < 0) or (seq_id >= 0 and self._cells.last_position(seq_id) < 0)
        return _Done(emptied=empty, note=self._behind(seq_id, p1))

    def _behind(self, seq_id: int, p1: int) -> str:
        """A sentence about the cells after a hole that ends at `p1`; "" if there are none."""
        sequence = self._cache_manager.pool.by_seq(seq_id)
        last = self._cells.last_position(seq_id) if sequence is not None else -1
        if sequence is None or last < max(len(sequence.tokens), p1):
            return ""
        n = last + 1 - max(p1, len(sequence.tokens))
        return plural(
            "The token behind the hole is read again with the next turn: nothing is left of what was removed.",
            "%n tokens behind the hole are read again with the next turn: then nothing is left of what was removed. "
            "Shifted to close the hole they stay and cost nothing, but were computed while it was there: “Verify” then "
            "says how much of it they still hold.",
            n,
        )

    def _remember(self, operation: HandOperation, before: Before) -> None:
        """Keep the logits from before a part of a sequence was removed, for `verify`."""
        if not isinstance(operation, RemoveRange) or operation.seq_id not in before.asked:
            return
        sequence = self._cache_manager.pool.by_seq(operation.seq_id)
        if sequence is not None:
            self._cache_manager.removed.clear()  # logits are large, and only the last removal is asked about
            n_left = before.n_tokens[operation.seq_id] - (operation.p1 - max(operation.p0, 0))
            self._cache_manager.removed[sequence.conversation] = n_left, before.asked[operation.seq_id]

    def _copy(self, src: int, conversation: ConversationId, p0: int, p1: int) -> _Done:
        if (own := self._cache_manager.pool.by_seq(src)) is not None and own.conversation == conversation:
            raise UserError(tr("A conversation cannot be copied onto itself."))
        source = self._cache_manager.pool.by_seq(src)
        if source is not None:
            self._cache_manager.touch(source)
        target = self._cache_manager.lease(conversation, beside=source)
        self._cells.copy(src, target, p0, p1)
        return _Done(target.seq_id)

    def _try(self, seq_id: int, pos: int) -> _Done:
        """Decode one token at a position that the user chose. A refusal by llama.cpp is harmless and explained."""
        token = max(0, self._context.model.vocab.bos)
        changed = True
        try:
            rc = self._cells.decode(seq_id, pos, token).rc
        except DecodeError as error:
            problem = self._cells.problem
            if problem is None:
                raise
            rc, changed = error.code, False
            self._emit(BatchRefused(seq_id, problem.x, problem.y, problem.sentence))
        return _Done(answer=f" -> {rc}", changed=changed)

    # --- before and after ---------------------------------------------------------------------------------------------

    def _look(self, measured: bool) -> Before:
        snapshot = self._cache_manager.snapshot()
        n_tokens = {sequence.seq_id: len(sequence.tokens) for sequence in self._cache_manager.pool}
        return Before(snapshot, self._ask() if measured else {}, n_tokens)

    def _ask(self) -> dict[int, Logits]:
        """Next-token logits of the sequences that hold something; of none if there is no room to compute them."""
        asked: dict[int, Logits] = {}
        for sequence in [s for s in self._cache_manager.pool if s.tokens][:MOST_MEASURED]:
            if not self._cache_manager.probe.possible:
                break
            try:
                asked[sequence.seq_id] = self._cache_manager.probe.next_logits(sequence)
            except KvdeskError:
                continue
        return asked

    def _effect(self, before: Before, done: _Done, *, audited: bool) -> Effect:
        snapshot = self._cache_manager.snapshot()
        after = self._ask() if before.asked else {}
        both = [s for s in before.asked if s in after]
        logits = {s: compare_logits(before.asked[s], after[s], *self._noise) for s in both}
        likeliest = {t for row in logits.values() for t in (row.token_before, row.token_after) if t >= 0}
        if likeliest:  # they may never have been in the cache
            self._emit(TokenTexts({t: self._context.model.vocab.label(t) for t in likeliest}))
        return Effect(compare_snapshots(before.snapshot, snapshot, logits), done.bytes_moved, audited)

    def _conversation(self, operation: HandOperation) -> ConversationId | None:
        """The conversation whose cells the operation changes; None for all, or if the sequence is nobody's."""
        match operation.affected:
            case OneConversation(conversation):
                return conversation
            case OneSequence(seq_id) | OtherSequences(seq_id):
                owner = self._cache_manager.pool.by_seq(seq_id)
                return owner.conversation if owner else None
            case "every sequence" | "no sequence":
                return None

    def _leased(self, conversation: ConversationId) -> CacheSequence:
        sequence = self._cache_manager.pool.get(conversation)
        if sequence is None or not sequence.tokens:
            raise UserError(tr("This conversation has nothing in the cache."))
        return sequence
