"""The last tokens of a batch taken back from a hybrid memory: where llama.cpp kept the state, and nowhere else."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kvdesk.backends.local.llama.binding import CountdownFlag, lib
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.batch import Batch
from kvdesk.cache.compare import compare_logits
from kvdesk.errors import RefusedCall, UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.protocol.cache import RebuildContext, UsePolicy
from kvdesk.protocol.chat import LoadModel
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import CachePolicy, CacheType, ContextSettings, Sampling
from tests.backends.local.conftest import SMALL, opened_with
from tests.backends.local.ids import Ids, open_model, prompt_of
from tests.backends.local.tiny_models import written
from tests.cache.models import write_model

ASKED = ContextSettings(n_ctx=512, n_seq_max=4, n_batch=64, n_ubatch=32, n_threads=1, n_threads_batch=1, n_rs_seq=4)
TEXT = prompt_of(3, 40)


@pytest.fixture(scope="module")
def model(tiny_folder: Path) -> Iterator[Model]:
    opened = open_model("hybrid", tiny_folder)
    yield opened
    opened.close()


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    made = Context(model, ASKED, stop=CountdownFlag())
    yield made
    assert made.auditor.audit(whole=True).state == "verified"
    made.close()


def read(context: Context, tokens: list[int], seq_id: int = 0) -> NDArray[np.float32]:
    start = context.memory.seq_pos_max(seq_id) + 1
    assert context.decode(Batch.of(seq_id, start, tokens, "last")).rc == 0
    return context.logits()


def fresh(model: Model, tokens: list[int]) -> NDArray[np.float32]:
    with closing(Context(model, ASKED)) as context:
        return read(context, tokens)


@pytest.mark.parametrize("name", ["hybrid", "hybrid_iswa", "hybrid_idx", "dsv4"])
def test_taken_back_is_as_never_read(tiny_folder: Path, name: str) -> None:
    model = open_model(name, tiny_folder)
    context = Context(model, ASKED)
    for n in (1, 2, 4):
        read(context, TEXT[:20])
        assert context.memory.removable(0) == 4
        assert context.memory.seq_rm(0, 20 - n, -1)
        other = [7, 9]
        found = compare_logits(fresh(model, TEXT[: 20 - n] + other), read(context, other))
        assert found.verdict.same, found
        assert context.memory.seq_rm(0, -1, -1)
    assert context.auditor.audit(whole=True).state == "verified"
    context.close()
    model.close()


def test_what_is_not_kept_is_not_removed(context: Context, model: Model) -> None:
    """llama.cpp says yes, and goes on with the state of some other place."""
    read(context, TEXT[:20])
    for token in TEXT[20:24]:
        read(context, [token])
    memory = context.memory
    assert (memory.removable(0), context.traits.geometry.most_removable) == (0, 4)
    assert not memory.seq_rm(0, 22, -1)
    assert memory.seq_pos_max(0) == 23
    saved = context.states.get()
    assert lib.llama_memory_seq_rm(lib.llama_get_memory(memory.ctx), 0, 22, -1)
    assert memory.seq_pos_max(0) == 21
    wrong = Batch.of(0, 22, [7], "last")
    memory._batch.fill(wrong)
    assert lib.llama_decode(memory.ctx, memory._batch.raw) == 0
    logits = np.ctypeslib.as_array(lib.llama_get_logits_ith(memory.ctx, 0), shape=(model.vocab.n_tokens,)).copy()
    assert not compare_logits(fresh(model, [*TEXT[:22], 7]), logits).verdict.same
    context.states.set(saved, carry=True)


def test_a_state_that_waits_is_not_shared(context: Context, model: Model) -> None:
    read(context, TEXT[:20])
    context.memory.seq_rm(0, 18, -1)
    with pytest.raises(RefusedCall, match="put back with its next token"):
        context.memory.seq_cp(0, 1)
    read(context, TEXT[:10], seq_id=1)
    context.memory.seq_cp(1, 0)  # replaces what waited: 0 goes on as 1 does
    assert not context.memory.mirror.gone_back(0)
    assert compare_logits(fresh(model, [*TEXT[:10], 5]), read(context, [5])).verdict.same


def test_nothing_that_waited_comes_back_later(context: Context, model: Model) -> None:
    read(context, TEXT[:20])
    read(context, TEXT[:12], seq_id=1)
    context.memory.seq_rm(1, 10, -1)
    context.memory.seq_keep(0)
    context.memory.seq_rm(0, 18, -1)
    context.memory.seq_rm(0, 0, 18)
    for seq_id in (0, 1):
        assert compare_logits(fresh(model, [3, 4]), read(context, [3, 4], seq_id)).verdict.same


def test_a_stopped_decode_leaves_no_state_that_counts(context: Context) -> None:
    read(context, TEXT[:20])
    stop = context.stop
    assert isinstance(stop, CountdownFlag)
    stop.left = 3
    assert context.decode(Batch.of(0, 20, TEXT[20:23])).rc == 2
    stop.left = -1
    assert context.memory.seq_pos_max(0) == -1, "llama.cpp counted on a state from before, which it had not written yet"


def test_a_stopped_decode_of_shared_tokens_does_not_abort_later(context: Context) -> None:
    both = Batch(TEXT[:6], range(6), [(0, 1)] * 6, [False] * 6)
    assert context.decode(both).rc == 0
    stop = context.stop
    assert isinstance(stop, CountdownFlag)
    stop.left = 3
    assert context.decode(Batch(TEXT[6:9], range(6, 9), [(0, 1)] * 3, [False] * 3)).rc == 2
    stop.left = -1
    assert len(context.memory.mirror.unknown) == 1, "the other one was emptied"
    context.states.get()  # aborted the process


def test_an_edit_of_the_last_words_needs_no_checkpoint(model: Model, tmp_path: Path) -> None:
    """The prompt was read and nothing written yet: the tokens that changed are removed."""
    with closing(Ids(model, tmp_path, CacheType.F16, memory=0, n_rs_seq=4)) as ids:
        sequence = ids.lease("one")
        ids.cache_manager.decode([(sequence, Batch.of(sequence.seq_id, 0, TEXT[:20]))])
        edited = [*TEXT[:17], 5, 6, 7]
        assert ids.cache_manager.acquire_prefix(sequence, edited).n_tokens == 17
        assert ids.cache_manager.acquire_prefix(sequence, [*TEXT[:10], 5]).n_tokens == 0


@pytest.mark.parametrize("n_written", [2, pytest.param(12, marks=pytest.mark.matrix)])
def test_no_turn_reads_less_because_of_them(tiny_folder: Path, n_written: int) -> None:
    """Why the setting is 0 at first: an answer is written one token at a time, and its second token is read over what
    was kept of its question's end. Without checkpoints, which would hide it.
    """
    read = {}
    for n_rs_seq in (0, 7):
        settings = SMALL.model_copy(update={"n_rs_seq": n_rs_seq})
        for headless in opened_with(written(tiny_folder, "lfm2", text=True), settings):
            session_of(headless).loaded.model.vocab.ignore_eog()
            headless.do(UsePolicy(CachePolicy(memory_mb=0, disk_mb=0)))
            chat = HeadlessChat(headless)
            chat.answer("one two three", Sampling(temperature=0.0, max_tokens=n_written))
            asked = list(chat.messages)
            found = []
            for text in ("four five", "four five", "four fivf", "four"):  # asked, again, edited, shortened
                chat.messages = asked
                found.append(chat.answer(text, Sampling(temperature=0.0, max_tokens=n_written)).stats.prefilled_tokens)
            read[n_rs_seq] = found
    assert read[7] == read[0]
    assert min(read[7][1:]) > 20, "read from the beginning"


@pytest.mark.usefixtures("models_are_tried")
def test_too_many_for_llama_cpp_are_refused_before_anything_is_lost(tmp_path: Path) -> None:
    """Each takes three nodes a layer of a graph that has room for 1,024: it aborts (ggml.c:1814)."""
    with closing(HeadlessEngine()) as headless:
        headless.do(LoadModel(LocalFile(write_model(tmp_path / "deep.gguf", "hybrid_deep")), SMALL))
        before = headless.engine.session.runtime
        with pytest.raises(UserError, match=r"crash .* no room for 40 earlier states \(n_rs_seq\)"):
            headless.do(RebuildContext(SMALL.model_copy(update={"n_rs_seq": 40, "n_ubatch": 64})))
        assert headless.engine.session.runtime is before
