"""Going back where a state comes back only whole: to the longest checkpoint, and with the text of a fresh prefill.

On tiny models of every such memory with token ids, windows smaller than the context; and whole turns on two that have
a tokenizer.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.backends.local.cache_manager.hand_cells import HandCells
from kvdesk.backends.local.llama.binding import CountdownFlag, StopFlag
from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.batch import Batch
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import ConversationId, Message, new_message_id
from kvdesk.protocol.cache import OperationDone, UsePolicy
from kvdesk.protocol.chat import CloseConversation, Generate, PreviewTurn, TextDelta, TurnEnded, TurnPreview
from kvdesk.settings import CachePolicy, CacheType, Sampling
from tests.backends.local.conftest import SMALL, emptied, opened_with
from tests.backends.local.ids import CLASSES, OTHERS, Ids, open_model, prompt_of, tiered
from tests.backends.local.test_turns import fresh_answer, of
from tests.backends.local.tiny_models import written

WHOLE = (
    "hybrid",
    "hybrid_iswa",
    "hybrid_idx",
    "dsv4",
    "iswa",
    "mamba2",
    "gemma3-dense",
    "gpt-oss-moe",
    "lfm2-dense",
    "mamba-dense",
)
WINDOWED = ("iswa", "gemma3-dense", "gpt-oss-moe")
N = 24
MARK = 60
BEGIN = prompt_of(0, MARK)
PROMPT = BEGIN + prompt_of(50, 300)  # longer than the window cache: what it saw of the beginning is gone
N_CTX = 768


def open_ids(model: Model, folder: Path, *, memory: int = 1 << 24) -> Ids:
    return Ids(model, folder, CacheType.F16, memory=memory, n_ctx=N_CTX, swa_full=False)


def fresh(model: Model, folder: Path, prompt: list[int]) -> list[int]:
    """The answer in an empty cache with nothing saved."""
    with closing(open_ids(model, folder / "none", memory=0)) as ids:
        reused, tokens, _ = ids.answer("alone", prompt, N)
        assert reused == 0
        assert not ids.cache_manager.swapper.saved_states.checkpoints()
        ids.cache_manager.forget(ConversationId("alone"), "")
        return tokens


@pytest.fixture(scope="module", params=tiered(WHOLE))
def tiny(request: pytest.FixtureRequest, tiny_folder: Path) -> Iterator[Model]:
    model = open_model(request.param, tiny_folder)
    yield model
    model.close()


def test_back_to_a_checkpoint_is_exact(tiny: Model, tmp_path: Path) -> None:
    """Another answer, an edit, the first branch again, and an edit after a restart."""
    with closing(open_ids(tiny, tmp_path / "states")) as ids:
        reused, first, _ = ids.answer("one", PROMPT, N, [MARK])
        assert reused == 0
        assert first == fresh(tiny, tmp_path, PROMPT)
        again = ids.answer("one", PROMPT, N, [MARK])
        assert (again.n_reused, again.tokens) == (len(PROMPT) - 1, first)
        edited = BEGIN + prompt_of(71, 30)
        changed = ids.answer("one", edited, N, [MARK])
        assert changed.n_reused == MARK
        assert changed.tokens == fresh(tiny, tmp_path, edited)
        longer = PROMPT + first[:-1] + prompt_of(90, 20)
        back = ids.answer("one", longer, N)
        assert back.n_reused == len(PROMPT) + N - 1, "the branch that was left was kept"
        assert back.tokens == fresh(tiny, tmp_path, longer)
    with closing(open_ids(tiny, tmp_path / "states")) as ids:
        other = BEGIN + prompt_of(33, 25)
        reborn = ids.answer("one", other, N)
        assert reborn.n_reused == MARK
        assert reborn.tokens == fresh(tiny, tmp_path, other)


def test_an_end_without_its_window_is_read_again(tiny_folder: Path, tmp_path: Path) -> None:
    """A saved state leaves out what no window sees, and its end is then removed by hand."""
    with closing(open_model("iswa", tiny_folder)) as model, closing(Ids(model, tmp_path, CacheType.F16)) as ids:
        ids.read("one", PROMPT[:200])
        sequence = ids.lease("one")
        ids.cache_manager.swap_out(sequence)
        ids.cache_manager.swap_in(sequence.conversation)
        seq_id = ids.lease("one").seq_id
        for n_left, n_reused in ((200, 200), (150, 0)):
            assert HandCells(ids.context, ids.cache_manager).remove(seq_id, n_left, -1)
            assert len(ids.lease("one").tokens) == n_reused, "otherwise its state would be saved"
            assert ids.read("one", PROMPT[: n_left + 10]) == n_reused
            seq_id = ids.lease("one").seq_id


def test_a_state_without_its_window_is_read_again(tiny_folder: Path, tmp_path: Path) -> None:
    """It was saved with tokens behind those that it is known to hold: llama.cpp left out the first of the window."""
    with closing(open_model("iswa", tiny_folder)) as model, closing(Ids(model, tmp_path, CacheType.F16)) as ids:
        ids.read("one", PROMPT[:200])
        sequence = ids.lease("one")
        ids.cache_manager.adopt(sequence, PROMPT[:198])
        ids.cache_manager.swap_out(sequence)
        assert ids.read("one", PROMPT[:200]) == 0


def test_keys_whose_states_were_removed_are_not_reused(tiny_folder: Path, tmp_path: Path) -> None:
    """With streams, `seq_keep` leaves K and V of the other sequences, but not their recurrent states."""
    with (
        closing(open_model("hybrid", tiny_folder)) as model,
        closing(Ids(model, tmp_path, CacheType.F16, n_ctx=1024, kv_unified=False)) as ids,
    ):
        for name in ("one", "two"):
            ids.read(name, BEGIN)
        HandCells(ids.context, ids.cache_manager).keep_only(ids.lease("two").seq_id)
        assert not ids.lease("one").tokens
        assert ids.context.memory.totals()[0] == MARK
        prompt = prompt_of(9, MARK)
        assert ids.answer("one", prompt, N).tokens == ids.answer("three", prompt, N).tokens


def test_a_checkpoint_is_told_with_its_reason(tiny: Model, tmp_path: Path) -> None:
    with closing(open_ids(tiny, tmp_path / "states")) as ids:
        ids.answer("one", PROMPT, N, [MARK])
        kept = [e for e in ids.events if isinstance(e, OperationDone) and e.name == "checkpoint"]
        assert [f"{n:,} tokens" in e.reason for n, e in zip((MARK, len(PROMPT) - 1), kept, strict=True)] == [True, True]
        ids.answer("one", BEGIN + prompt_of(71, 30), N, [MARK])
        (back,) = [e for e in ids.events if isinstance(e, OperationDone) and e.name == "swap in"]
        assert back.reason == f"back to a checkpoint of {MARK} tokens"
        assert ids.cache_manager.swapper.saved_states.conversations() == (), "nothing is said to be swapped out"


def test_a_longer_state_that_cannot_be_cut_does_not_hide_one_that_can_be_used(tiny: Model, tmp_path: Path) -> None:
    with closing(open_ids(tiny, tmp_path / "states")) as ids:
        ids.answer("one", PROMPT, N, [MARK])
        ids.cache_manager.swap_out(ids.lease("one"))
        prompt = PROMPT[:-30] + prompt_of(7, 40)
        most, n = ids.cache_manager.swapper.saved_states.longest_prefix(prompt)
        assert MARK < n < len(most.tokens)
        found = ids.answer("one", prompt, N)
        assert found.n_reused == MARK
        assert found.tokens == fresh(tiny, tmp_path, prompt)


def test_checkpoints_keep_to_their_part_of_the_memory(tiny: Model, tmp_path: Path) -> None:
    with closing(open_ids(tiny, tmp_path / "states")) as ids:
        ids.answer("one", PROMPT, N)
        size = ids.context.states.seq_size(ids.lease("one").seq_id)
    memory = 3 * size
    with closing(open_ids(tiny, tmp_path / "fewer", memory=memory)) as ids:
        for i in range(4):
            ids.answer("one", PROMPT + prompt_of(i, 30), 2)
            kept = ids.cache_manager.swapper.saved_states
            assert 0 < sum(c.n_bytes for c in kept.checkpoints()) <= memory / 2
            assert kept.memory_bytes <= memory


def test_two_conversations_that_begin_alike_both_go_on(tiny: Model, tmp_path: Path) -> None:
    """Cells of a small window that two hold would never be free again."""
    with closing(open_ids(tiny, tmp_path / "states")) as ids:
        prompts = {"one": PROMPT[:240], "two": [*PROMPT[:240], 3, 9]}
        for i in range(2):
            for name, prompt in prompts.items():
                tokens = ids.answer(name, prompt, N).tokens
                assert tokens == fresh(tiny, tmp_path, prompt)
                prompts[name] = prompt + tokens[:-1] + prompt_of(i, 17)


@pytest.fixture
def narrow(tmp_path: Path, tiny_folder: Path) -> Iterator[Ids]:
    """Seven sequences in a window cache that has just their windows and an ubatch: 7 x 32 + 32 cells."""
    model = open_model("iswa", tiny_folder)
    ids = Ids(model, tmp_path / "states", CacheType.F16, n_ctx=2048, swa_full=False, n_seq_max=7, n_ubatch=32)
    assert ids.context.memory.mirror.caches[1].size == 256
    yield ids
    ids.close()
    model.close()


def test_loans_do_not_fill_a_small_window(narrow: Ids) -> None:
    """All begin alike and go on: what was lent is free for nobody then, and an idle conversation leaves in time."""
    told = {"one": prompt_of(1, 60)} | {f"other {i}": [*prompt_of(1, 60), 3 + i] for i in range(6)}
    borrowed = 0
    for i in range(4):
        for name, prompt in told.items():
            sequence = narrow.lease(name)
            reused, source, *_ = narrow.cache_manager.acquire_prefix(sequence, prompt)
            borrowed += i == 0 and source == "another conversation"
            assert narrow.cache_manager.make_room(sequence, len(prompt) - reused)
            while (start := len(sequence.tokens)) < len(prompt):
                narrow.decode([(name, prompt[start : start + 32])])
            if prompt == prompt_of(1, 60):  # a state that comes back holds no more than its window
                narrow.cache_manager.swap_out(sequence)
                narrow.cache_manager.swap_in(ConversationId(name))
            told[name] = prompt + prompt_of(20 + i, 32)
    assert borrowed == 5, "for the sixth no window would have been left"
    assert narrow.context.auditor.audit(whole=True).state == "verified"


def test_room_is_asked_of_the_window_too(narrow: Ids) -> None:
    """Copies by hand: as long as a cell is told to be free, a token is decoded; when none is, the engine has none."""
    context = narrow.context
    narrow.read("one", prompt_of(1, 60))
    one, codes = narrow.lease("one").seq_id, set()

    def go_on(seq_id: int) -> None:
        free, pos = context.memory.free_cells(seq_id), context.memory.seq_pos_max(seq_id) + 1
        rc = context.decode(Batch((7,), (pos,), ((seq_id,),), (False,))).rc
        assert (rc == 0) == (free > 0), (seq_id, free)
        codes.add(rc)

    for copy in range(7):
        if copy != one:
            context.memory.seq_cp(one, copy)
            for _ in range(31):  # one more, and what only it holds would be overwritten
                go_on(one)
    assert context.memory.mirror.caches[0].streams[0].used < 300, "while the other cache is nearly empty"
    for _ in range(40):
        for seq_id in {*range(7)} - {one}:
            go_on(seq_id)
    assert codes == {0, 1}, "the window was filled"
    context.memory.clear()


@pytest.mark.parametrize("name", tiered(name for name in (*CLASSES, *OTHERS) if name not in WHOLE))
def test_memories_that_can_be_cut_have_none(name: str, tmp_path: Path, tiny_folder: Path) -> None:
    with closing(open_model(name, tiny_folder)) as model, closing(open_ids(model, tmp_path / "states")) as ids:
        ids.answer("one", prompt_of(0, 40), N)
        assert not ids.cache_manager.swapper.saved_states.checkpoints()


@pytest.mark.parametrize("name", tiered(WINDOWED))
def test_a_window_of_full_size_has_none(name: str, tmp_path: Path, tiny_folder: Path) -> None:
    with (
        closing(open_model(name, tiny_folder)) as model,
        closing(Ids(model, tmp_path / "states", CacheType.F16)) as ids,
    ):
        ids.answer("one", PROMPT[:200], N, [MARK])
        assert not ids.cache_manager.swapper.saved_states.checkpoints()
        assert ids.answer("one", BEGIN + prompt_of(71, 30), N).n_reused == MARK, "cut where the prompts part"


# --- whole turns ------------------------------------------------------------------------------------------------------

GREEDY = Sampling(temperature=0.0, max_tokens=N)
SYSTEM = "You are the keeper of a lighthouse, and you write down what the sea brings."
FIRST, SECOND = "What came today, and from where?", "And what was it that came yesterday?"
MARKS = 4  # <|im_end|>, new line, <|im_start|>, and the new line behind the role
TAIL = MARKS + len("assistant")  # what ChatML puts behind a question, a token a byte


@pytest.fixture(scope="module", params=["mamba2", "granitehybrid"])
def headless(request: pytest.FixtureRequest, tiny_folder: Path) -> Iterator[HeadlessEngine]:
    yield from opened_with(written(tiny_folder, request.param, text=True), SMALL)


@pytest.fixture
def chat(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> HeadlessChat:
    """Two exchanges. Nothing is guessed: a token of a prompt is said to take a second, a state a millisecond."""
    chat = HeadlessChat(emptied(headless, monkeypatch), SYSTEM)
    chat.answer(FIRST, GREEDY)
    chat.answer(SECOND, GREEDY)
    assert len(chat.messages[-1].tokens) == N, "the answer ended by itself: choose another question"
    return chat


def exact(chat: HeadlessChat) -> bool:
    """Whether the last answer is that of a conversation that has nothing in the cache, and nothing saved."""
    chat.headless.do(UsePolicy(CachePolicy(memory_mb=0, disk_mb=0), None))
    return fresh_answer(chat.headless, chat.messages[:-1]) == chat.messages[-1].tokens


def test_another_answer_reads_one_token(chat: HeadlessChat) -> None:
    *before, question, second = chat.messages
    chat.messages = before
    ended = chat.answer(question.text, GREEDY)
    assert (ended.stats.prefilled_tokens, chat.messages[-1].tokens) == (1, second.tokens)
    assert "went back to a checkpoint" in ended.stats.why
    assert exact(chat)


def test_an_edit_reads_the_new_text(chat: HeadlessChat) -> None:
    chat.messages = chat.messages[:-2]
    stats = chat.answer("And what did not come?", GREEDY).stats
    before = 2 + MARKS + len("user")  # from the end of the answer before, whose last token was only sampled
    assert stats.prefilled_tokens <= before + len("And what did not come?") + TAIL
    assert "went back to a checkpoint" in stats.why
    assert exact(chat)


def test_an_edit_of_the_first_question_goes_back_to_the_system_prompt(chat: HeadlessChat) -> None:
    chat.messages = chat.messages[:1]
    stats = chat.answer("Who are you?", GREEDY).stats
    assert stats.prefilled_tokens == len("Who are you?") + TAIL
    assert exact(chat)


def test_what_will_be_reused_is_foretold_from_checkpoints(chat: HeadlessChat) -> None:
    chat.messages = chat.messages[:-2]
    message = Message(new_message_id(), chat.id, None, "user", "And what did not come?")
    (found,) = of(chat.headless.do(PreviewTurn(chat.id, (*chat.messages, message))), TurnPreview)
    stats = chat.answer(message.text, GREEDY).stats
    assert (found.n_reused, found.n_prefill) == (stats.reused_tokens, stats.prefilled_tokens)


def test_answers_that_are_written_together_keep_checkpoints_too(chat: HeadlessChat) -> None:
    """Two turns in one batch: one pauses, the other goes on."""
    headless, other = chat.headless, HeadlessChat(chat.headless, SYSTEM + " You are brief.")
    other.answer(FIRST, GREEDY)
    commands = []
    for each in (chat, other):
        each.add_question("What will tomorrow bring, do you think?")
        commands.append(Generate(each.id, new_message_id(), tuple(each.messages), GREEDY))
    headless.engine.handle(commands[0])
    answers = [t for e in of(headless.do(commands[1]), TextDelta) for t in e.tokens if e.answer == commands[1].answer]
    again = Generate(other.id, new_message_id(), commands[1].messages, GREEDY)
    events = headless.do(again)
    assert of(events, TurnEnded)[0].stats.prefilled_tokens == 1
    assert [t for e in of(events, TextDelta) for t in e.tokens] == answers


def use(headless: HeadlessEngine, flag: StopFlag) -> None:
    context = headless.engine.session.runtime.context
    context.memory.stop = flag
    flag.install(context._ctx)
    headless.engine._scheduler.stops.use(flag)


def test_a_stop_in_the_middle_leaves_no_state_that_was_not_computed(chat: HeadlessChat) -> None:
    """llama.cpp moves the position of a state on before it computes, and cannot take that back."""
    headless, session = chat.headless, chat.headless.engine.session
    headless.do(UsePolicy(CachePolicy(memory_mb=0, disk_mb=0), None))
    question = Message(new_message_id(), chat.id, None, "user", "What else was there, of all that the sea brings?")
    asked, one = (question,), Sampling(temperature=0.0, max_tokens=1)
    headless.do(CloseConversation(chat.id))
    headless.do(Generate(chat.id, new_message_id(), asked, one))
    right = session.runtime.context.logits()
    headless.do(CloseConversation(chat.id))
    calm, flag = session.runtime.context.stop, CountdownFlag()
    use(headless, flag)
    answer = new_message_id()
    headless.engine.handle(Generate(chat.id, answer, asked, one))
    headless.engine.step()
    flag.left = 20  # graph nodes
    headless.engine.step()
    flag.left = -1
    headless.engine.request_stop(answer)
    headless.host.run_until_idle()
    sequence = session.runtime.cache_manager.pool.get(chat.id)
    use(headless, calm)
    assert sequence.tokens == []
    headless.do(Generate(chat.id, new_message_id(), asked, one))
    assert abs(session.runtime.context.logits() - right).max() < 1e-3
