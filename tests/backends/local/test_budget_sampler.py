"""Reasoning is closed when its budget is used up, and the answer goes on: with streams, schemas and calls."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from kvdesk.backends.local.llama.samplers.budget_sampler import with_budget
from kvdesk.backends.local.llama.samplers.sampler import Sampler, plan_sampling
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import new_message_id
from kvdesk.protocol.chat import Generate, TextDelta, ToolChoice, TurnEnded, TurnStarted
from kvdesk.reasoning import ReasoningMarks, parts_of
from kvdesk.settings import Sampling
from tests.backends.local.test_turns import of

THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
MARKS = ReasoningMarks("<think>", "</think>")
SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]}'
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]


def answered(headless: HeadlessEngine, budget: int, **more: Any) -> tuple[str, list[int], TurnStarted, TurnEnded]:
    """The text of an answer that begins inside its reasoning, and its tokens."""
    chat = HeadlessChat(headless)
    chat.add_question("Why?")
    sampling = Sampling(temperature=0.0, max_tokens=24, **more.pop("sampling", {}))
    asked = Generate(chat.id, new_message_id(), tuple(chat.messages), sampling, template=THINKING, **more)
    events = headless.do(Generate(**{n: getattr(asked, n) for n in Generate.__slots__} | {"reasoning_budget": budget}))
    deltas = of(events, TextDelta)
    (started,), (ended,) = of(events, TurnStarted), of(events, TurnEnded)
    return "".join(d.text for d in deltas), [t for d in deltas for t in d.tokens], started, ended


@pytest.mark.parametrize("budget", [0, 1, 7])
@pytest.mark.parametrize("n_probs", [-1, 1])
def test_reasoning_ends_after_its_budget_and_the_answer_goes_on(
    headless: HeadlessEngine, budget: int, n_probs: int
) -> None:
    free, tokens, started, _ = answered(headless, -1)
    assert started.marks.is_open
    assert started.marks.end not in free, "the tiny model closes nothing"
    text, given, _, ended = answered(headless, budget, n_probs=n_probs)
    assert given[:budget] == tokens[:budget], "what the model thinks is its own"
    found = parts_of(text, started.marks)
    assert text[: found.said].count("</think>") == 1
    vocab = session_of(headless).loaded.model.vocab
    n_closing = len(vocab.tokenize("\n</think>", add_special=False, parse_special=True))
    assert text.startswith(text[: found.said])
    assert "</think>" in b"".join(map(vocab.piece, given[: budget + n_closing])).decode(errors="replace")
    if ended.finish == "limit":  # the tiny model never ends
        assert ended.stats.generated_tokens == 24, "tokens of the closing mark count"


@pytest.mark.parametrize("more", [{"sampling": {"json_schema": SCHEMA}}, {"tools": TOOLS}])
def test_a_schema_and_a_call_follow_the_closed_reasoning(headless: HeadlessEngine, more: dict[str, Any]) -> None:
    if "tools" in more:
        more = {"tools": json.dumps(more["tools"]), "choice": ToolChoice(must=True)}
    text, _, started, _ = answered(headless, 3, **more)
    said = text[parts_of(text, started.marks).said :].strip()
    assert said.startswith("{") or (started.calls is not None and said.startswith(started.calls.opening[:1]))
    if "sampling" in more:
        assert set(json.loads(said)) == {"n"}


class Scripted(Sampler):
    """Says the tokens that it is given."""

    def __init__(self, tokens: Iterable[int]) -> None:
        self._tokens = iter(tokens)
        self.seed = -1
        self.told: list[int] = []

    def sample(self, ctx: Any, row: int) -> int:  # noqa: ARG002
        return next(self._tokens)

    def force(self, token: int) -> bool:
        self.told.append(token)
        return True

    def close(self) -> None:
        pass


def said_by(headless: HeadlessEngine, text: str, budget: int, continued: Sequence[int] = ()) -> str:
    """What comes of a model that would say this text."""
    vocab = session_of(headless).loaded.model.vocab
    vocab.show(MARKS.texts)
    tokens = vocab.tokenize(text, add_special=False, parse_special=True)
    sampler = with_budget(Scripted(tokens), vocab, MARKS, budget, continued)
    found = []
    while True:
        try:
            found.append(sampler.sample(None, 0))
        except StopIteration:
            return b"".join(map(vocab.piece, found)).decode()


def test_a_model_that_opens_its_reasoning_itself(headless: HeadlessEngine) -> None:
    vocab = session_of(headless).loaded.model.vocab
    text = "<think> one two three four</think> Yes."
    assert said_by(headless, text, -1) == said_by(headless, text, 100) == text
    assert said_by(headless, "Yes. A <think> is a mark, one two three", 1).count("</think>") == 0
    assert said_by(headless, text, 0) == "<think>\n</think> one two three four</think> Yes."
    assert said_by(headless, text, 2) == "<think> one two\n</think> three four</think> Yes."
    assert said_by(headless, "<think> a `b c d", 3) == "<think> a `b\n</think> c d", "no open backtick hides the mark"
    emoji = said_by(headless, "<think>🙂🙂🙂", 1)
    assert "�" not in emoji
    assert emoji.startswith("<think>🙂\n</think>")
    before = vocab.tokenize("<think> one", add_special=False, parse_special=True)
    assert said_by(headless, " two three", 2, before) == " two\n</think> three"


def test_the_closing_mark_is_foreseen(headless: HeadlessEngine) -> None:
    """What is known to come does, and stays as it was said when it comes."""
    vocab = session_of(headless).loaded.model.vocab
    vocab.show(MARKS.texts)
    tokens = vocab.tokenize("<think> one two three four", add_special=False, parse_special=True)
    sampler = with_budget(Scripted(tokens), vocab, MARKS, 2)
    found: list[int] = []
    foreseen: list[tuple[int, list[int]]] = []
    for _ in tokens:
        found.append(sampler.sample(None, 0))
        foreseen.append((len(found), sampler.forced()))
    assert any(known for _, known in foreseen)
    assert all(found[n : n + len(known)] == known[: len(found) - n] for n, known in foreseen)


def test_without_marks_nothing_is_closed(headless: HeadlessEngine) -> None:
    vocab = session_of(headless).loaded.model.vocab
    inner = Sampler(plan_sampling(Sampling(temperature=0.0), vocab), vocab)
    assert with_budget(inner, vocab, None, 1) is inner
    inner.close()
