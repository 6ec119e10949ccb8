"""With exact answers each answer, and each of its probabilities, is bit for bit that of an empty cache."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.batch import Batch
from kvdesk.cache.compaction import Layout
from kvdesk.experiments.benchmarks.by_ids import ByIds
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.message import ConversationId, Message, new_conversation_id, new_message_id
from kvdesk.protocol.cache import TransferSequence
from kvdesk.protocol.chat import Client, CloseConversation, Generate, TextDelta, TokenLogprobs, TurnEnded
from kvdesk.protocol.messages import Event
from kvdesk.protocol.operations import Compact, CompactionPreview, Operate, PreviewCompaction, ShiftPositions
from kvdesk.settings import Sampling
from kvdesk.values import replace
from tests.backends.local.conftest import SMALL, emptied, empty, opened_with
from tests.backends.local.ids import prompt_of
from tests.backends.local.tiny_models import written

SAMPLING = Sampling(temperature=0.0, max_tokens=21)
EXACT = SMALL.model_copy(update={"exact": True, "n_ctx": 2048, "n_seq_max": 5, "n_threads_batch": 2})
LIST = "The lighthouse keeper wrote down what the sea brought: " + "a rope, a bottle, a plank, a shoe; " * 4
Answer = tuple[tuple[int, ...], tuple[TokenLogprobs, ...]]


@pytest.fixture(scope="module", params=["tiny", "granitehybrid", "iswa"])
def loaded_exact(request: pytest.FixtureRequest, talking_file: Path, tiny_folder: Path) -> Iterator[HeadlessEngine]:
    """Weights of floats, which llama.cpp multiplies with other code for one token than for several. A window is
    smaller than each prompt, its cache smaller than the context if that were not exact.
    """
    path = talking_file if request.param == "tiny" else written(tiny_folder, request.param, text=True)
    for headless in opened_with(path, EXACT.model_copy(update={"swa_full": False, "n_rs_seq": 7})):
        session_of(headless).loaded.model.vocab.ignore_eog()
        yield headless


@pytest.fixture
def exact(loaded_exact: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> HeadlessEngine:
    return emptied(loaded_exact, monkeypatch)


class Chat:
    """Messages of one conversation; `given` is shared by all: what was asked, and the answer."""

    def __init__(self, headless: HeadlessEngine, given: list[tuple[Generate, Answer]]) -> None:
        self.id = new_conversation_id()
        self.messages: list[Message] = []
        self._headless, self._given = headless, given

    def asks(self, question: str) -> Generate:
        """The command for an answer to one more question."""
        before = self.messages[-1].id if self.messages else None
        self.messages.append(Message(new_message_id(), self.id, before, "user", question))
        return Generate(self.id, new_message_id(), tuple(self.messages), SAMPLING, n_probs=2)

    def takes(self, asked: Generate, events: Sequence[Event]) -> TurnEnded:
        """Go on after the answer."""
        tokens, probs = answer = _answer(asked, events)
        text = "".join(e.text for e in events if isinstance(e, TextDelta) and e.answer == asked.answer)
        self._given.append((asked, answer))
        self.messages.append(Message(asked.answer, self.id, self.messages[-1].id, "assistant", text, tokens=tokens))
        assert len(probs) == len(tokens)
        return next(e for e in events if isinstance(e, TurnEnded) and e.answer == asked.answer)

    def answer(self, question: str) -> TurnEnded:
        asked = self.asks(question)
        return self.takes(asked, self._headless.do(asked))


def _answer(asked: Generate, events: Sequence[Event]) -> Answer:
    mine = [e for e in events if isinstance(e, TextDelta) and e.answer == asked.answer]
    return tuple(t for e in mine for t in e.tokens), tuple(p for e in mine for p in e.logprobs)


def test_each_answer_is_that_of_an_empty_cache(exact: HeadlessEngine) -> None:
    """Turns, an edit, another answer, a shared beginning, two at once, a hole in front of shared cells, compaction."""
    given: list[tuple[Generate, Answer]] = []
    first, second, third = (Chat(exact, given) for _ in range(3))
    for question in (LIST, "And then?"):
        first.answer(question)
    second.answer(LIST)
    first.messages = first.messages[:2]
    reused = first.answer("Which of these did he keep, and which did he give to the children of the village?").stats
    assert reused.reused_tokens >= 32
    assert reused.reused_tokens % exact.engine.session.runtime.context.block == 0
    first.messages = first.messages[:2]
    first.answer("Which of these did he keep, and which did he give to the children of the village?")
    exact.events = []
    asked = [(chat, chat.asks(f"{LIST} {word}?")) for chat, word in ((second, "Why"), (third, "When"))]
    for _, command in asked:
        exact.engine.handle(command)
    exact.host.run_until_idle()
    for chat, command in asked:
        chat.takes(command, exact.events)
    exact.do(CloseConversation(first.id))
    third.answer("And then?")
    exact.do(Operate(Compact(Layout.HOT_FIRST), measured=False))
    second.answer("And then?")
    for asked_then, answer in given:
        empty(exact)
        alone = replace(asked_then, conversation=new_conversation_id(), answer=new_message_id())
        assert _answer(alone, exact.do(alone)) == answer, asked_then.messages[-1].text


def test_why_says_what_exact_answers_cost(exact: HeadlessEngine) -> None:
    chat = Chat(exact, [])
    chat.answer(LIST)
    whole = exact.engine.session.runtime.context.can("partial seq_rm")
    blocks, state = "Exact answers reuse only whole blocks of 32 tokens", "This model's state can be restored only as"
    said = blocks if whole else state
    assert chat.answer("And then?").stats.why.startswith(said)


def test_a_preview_of_compaction_is_what_it_does(exact: HeadlessEngine) -> None:
    first, second = Chat(exact, []), Chat(exact, [])
    first.answer(LIST)
    second.answer(f"Twice: {LIST}")
    exact.do(CloseConversation(first.id))
    preview = next(e for e in exact.do(PreviewCompaction(Layout.KEEP_ORDER)) if isinstance(e, CompactionPreview))
    exact.do(Operate(Compact(Layout.KEEP_ORDER), measured=False))
    maps = exact.engine.session.runtime.context.memory.snapshot().maps
    used = [[cells.used for cells in cache.streams] for cache in maps]
    assert used == [[cells.used for cells in cache.streams] for cache in preview.plan.after]


@pytest.mark.matrix
def test_cells_of_unknown_or_moved_tokens_are_not_reused(model_file: Path, tmp_path: Path) -> None:
    """Also where a token gets the same bits in any batch, as with the weights of the embedded model."""
    for headless in opened_with(model_file, EXACT):
        runtime = session_of(headless).runtime
        ids, prompt = ByIds(runtime.context, runtime.cache_manager), prompt_of(0, 24)
        assert runtime.context.block == 1
        ids.read("one", prompt)
        file, client = tmp_path / "slot", Client("a program")
        headless.do(TransferSequence("save", 0, file, new_conversation_id(), client))
        headless.do(TransferSequence("restore", 1, file, new_conversation_id(), client))
        headless.do(CloseConversation(ConversationId("one")))
        assert ids.read("two", prompt) == 0
        assert ids.read("two", prompt) == 23
        seq_id = ids.lease("two").seq_id
        for first, by in ((8, 2), (10, -2)):
            headless.do(Operate(ShiftPositions(seq_id, first, -1, by), measured=False))
        assert ids.read("two", prompt) == 8


@pytest.mark.parametrize("kind", ["attention", "dsv4"])
def test_a_token_in_a_graph_of_several_sequences(tiny_folder: Path, kind: str) -> None:
    """Graphs of one token a sequence, and llama.cpp puts two sequences with streams into one (llama-batch.cpp:579)."""
    settings = EXACT.model_copy(update={"kv_unified": False, "n_seq_max": 2, "n_ubatch": 1})
    with closing(Model(written(tiny_folder, kind))) as model, closing(Context(model, settings)) as context:
        context.decode(Batch.of(0, 0, (5,), "all"))
        alone = context.logits()
        context.memory.clear()
        context.decode(Batch((5, 6), (0, 0), ((0,), (1,)), (True, True)))
        assert not np.array_equal(context.logits(0), alone), "this processor needs no other batches"
        assert not context.together
