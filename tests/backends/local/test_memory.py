"""Operations of a context: what they do to K and V, how far they are verified, and the way back after a mismatch."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kvdesk.backends.local.cache_manager.operation_journal import OperationJournal
from kvdesk.backends.local.llama import context as context_module
from kvdesk.backends.local.llama import self_check
from kvdesk.backends.local.llama.binding import EngineVersion, engine_log, lib
from kvdesk.backends.local.llama.context import MAPS, Context
from kvdesk.backends.local.llama.memory import auditor, mirrored_memory, state
from kvdesk.backends.local.llama.memory.decodes import MirroredDecode
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.samplers.sampler import Sampler, SamplingPlan
from kvdesk.cache.batch import Batch
from kvdesk.cache.dump import parse_log
from kvdesk.cache.memories.cells import StreamCells
from kvdesk.cache.state.blob import parse_state
from kvdesk.errors import ContextError, EngineError
from kvdesk.settings import CacheType, ContextSettings, Sampling
from kvdesk.values import replace
from tests.backends.local.tiny_models import written
from tests.cache.models import N_VOCAB

SMALL = ContextSettings(n_ctx=512, n_seq_max=4, n_batch=64, n_ubatch=8, n_threads=1, n_threads_batch=1)
pytestmark = pytest.mark.usefixtures("models_are_tried")  # the proof is whole
LINE = "find_slot: stream[0], n =     5, used =     5, head =     5, size =   512, n_swa =     0"
STREAMS = SMALL.model_copy(update={"kv_unified": False, "n_ctx": 1024})


def text(n: int, first: int = 0, seq_id: int = 0) -> Batch:
    """The same tokens wherever they start, all different."""
    tokens = tuple((7 + 5 * (first + i)) % N_VOCAB for i in range(n))
    return Batch(tokens, tuple(range(first, first + n)), ((seq_id,),) * n, (False,) * (n - 1) + (True,))


def moved(batch: Batch, by: int, seq_id: int = 0) -> Batch:
    return Batch(batch.tokens, tuple(p + by for p in batch.pos), ((seq_id,),) * batch.n_tokens, batch.output)


@pytest.fixture
def context(llama: Model) -> Iterator[Context]:
    context = Context(llama, SMALL)
    yield context
    context.close()


def last_logits(context: Context, batch: Batch) -> NDArray[np.float32]:
    context.decode(batch)
    return context.logits()


def verified(context: Context) -> None:
    assert context.auditor.audit().state == "verified", context.memory.verification.detail


def test_decodes_are_told_before_their_cells_change(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """One token after another, told late: the journal still has every cell that was removed since."""
    monkeypatch.setattr(mirrored_memory, "SETTLE_S", 1e9)
    journal = OperationJournal(context, lambda _: None)
    told: list[MirroredDecode] = []

    def on_decoded(decodes: Sequence[MirroredDecode]) -> None:
        told.extend(decodes)
        for decode in decodes:
            journal.decoded(decode)

    context.memory.on_decoded = on_decoded
    sampler = Sampler(SamplingPlan(Sampling(temperature=0)), context.model.vocab)
    context.decode(text(4))
    for _ in range(2):
        first, token = context.memory.seq_pos_max(0) + 1, 5
        for pos in range(first, first + 3):
            assert context.decode(Batch.of(0, pos, (token,), "last")).rc == 0
            token = context.sample(sampler, 0)
        context.memory.settle()
    context.memory.seq_rm(0, 6, -1)
    sampler.close()
    assert sum(len(decode.ms) for decode in told) == 7
    assert [decode.n_tokens for decode in told] == [4, *[1] * (len(told) - 1)]
    assert [(decode.record.operation, decode.record.last_operation) for decode in told] == [(1, 1), (2, 4), (5, 7)]
    used = [journal.journal.recording().state_at(number)[0].streams[0].used for number in range(1, 9)]
    assert used == [4, 5, 6, 7, 8, 9, 10, 6]
    verified(context)


# --- operations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [SMALL, STREAMS], ids=["unified", "streams"])
def test_every_operation_is_verified(llama: Model, settings: ContextSettings) -> None:
    context = Context(llama, settings)
    checked = self_check.self_check(context)
    assert checked.complete, str(checked)
    context.decode(text(20))
    context.memory.seq_cp(0, 1)
    context.memory.seq_rm(0, 5, 9)
    context.decode(text(3, 20, 1))
    context.memory.seq_add(1, 10, -1, 4)
    blob, seq_blob = context.states.get(), context.states.seq_get(1)
    context.states.set(blob)
    assert context.states.seq_set(2, seq_blob, list(range(40)))
    context.decode(text(1, 27, 2))
    context.memory.seq_keep(2)
    context.memory.clear()
    verified(context)
    assert context.memory.totals()[0] == 0
    context.close()


def test_a_shift_is_exact_and_cannot_be_stopped_half_way(context: Context) -> None:
    whole = text(9)
    expected = last_logits(context, moved(whole, 30))
    context.memory.clear()
    prefix = Batch(whole.tokens[:8], whole.pos[:8], whole.seq_ids[:8], (False,) * 8)
    last = Batch(whole.tokens[8:], (38,), ((0,),), (True,))
    context.decode(prefix)
    context.memory.seq_add(0, 0, -1, 30)
    context.stop.raise_()
    assert context.decode(last).rc == 2
    context.stop.lower()
    assert context.memory.seq_pos_max(0) == 37
    assert np.abs(last_logits(context, last) - expected).max() < 0.02
    verified(context)


@pytest.mark.parametrize("full", [False, True], ids=["room", "full"])
def test_a_pending_shift_is_applied_before_a_state_is_saved(context: Context, full: bool) -> None:
    whole = text(9)
    expected = last_logits(context, moved(whole, 30))
    context.memory.clear()
    context.decode(Batch(whole.tokens[:8], whole.pos[:8], whole.seq_ids[:8], (False,) * 8))
    if full:
        for s in (1, 2, 3):
            for first in range(0, 160, 40):
                context.decode(text(40, first, s))
    context.memory.seq_add(0, 0, -1, 30)
    blob = context.states.seq_get(0)
    context.memory.clear()
    assert context.states.seq_set(3, blob)
    got = last_logits(context, Batch(whole.tokens[8:], (38,), ((3,),), (True,)))
    assert np.abs(got - expected).max() < 0.02
    verified(context)


def test_a_queued_copy_does_not_overwrite_what_is_restored(llama: Model) -> None:
    context = Context(llama, STREAMS)
    whole = text(9)
    expected = last_logits(context, whole)
    blob = context.states.seq_get(0)
    context.decode(text(5, 3, 1))
    context.memory.seq_cp(1, 2)
    context.states.seq_set(2, blob)
    context.memory.seq_rm(2, 8, -1)
    got = last_logits(context, Batch(whole.tokens[8:], (8,), ((2,),), (True,)))
    assert np.abs(got - expected).max() < 1e-4
    context.close()


def test_a_shift_with_no_sequence_free(tiny_folder: Path) -> None:
    """A hybrid can give back no single token: the shift then goes with the decode itself."""
    model = Model(written(tiny_folder, "granitehybrid"))
    context = Context(model, SMALL)
    for s in range(4):
        context.decode(text(3, 0, s))
    context.memory.seq_add(0, 0, -1, 2)
    assert context.decode(text(1, 5, 0)).rc == 0
    verified(context)
    context.close()
    model.close()


def test_layers_without_rope_would_be_rotated(tiny_folder: Path) -> None:
    """Why such models are refused a shift: K of the layer without RoPE changes with its number."""
    model = Model(written(tiny_folder, "smollm3"))
    context = Context(model, SMALL)
    assert not context.can("seq_add")
    context.decode(text(8))

    def k_of_last_layer() -> NDArray[np.float16]:
        blob = context.states.get()
        section = parse_state(blob, context.memory.mirror.geometry).caches[0][0].sections[3]
        return np.frombuffer(blob[section.offset : section.offset + section.n_bytes], dtype=np.float16)

    before = k_of_last_layer()
    lib.llama_memory_seq_add(lib.llama_get_memory(context._ctx), 0, 0, -1, 5)
    context.memory.mirror.seq_add(0, 0, -1, 5)
    context.memory.flush()
    assert np.abs(k_of_last_layer() - before).max() > 1
    context.close()
    model.close()


def test_quantized_k_and_every_type_can_be_made(llama: Model) -> None:
    for kind in CacheType:
        context = Context(llama, SMALL.model_copy(update={"type_k": kind, "type_v": kind}))
        context.decode(text(12))
        if context.can("seq_add"):
            context.memory.seq_add(0, 3, -1, 2)
            context.decode(text(1, 14))
        verified(context)
        context.close()


# --- verification ---------------------------------------------------------------------------------------------------


def test_a_large_state_of_streams_is_not_copied_unasked(llama: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditor, "AUDIT_BYTES", 1000)
    context = Context(llama, STREAMS)
    context.decode(text(20))
    assert context.auditor.audit().state == "mirrored"
    assert context.auditor.audit(whole=True).state == "verified"
    context.close()


def test_cells_of_one_stream_are_audited_without_k_and_v(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditor, "AUDIT_BYTES", 0)
    monkeypatch.setattr(context.auditor, "read_state", lambda: pytest.fail("K and V were copied"))
    engine_log().forget()
    context.decode(text(20))
    context.memory.seq_cp(0, 1, 0, 12)
    context.memory.seq_rm(0, 5, 9)
    for _ in range(2):
        assert context.auditor.audit().state == "verified"
        context.memory.seq_rm(-1, -1, -1)
    assert engine_log().problems() == "", "that the state was cut off is what was asked for"


def test_the_beginning_of_a_state_is_that_of_the_whole(context: Context) -> None:
    context.decode(text(20))
    whole = context.states.get()
    n = 12 + len("llama") + 20 * 12
    assert state.get_beginning(context.memory.ctx, n + 8)[:n] == whole[:n]
    short = state.get_beginning(context.memory.ctx, len(whole) + 9)
    assert short == bytes(whole) + bytes(9), "the state ends, and zeros follow"


@pytest.mark.parametrize("more", [True, False])
def test_a_cell_too_many_or_too_few_is_found(context: Context, *, more: bool) -> None:
    """Between the first and the last position, so that the spans are the same."""
    context.decode(text(20))
    cells = context.memory.mirror.caches[0].streams[0]
    if more:
        cells.place(np.array([20]), np.array([10], np.int32), [(0,)], np.array([1], np.int32), 1)
    else:
        cells.free(np.array([10]))
    assert context.auditor.audit().state == "mismatch"
    assert "used cell" in context.memory.verification.detail


def test_mismatch_is_reported_and_the_map_rebuilt(context: Context) -> None:
    context.decode(text(20))
    context.memory.seq_cp(0, 1)
    context.memory.seq_rm(0, 5, 9)
    cells = context.memory.mirror.caches[0].streams[0]
    cells.pos[10] = 99
    assert context.auditor.audit().state == "mismatch"
    assert "cell 10" in context.memory.verification.detail
    told = json.loads(context.verifier.report.to_json())
    assert told["difference"]["mirror"] == "99"
    assert told["difference"]["engine"] == "10"
    assert "llama_memory_seq_rm(mem, 0, 5, 9) -> True" in told["operations"][-1]
    assert told["versions"]["llama-cpp-python"]
    assert told["settings"]["n_ctx"] == 512
    assert context.decode(text(1, 20)).rc == 0
    assert context.memory.verification.state == "verified"
    assert context.memory.verification.rebuilt_at > 0
    verified(context)
    assert context.memory.totals()[0] == 21


def test_rules_that_stay_wrong_stay_marked(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamCells, "_lower_head", lambda *_: None)
    for first in range(20, 60, 2):
        context.decode(text(first, 0))
        context.memory.seq_rm(0, 3, -1)
        context.decode(text(first - 3, 3))
        context.memory.clear()
    assert context.memory.verification.state == "mismatch"


def test_the_proof_finds_a_broken_rule(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamCells, "_lower_head", lambda *_: None)
    assert self_check.self_check(context).mismatch
    assert context.memory.verification.state == "mismatch"


def test_the_proof_is_bounded_in_time_and_says_so(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_check, "BUDGET_S", 0.0)
    checked = self_check.self_check(context)
    assert (checked.n_steps, checked.complete) == (1, False)
    assert str(checked).startswith("1 of ")
    assert context.memory.verification.state == "verified"
    assert "ran out of time" in context.memory.verification.detail


def test_without_a_twin_nothing_is_verified(llama: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> self_check.SelfCheck:
        raise ContextError("no memory for it")

    monkeypatch.setattr(self_check, "prove", no_room)
    context = self_check.checked_context(llama, SMALL)
    context.decode(text(20))
    assert context.auditor.audit().state == "mirrored"
    assert "no memory for it" in context.memory.verification.detail
    context.close()


def test_another_engine_is_never_verified(llama: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_module, "engine_version", lambda: EngineVersion("0.4.0", "abcdef0", ""))
    context = Context(llama, SMALL)
    context.decode(text(20))
    context.memory.seq_rm(0, 3, 5)
    found = context.auditor.audit()
    assert found.state == "mirrored"
    assert "0.4.0" in found.detail
    assert "not proved" in found.detail
    context.close()


def test_an_unknown_kind_of_memory_is_never_verified(llama: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama, "facts", replace(llama.facts, kind="unknown", reason="it is of another kind"))
    context = Context(llama, SMALL)
    assert context.decode(text(20)).rc == 0
    assert context.auditor.audit().state == "mismatch"
    assert context.memory.verification.detail == "it is of another kind"
    context.close()


def test_a_state_the_engine_does_not_take(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    context.decode(text(20))
    blob = context.states.get()
    monkeypatch.setattr(state, "set_state", lambda *_: False)
    with pytest.raises(EngineError):
        context.states.set(blob)
    assert context.memory.totals()[0] == 0
    verified(context)


def test_maps_are_required_at_level_three(llama: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context(llama, SMALL, inspect=MAPS)
    context.decode(text(5))
    assert context.memory.verification.state == "verified"
    without_maps = [replace(dump, position_map=None) for dump in parse_log([LINE])]
    monkeypatch.setattr("kvdesk.backends.local.llama.memory.mirrored_memory.parse_log", lambda _: without_maps)
    context.decode(text(1, 5))
    assert "not printed" in context.memory.verification.detail
    context.close()
