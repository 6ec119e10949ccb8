"""What tokens look at: weights of a second context, against the live cells themselves and against llama.cpp's own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvdesk.backends.local.attention import job
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.attention import reader as attention_reader
from kvdesk.backends.local.llama.attention.second_context import SecondContext
from kvdesk.backends.local.scheduler import answer_events
from kvdesk.cache.batch import Batch
from kvdesk.cache.compaction import Layout
from kvdesk.errors import EngineError, UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import ConversationId, new_conversation_id
from kvdesk.protocol.attention import Attend, Attended, AttentionPreview, PreviewAttention, Queries
from kvdesk.protocol.cache import Forget
from kvdesk.protocol.chat import CloseConversation, TextDelta
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.operations import Compact, CopySequence, HandOperation, Operate, RemoveRange, ShiftPositions
from kvdesk.settings import CacheType, Sampling
from tests.backends.local.attention_oracle import Fused, agrees, attended, recorded
from tests.backends.local.by_hand import GREEDY
from tests.backends.local.conftest import SMALL, opened_with
from tests.backends.local.test_stop_waiting import asked, ends, step_until
from tests.backends.local.test_turns import of
from tests.backends.local.tiny_models import written

SPLIT: dict[str, object] = {"kv_unified": False}
PLAIN: dict[str, object] = {"flash_attn": False}


def quantized(kind: CacheType) -> dict[str, object]:
    return {"type_k": kind, "type_v": kind}


def held(headless: HeadlessEngine, n: int, seed: int = 0) -> CacheSequence:
    """A sequence of `n` tokens, the last one decoded alone as an answer's tokens are."""
    session = session_of(headless)
    cache = session.runtime.cache_manager
    sequence = cache.lease(new_conversation_id())
    n_vocab = min(session.loaded.model.vocab.n_tokens, 100)
    tokens = np.random.default_rng(seed).integers(3, n_vocab, n).tolist()
    for first in range(0, n - 1, 32):
        part = tokens[first : min(first + 32, n - 1)]
        cache.decode([(sequence, Batch.of(sequence.seq_id, first, part))], "prefill")
    cache.decode([(sequence, Batch.of(sequence.seq_id, n - 1, tokens[-1:]))])
    return sequence


def by_hand(headless: HeadlessEngine, operation: HandOperation) -> None:
    headless.do(Operate(operation, measured=False))


def emptied(headless: HeadlessEngine) -> HeadlessEngine:
    for sequence in session_of(headless).runtime.cache_manager.pool:
        headless.do(CloseConversation(sequence.conversation))
    return headless


# --- kinds of cache ---------------------------------------------------------------------------------------------------


KINDS: dict[str, dict[str, object]] = {
    "f16": {},
    "q8_0": quantized(CacheType.Q8_0),
    "q4_0": quantized(CacheType.Q4_0),
    "bf16": quantized(CacheType.BF16),
    "streams": SPLIT,
    "without flash attention": PLAIN,
}


def embedded(*every_run: str) -> list[object]:
    """All kinds of cache of the embedded model, whose weights are trained and whose heads are grouped: these in every
    run, the others in the matrix.
    """
    marks = {kind: [] if kind in every_run else [pytest.mark.matrix] for kind in KINDS}
    return [pytest.param(("embedded", kind), id=kind, marks=marks[kind]) for kind in KINDS]


@pytest.fixture(scope="module", params=[pytest.param(("tiny", "q8_0"), id="tiny"), *embedded()])
def kinds(request: pytest.FixtureRequest, talking_file: Path, model_file: Path) -> Iterator[HeadlessEngine]:
    model, kind = request.param
    yield from opened_with(talking_file if model == "tiny" else model_file, SMALL.model_copy(update=KINDS[kind]))


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Fused]]:
    return recorded(monkeypatch)


@pytest.mark.parametrize("kinds", embedded("q8_0", "streams"), indirect=True)
def test_weights_are_those_of_q_and_the_live_cells(kinds: HeadlessEngine, fused: list[tuple[int, Fused]]) -> None:
    """At every layer, before and after removing, moving, sharing and compacting."""
    headless = emptied(kinds)
    if not session_of(headless).runtime.context.settings.flash_attn:
        pytest.skip("its weights are llama.cpp's own")
    can = session_of(headless).runtime.context.capabilities
    other = held(headless, 20, seed=1)
    sequence = held(headless, 60)
    found = agrees(headless, Queries(sequence.seq_id), fused)
    assert len(found.layers) == 30
    assert found.pos.tolist() == [59]
    assert found.columns.pos.tolist() == list(range(60))
    assert found.columns.token.tolist() == list(sequence.tokens)
    cells = session_of(headless).runtime.cache_manager.snapshot().maps[0].streams[found.columns.stream]
    assert cells.pos[found.columns.cells[0]].tolist() == list(range(60))
    by_hand(headless, RemoveRange(sequence.seq_id, 10, 20))  # a hole
    found = agrees(headless, Queries(sequence.seq_id), fused, edited=True)
    assert found.columns.pos.tolist() == [*range(10), *range(20, 60)]
    if can["partial seq_cp"].allowed:
        by_hand(headless, CopySequence(sequence.seq_id, ConversationId("copy"), -1, -1))
        (copy,) = (s for s in session_of(headless).runtime.cache_manager.pool if s.conversation == "copy")
        shared = agrees(headless, Queries(copy.seq_id), fused, edited=True)
        assert shared.columns.cells[0].tolist() == found.columns.cells[0].tolist()
        headless.do(Forget(ConversationId("copy")))
    headless.do(Forget(other.conversation))
    if can["compaction"].allowed:
        by_hand(headless, Compact(Layout.KEEP_ORDER))
        moved = agrees(headless, Queries(sequence.seq_id), fused, edited=True)
        assert moved.columns.cells[0].tolist() == list(range(50))
    if can["seq_add"].allowed:
        by_hand(headless, ShiftPositions(sequence.seq_id, 20, -1, -10))  # K waits to be rotated
        closed = agrees(headless, Queries(sequence.seq_id), fused, edited=True)
        assert closed.columns.pos.tolist() == list(range(50))


def test_a_token_behind_a_hole(kinds: HeadlessEngine, fused: list[tuple[int, Fused]]) -> None:
    """llama.cpp decodes no token behind a gap, so the last cell in front of it is moved by name alone."""
    headless = emptied(kinds)
    sequence = held(headless, 40)
    by_hand(headless, RemoveRange(sequence.seq_id, 20, 39))
    found = attended(headless, Queries(sequence.seq_id))
    assert found.pos.tolist() == [39]
    assert found.columns.pos.tolist() == [*range(20), 39]
    for layer in found.layers:
        np.testing.assert_allclose(layer.weights.sum(axis=-1), 1, atol=1e-4)
    if fused:
        agrees(headless, Queries(sequence.seq_id), fused, edited=True)


def test_tokens_on_both_sides_of_a_hole(kinds: HeadlessEngine) -> None:
    """Those behind it see the live cells in front of it, those asked for among them too."""
    headless = emptied(kinds)
    sequence = held(headless, 40)
    by_hand(headless, RemoveRange(sequence.seq_id, 20, 30))
    both = attended(headless, Queries(sequence.seq_id, p0=16, p1=34, each=True))
    assert both.pos.tolist() == [16, 17, 18, 19, 30, 31, 32, 33]
    assert both.columns.pos.tolist() == [*range(20), *range(30, 34)]
    behind = attended(headless, Queries(sequence.seq_id, p0=30, p1=34, each=True))
    for one, two in zip(both.layers, behind.layers, strict=True):
        np.testing.assert_allclose(one.weights.sum(axis=-1), 1, atol=1e-4)
        np.testing.assert_array_equal(one.weights[:, 4:], two.weights)


@pytest.mark.parametrize("kinds", embedded("q8_0"), indirect=True)
def test_the_weights_make_what_flash_attention_made(kinds: HeadlessEngine, fused: list[tuple[int, Fused]]) -> None:
    """Times V they are its output: mask, scale and groups are those of the engine."""
    headless = emptied(kinds)
    if not session_of(headless).runtime.context.settings.flash_attn:
        pytest.skip("there is none")
    attended(headless, Queries(held(headless, 50).seq_id, p0=40, each=True))
    assert len(fused) == 30
    for _, one in fused:
        whose = np.arange(len(one.q)) // (len(one.q) // len(one.v))
        product = one.weights @ one.v[whose]
        np.testing.assert_allclose(product, one.out, atol=0.02 * np.abs(one.out).max())


def test_a_row_for_each_token_and_their_sum(kinds: HeadlessEngine) -> None:
    headless = emptied(kinds)
    sequence = held(headless, 40)
    each = attended(headless, Queries(sequence.seq_id, p0=30, p1=36, each=True))
    total = attended(headless, Queries(sequence.seq_id, p0=30, p1=36))
    assert each.pos.tolist() == total.pos.tolist() == list(range(30, 36))
    for one, both in zip(each.layers, total.layers, strict=True):
        assert (one.weights.shape[1], both.weights.shape[1]) == (6, 1)
        np.testing.assert_allclose(one.weights.sum(axis=-1), 1, atol=1e-4)
        np.testing.assert_allclose(one.weights.sum(axis=1), both.weights[:, 0], atol=1e-4)
        for i in range(6):
            assert not one.weights[:, i, 31 + i :].any(), "nothing of what comes later"
    part = attended(headless, Queries(sequence.seq_id, p0=30, p1=36, each=True, first=20))
    for one, less in zip(each.layers, part.layers, strict=True):
        np.testing.assert_array_equal(one.weights[..., 20:], less.weights)
        np.testing.assert_allclose(less.weights.sum(axis=-1) + less.elsewhere, 1, atol=1e-4)


def test_a_fragmented_cache_and_a_fresh_one_agree(kinds: HeadlessEngine) -> None:
    """By position: whatever cells they lie in."""
    headless = emptied(kinds)
    fresh = attended(headless, Queries(held(headless, 30).seq_id))
    emptied(headless)
    others = [held(headless, 20, seed=seed) for seed in (1, 2)]
    headless.do(Forget(others[0].conversation))
    scattered = attended(headless, Queries(held(headless, 30).seq_id))
    if session_of(headless).runtime.context.settings.kv_unified:
        assert scattered.columns.cells[0].tolist() != fresh.columns.cells[0].tolist()
    for one, two in zip(fresh.layers, scattered.layers, strict=True):
        np.testing.assert_allclose(one.weights, two.weights, atol=0.05)  # Q4_1: what is rounded to 8 bits steps


# --- every kind of memory ---------------------------------------------------------------------------------------------

PLENTY = SMALL.model_copy(update={"n_ctx": 512, "n_seq_max": 2})


@pytest.mark.parametrize(
    "name", ["iswa", *(pytest.param(n, marks=pytest.mark.matrix) for n in ("gpt2", "bloom", "qwen2vl", "phi3"))]
)
@pytest.mark.parametrize("split", [False, pytest.param(True, marks=pytest.mark.matrix)])
def test_with_and_without_flash_attention(name: str, split: bool, tiny_folder: Path) -> None:
    """Weights computed from Q and K are those that llama.cpp computes if it has no fused operation."""
    answers: list[Attended] = []
    for flash_attn in (True, False):
        update = {"flash_attn": flash_attn, "kv_unified": not split}
        for headless in opened_with(written(tiny_folder, name), PLENTY.model_copy(update=update)):
            held(headless, 8, seed=1)
            answers.append(attended(headless, Queries(held(headless, 60).seq_id, p0=50, each=True)))
    on, off = answers
    assert [layer.layer for layer in on.layers] == [layer.layer for layer in off.layers]
    assert [layer.cache for layer in on.layers] == [layer.cache for layer in off.layers]
    for one, two in zip(on.layers, off.layers, strict=True):
        np.testing.assert_allclose(one.weights, two.weights, atol=2e-3)  # V is added up in f16
        np.testing.assert_allclose(one.weights.sum(axis=-1) + one.elsewhere, 1, atol=1e-4)


@pytest.mark.parametrize("name", ["iswa", pytest.param("chunked", marks=pytest.mark.matrix)])
@pytest.mark.parametrize("split", [False, pytest.param(True, marks=pytest.mark.matrix)])
def test_a_window(name: str, split: bool, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last token's window is in the sequence's own state, that of an earlier one in the state of the whole."""
    fused = recorded(monkeypatch)
    for headless in opened_with(written(tiny_folder, name), PLENTY.model_copy(update={"kv_unified": not split})):
        held(headless, 30, seed=1)
        sequence = held(headless, 60)
        last = agrees(headless, Queries(sequence.seq_id), fused)
        earlier = agrees(headless, Queries(sequence.seq_id, p0=50, p1=51), fused)
        assert last.n_read == earlier.n_read == 0
        if name == "iswa":
            n_swa = session_of(headless).runtime.cache_manager.snapshot().maps[1].n_swa
            for found in (last, earlier):
                windowed = next(layer for layer in found.layers if layer.cache == 1)
                n = len(found.columns.pos)
                assert not windowed.weights[..., : n - n_swa].any()
                assert (windowed.weights[..., n - n_swa :] > 0).all()


def test_a_window_that_was_overwritten_is_read_again(tiny_folder: Path) -> None:
    """What it held is computed once more: the same as in a window that was never small."""
    answers = []
    for swa_full in (True, False):
        settings = PLENTY.model_copy(update={"swa_full": swa_full, "n_seq_max": 1})
        for headless in opened_with(written(tiny_folder, "iswa"), settings):
            sequence = held(headless, 300)
            answers.append(attended(headless, Queries(sequence.seq_id, p0=20, p1=21)))
            if not swa_full:
                by_hand(headless, RemoveRange(sequence.seq_id, 5, 10))
                with pytest.raises(UserError, match="a part of it was removed"):
                    attended(headless, Queries(sequence.seq_id, p0=20, p1=21))
    full, small = answers
    assert (full.n_read, small.n_read) == (0, 20)
    assert (small.columns.cells[1] == -1).any()
    for one, two in zip(full.layers, small.layers, strict=True):
        np.testing.assert_allclose(one.weights, two.weights, atol=1e-3)


def test_a_recurrent_part_is_read_again(tiny_folder: Path) -> None:
    for headless in opened_with(written(tiny_folder, "hybrid"), PLENTY):
        sequence = held(headless, 40)
        (price,) = of(headless.do(PreviewAttention(Queries(sequence.seq_id))), AttentionPreview)
        assert (price.n_read, price.n_tokens, price.state_bytes) == (39, 1, 0)
        found = attended(headless, Queries(sequence.seq_id))
        assert [layer.layer for layer in found.layers] == [1]
        assert found.n_read == 39
        np.testing.assert_allclose(found.layers[0].weights.sum(axis=-1), 1, atol=1e-4)


@pytest.mark.parametrize(("name", "why"), [("mamba2", "no attention"), ("msa", "picks K out of the cache")])
def test_why_not_is_said(name: str, why: str, tiny_folder: Path) -> None:
    for headless in opened_with(written(tiny_folder, name), PLENTY):
        sequence = held(headless, 10)
        (price,) = of(headless.do(PreviewAttention(Queries(sequence.seq_id))), AttentionPreview)
        assert price.refused == session_of(headless).runtime.context.capabilities["attention"].why
        with pytest.raises(UserError, match=why):
            attended(headless, Queries(sequence.seq_id))


@pytest.mark.matrix
def test_k_of_32_bits_is_converted_first(model_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = recorded(monkeypatch)
    for headless in opened_with(model_file, SMALL.model_copy(update=quantized(CacheType.F32))):
        agrees(headless, Queries(held(headless, 40).seq_id), fused)


# --- beside answers ---------------------------------------------------------------------------------------------------


def tokens_of(headless: HeadlessEngine, n_asked: int) -> list[int]:
    """The tokens of an answer, while attention is asked for `n_asked` times: of what it has written by then."""
    engine = headless.engine
    headless.events = []
    answer = asked("Name three rivers.", n_tokens=40)
    engine.handle(answer)
    step_until(headless, lambda: bool(of(headless.events, TextDelta)))
    for number in range(n_asked):
        sequence = session_of(headless).runtime.cache_manager.pool.get(answer.conversation)
        assert sequence.busy
        engine.handle(Attend(Queries(sequence.seq_id), number))
        step_until(headless, lambda: len(of(headless.events, Attended)) > number)  # noqa: B023 - called at once
    step_until(headless, lambda: not engine.busy)
    assert ends(headless)[answer.answer].stats.generated_tokens == 40
    asked_at = [int(found.pos[0]) for found in of(headless.events, Attended)]
    assert asked_at == sorted(asked_at)
    assert len(asked_at) == n_asked
    tokens = [token for delta in of(headless.events, TextDelta) for token in delta.tokens]
    headless.do(CloseConversation(answer.conversation))
    return tokens


def test_answers_go_on_beside_it(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_events, "TELL_S", 0.0)  # each token is a step
    vocab = session_of(headless).loaded.model.vocab
    monkeypatch.setattr(vocab, "_eog", dict.fromkeys(range(vocab.n_tokens), False))  # others use this model too
    alone = tokens_of(headless, 0)
    assert len(alone) == 40
    assert tokens_of(headless, 3) == alone


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_error_in_the_callback_costs_no_token(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def fails(_tensor: Any) -> Any:
        raise error

    monkeypatch.setattr(attention_reader, "fused_weights", fails)
    chat = HeadlessChat(headless)
    ended = chat.answer("Name three rivers.", GREEDY)
    (sequence,) = session_of(headless).runtime.cache_manager.pool
    before, tokens = session_of(headless).runtime.cache_manager.snapshot(), list(sequence.tokens)
    headless.engine.handle(Attend(Queries(sequence.seq_id), 4))
    step_until(headless, lambda: not headless.engine.busy)
    (failed,) = of(headless.events, CommandFailed)
    assert failed.sentence == "The attention of this model could not be read."
    assert error.__name__ in failed.detail
    after = session_of(headless).runtime.cache_manager.snapshot()
    np.testing.assert_array_equal(before.maps[0].streams[0].pos, after.maps[0].streams[0].pos)
    assert list(sequence.tokens) == tokens
    monkeypatch.undo()
    assert len(attended(headless, Queries(sequence.seq_id)).layers) > 0
    more = chat.answer("And three lakes.", GREEDY)
    assert more.stats.reused_tokens >= ended.stats.prompt_tokens


def test_the_second_context_is_freed_when_the_job_is_ended(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_contexts: list[Any] = []

    class Watched(SecondContext):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made_contexts.append(self)

    monkeypatch.setattr(job, "SecondContext", Watched)
    chat = HeadlessChat(headless)
    chat.answer("Name three rivers.", Sampling(temperature=0.0, max_tokens=4))
    (sequence,) = session_of(headless).runtime.cache_manager.pool
    headless.engine.handle(Attend(Queries(sequence.seq_id, p0=0)))
    while not made_contexts:
        headless.engine.step()
    headless.engine.request_cancel()
    step_until(headless, lambda: not headless.engine.busy)
    assert not of(headless.events, Attended)
    assert not made_contexts[0]._context.is_open


# --- what is asked for ------------------------------------------------------------------------------------------------


def test_what_cannot_be_asked_has_a_sentence(headless: HeadlessEngine) -> None:
    sequence = held(headless, 20)
    seq_id = sequence.seq_id
    for queries, sentence in (
        (Queries(9), "Sequence 9 does not exist: this context has sequences 0 to 3."),
        (Queries(3), "Sequence 3 holds no cell."),
        (Queries(seq_id, p0=50, p1=60), "The sequence holds no token at these positions."),
        (Queries(seq_id, p0=4, p1=4), "The sequence holds no token at these positions."),
        (Queries(seq_id, p0=4, p1=5, first=10), "No cell is at position 10 or behind it."),
    ):
        (price,) = of(headless.do(PreviewAttention(queries)), AttentionPreview)
        assert price.refused == sentence
        with pytest.raises(UserError, match=sentence[:20]):
            attended(headless, queries)


def test_the_price_is_said_before(headless: HeadlessEngine) -> None:
    chat = HeadlessChat(headless)
    chat.answer("Name three rivers.", GREEDY)
    (sequence,) = session_of(headless).runtime.cache_manager.pool
    queries = Queries(sequence.seq_id, p0=5)
    (price,) = of(headless.do(PreviewAttention(queries)), AttentionPreview)
    n = len(sequence.tokens) - 5
    assert (price.refused, price.n_tokens, price.n_read) == ("", n, 0)
    assert price.seconds is not None
    found = attended(headless, queries)
    assert 0.5 < price.n_bytes / found.n_bytes < 2
    assert f"{n:,} tokens" in price.sentence


def test_another_layout_of_tensors_is_noticed(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(_address: int) -> None:
        raise EngineError("This llama.cpp lays out its tensors otherwise: what they hold cannot be read.")

    monkeypatch.setattr(attention_reader, "check_layout", other)
    sequence = held(headless, 20)
    with pytest.raises(UserError, match="otherwise"):
        attended(headless, Queries(sequence.seq_id))
