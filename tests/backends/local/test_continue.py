"""An answer that ended early goes on where it ended, at the cost of its new tokens, on every kind of memory."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest

from kvdesk.backends.local.prompt.prompt import Prompt, ids_of_text, text_tokens
from kvdesk.backends.local.scheduler import answer_events
from kvdesk.backends.local.scheduler.first_token import FirstTokenClocks
from kvdesk.backends.local.scheduler.request import Request
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import ConversationId, Message, MessageId, TurnStats, ended_early, new_message_id
from kvdesk.protocol.chat import Generate, Overflowed, ReuseReason, TextDelta, TurnEnded, TurnStarted
from kvdesk.protocol.messages import Event
from kvdesk.protocol.operations import ClearCache, Operate
from kvdesk.settings import Overflow, Sampling
from kvdesk.values import replace
from tests.backends.local.conftest import NARROW, SMALL, opened_with
from tests.backends.local.ids import NAMES, open_model, prompt_of, prompt_tokens
from tests.backends.local.test_checkpoints import open_ids
from tests.backends.local.test_turns import held, of

HALF = Sampling(temperature=0.0, max_tokens=20)
WHOLE = HALF.model_copy(update={"max_tokens": 40})
QUESTION = "Tell me a long story about a lighthouse and the sea."


@pytest.mark.parametrize("name", NAMES)
def test_one_token_is_read_in_every_memory(name: str, tmp_path: Path, tiny_folder: Path) -> None:
    with closing(open_model(name, tiny_folder)) as model:
        n = 12
        prompt = prompt_of(3, prompt_tokens(model))
        ids = open_ids(model, tmp_path / "whole")
        wanted = ids.answer("one", prompt, 2 * n).tokens
        ids.close()
        ids = open_ids(model, tmp_path / "halves")
        first = ids.answer("one", prompt, n).tokens
        reused, second, _ = ids.answer("one", prompt + first, n)
        ids.close()
        assert reused == len(prompt) + n - 1
        assert first + second == wanted


# --- whole turns ------------------------------------------------------------------------------------------------------


@pytest.fixture
def chat(engine: HeadlessEngine) -> HeadlessChat:
    return HeadlessChat(engine, "You keep a lighthouse.")


def go_on(chat: HeadlessChat, answer: Message, sampling: Sampling = HALF) -> tuple[TurnStarted | None, Message]:
    """Continue the last answer of the chat. Returns what the engine said first, and the answer as it is then."""
    asked = Generate(
        chat.id, answer.id, tuple(chat.messages[:-1]), sampling, chat.overflow, evicted=chat.evicted, continued=answer
    )
    events = chat.headless.do(asked)
    ended = of(events, TurnEnded)[0]
    started = next(iter(of(events, TurnStarted)), None)
    text = "".join(delta.text for delta in of(events, TextDelta))
    new = tuple(token for delta in of(events, TextDelta) for token in delta.tokens)
    tokens = (started.continued if started else answer.tokens) + new
    after = replace(
        answer, text=answer.text + text, tokens=tokens, state=ended.state, stats=ended.stats, note=ended.note,
        finish=ended.finish,
    )  # fmt: skip
    chat.messages = [*chat.messages[:-1], after]
    return started, after


def uninterrupted(chat: HeadlessChat) -> Message:
    other = HeadlessChat(chat.headless, "You keep a lighthouse.")
    other.answer(QUESTION, WHOLE)
    assert len(other.messages[-1].tokens) == 40, "the answer ended by itself: choose another question"
    chat.headless.do(Operate(ClearCache(), measured=False))
    return other.messages[-1]


def test_after_the_limit_it_is_the_uninterrupted_answer_for_one_token(chat: HeadlessChat) -> None:
    wanted = uninterrupted(chat)
    ended = chat.answer(QUESTION, HALF)
    assert (ended.state, ended.finish) == ("complete", "limit")
    started, after = go_on(chat, chat.messages[-1])
    assert len(started.continued) == 20
    assert (after.text, after.tokens) == (wanted.text, wanted.tokens)
    assert (after.stats.prefilled_tokens, after.stats.generated_tokens) == (1, 20)
    assert after.stats.reused_tokens == ended.stats.prompt_tokens + 19
    assert after.stats.prompt_tokens == after.stats.reused_tokens + 1
    assert "Ended at the limit of 20 tokens." in after.note
    held_by = chat.headless.engine.session.runtime.cache_manager.pool.get(chat.id)
    assert len(held_by.tokens) == after.stats.prompt_tokens + 19


def test_after_stop_nothing_is_read_again(chat: HeadlessChat, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0

    def stop_at_the_fifth(event: Event) -> None:
        nonlocal seen
        if isinstance(event, TextDelta):
            seen += 1
            if seen == 5:
                chat.headless.engine.request_stop(event.answer)

    monkeypatch.setattr(answer_events, "TELL_S", 0.0)  # every token is told
    chat.headless._on_event = stop_at_the_fifth
    ended = chat.answer(QUESTION, Sampling(temperature=0.0, max_tokens=400))
    chat.headless._on_event = None
    assert ended.state == "stopped"
    answer = chat.messages[-1]
    _, after = go_on(chat, answer)
    assert after.stats.prefilled_tokens == 1
    assert after.tokens[: len(answer.tokens)] == answer.tokens
    chat.headless.do(Operate(ClearCache(), measured=False))
    fresh = HeadlessChat(chat.headless, "You keep a lighthouse.")
    fresh.answer(QUESTION, Sampling(temperature=0.0, max_tokens=len(after.tokens)))
    assert fresh.messages[-1].tokens == after.tokens


def test_a_stop_that_came_too_late_does_not_stop_what_goes_on(chat: HeadlessChat) -> None:
    """The second stop falls between the end of the answer and the moment at which the window hears of it."""
    engine, host = chat.headless.engine, chat.headless.host

    def stop_too_late(event: Event) -> None:
        if isinstance(event, TurnEnded):
            engine.request_stop(event.answer)
            host.stop(event.answer)

    chat.headless._on_event = stop_too_late
    chat.answer(QUESTION, HALF)
    chat.headless._on_event = None
    answer = chat.messages[-1]
    host.stop(answer.id)
    started, after = go_on(chat, answer)
    assert started is not None
    assert (after.state, after.finish, after.stats.generated_tokens) == ("complete", "limit", 20)
    assert not engine._scheduler.stops._asked


def test_after_a_stop_string_no_more_is_read_than_must_be(chat: HeadlessChat) -> None:
    wanted = uninterrupted(chat)
    vocab = chat.headless.engine.session.loaded.model.vocab
    texts = [vocab.text(wanted.tokens[:n]) for n in range(30)]
    at, stop = next(
        (n, new)
        for n in range(10, 29)
        if (new := texts[n + 1].removeprefix(texts[n])).isprintable() and new.strip("\ufffd") and new not in texts[n]
    )
    ended = chat.answer(QUESTION, WHOLE.model_copy(update={"stop": (stop,)}))
    assert (ended.state, ended.finish) == ("complete", "stop string")
    assert ended_early(chat.messages[-1])
    assert (chat.messages[-1].text, chat.messages[-1].tokens) == (texts[at], wanted.tokens[:at])
    _, after = go_on(chat, chat.messages[-1], WHOLE.model_copy(update={"max_tokens": 40 - at}))
    if chat.headless.engine.session.runtime.context.can("partial seq_rm"):  # else back to a checkpoint
        assert after.stats.prefilled_tokens == 1
    assert after.tokens == wanted.tokens


def test_a_stop_lets_a_token_end_where_its_state_would_be_lost(
    engine: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_events, "TELL_S", 0.0)
    chat, flags = HeadlessChat(engine), []
    stops, context = engine.engine._scheduler.stops, engine.engine.session.runtime.context
    monkeypatch.setattr(stops, "_raise", lambda: flags.append(1))
    n_told = 0

    def stop(event: Event) -> None:
        nonlocal n_told
        n_told += isinstance(event, TextDelta)
        if isinstance(event, TextDelta) and n_told == 2:  # the first comes with the end of the prompt
            stops.request(event.answer)

    engine._on_event = stop
    try:
        chat.answer(QUESTION, HALF)
    finally:
        engine._on_event = None
    assert bool(flags) == context.can("partial seq_rm")


def test_an_edited_answer_keeps_what_was_before_the_edit(chat: HeadlessChat) -> None:
    chat.answer(QUESTION, HALF)
    answer = chat.messages[-1]
    vocab = chat.headless.engine.session.loaded.model.vocab
    kept = 12
    head = vocab.text(answer.tokens[:kept])
    edited = replace(answer, id=new_message_id(), text=head + " But then the light went out", finish="edited")
    chat.messages = [*chat.messages[:-1], edited]
    started, after = go_on(chat, edited)
    assert started.continued[: kept - 1] == answer.tokens[: kept - 1]
    assert vocab.text(started.continued) == edited.text
    assert after.text.startswith(edited.text)
    if chat.headless.engine.session.runtime.context.can("partial seq_rm"):
        n_prompt = started.prompt_tokens - len(started.continued)
        assert started.reused_tokens >= n_prompt + kept - 1, "the common prefix is kept"
    stats = chat.answer("And then?", HALF).stats
    said = of(chat.headless.events, TurnStarted)[0]
    assert said.reused_tokens == stats.reused_tokens >= started.prompt_tokens + 19, "ids that were told are used again"


def test_an_answer_of_another_model_is_read_as_text(chat: HeadlessChat) -> None:
    chat.answer(QUESTION, HALF)
    answer = chat.messages[-1]
    assert answer.stats is not None
    foreign = replace(answer, stats=replace(answer.stats, vocab="another"))
    started, after = go_on(chat, foreign)
    vocab = chat.headless.engine.session.loaded.model.vocab
    assert vocab.text(started.continued) == answer.text
    assert started.vocab == vocab.fingerprint
    assert after.state == "complete"


def test_with_exact_the_greedy_answer_is_the_same_from_an_empty_cache_too(talking_file: Path) -> None:
    for engine in opened_with(talking_file, SMALL.model_copy(update={"exact": True})):
        chat = HeadlessChat(engine, "You keep a lighthouse.")
        wanted = uninterrupted(chat)
        chat.answer(QUESTION, HALF)
        half = chat.messages[-1]
        _, after = go_on(chat, half)
        assert (after.text, after.tokens) == (wanted.text, wanted.tokens)
        chat.messages = [*chat.messages[:-1], half]
        engine.do(Operate(ClearCache(), measured=False))
        started, again = go_on(chat, half)
        assert started.reused_tokens == 0
        assert again.tokens == wanted.tokens


# --- full contexts ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(talking_file: Path) -> Iterator[HeadlessEngine]:
    yield from opened_with(talking_file, NARROW)


def full_chat(small: HeadlessEngine, overflow: Overflow) -> HeadlessChat:
    """An answer that a full context ended."""
    small.do(Operate(ClearCache(), measured=False))
    chat = HeadlessChat(small, "", Overflow.STOP)
    for question in ("What is a cat?", "What is a dog?"):
        chat.answer(question, Sampling(temperature=0.0, max_tokens=30))
    ended = chat.answer(QUESTION, Sampling(temperature=0.0, max_tokens=1000))
    assert (ended.state, ended.finish) == ("stopped", "context full")
    assert ended_early(chat.messages[-1])
    chat.overflow = overflow
    return chat


def test_a_full_context_says_that_nothing_can_be_added(small: HeadlessEngine) -> None:
    chat = full_chat(small, Overflow.STOP)
    answer = chat.messages[-1]
    started, after = go_on(chat, answer)
    assert started is None
    assert (after.state, after.text) == ("failed", answer.text)
    assert after.note == "The context of 256 tokens is full. The answer ends here. Nothing can be added to the answer."
    assert [e.policy for e in of(small.events, Overflowed)] == [Overflow.STOP]


@pytest.mark.parametrize("overflow", [Overflow.SLIDE, Overflow.SINKS])
def test_after_room_was_made_one_token_is_read(small: HeadlessEngine, overflow: Overflow) -> None:
    chat = full_chat(small, overflow)
    _, after = go_on(chat, chat.messages[-1])
    assert (after.stats.prefilled_tokens, after.stats.generated_tokens) == (1, 20)
    assert "full" in after.note
    assert len(held(small, chat)) == after.stats.prompt_tokens + 19
    _, again = go_on(chat, after)
    assert again.stats.prefilled_tokens == 1, "what was evicted stays so"


def test_sinks_continue_an_answer_whose_beginning_was_evicted(small: HeadlessEngine) -> None:
    small.do(Operate(ClearCache(), measured=False))
    chat = HeadlessChat(small, "", Overflow.SINKS)
    ended = chat.answer(QUESTION, Sampling(temperature=0.0, max_tokens=300))
    assert ended.finish == "limit"
    assert chat.evicted.partial is not None
    started, after = go_on(chat, chat.messages[-1])
    assert started is not None
    assert after.stats.prefilled_tokens == 1
    assert len(after.tokens) == 320


def test_recompute_reads_what_stays(small: HeadlessEngine) -> None:
    chat = full_chat(small, Overflow.RECOMPUTE)
    _, after = go_on(chat, chat.messages[-1])
    assert after.stats.generated_tokens == 20
    assert len(held(small, chat)) == after.stats.prompt_tokens + 19


# --- ids of texts -----------------------------------------------------------------------------------------------------


class Bytes:
    """A vocabulary of bytes, and of the pairs "ab" (256) and "bc" (257), which the tokenizer never makes."""

    fingerprint = "bytes"
    n_tokens = 258
    controls: ClassVar = {"<|im_end|>": 258}

    @property
    def control_texts(self) -> frozenset[str]:
        return frozenset(self.controls)

    @property
    def control_ids(self) -> frozenset[int]:
        return frozenset(self.controls.values())

    def piece(self, token: int) -> bytes:
        return {256: b"ab", 257: b"bc", -1: b"", 258: b""}.get(token) or bytes([token] if 0 <= token < 256 else [])

    def text(self, tokens: list[int]) -> str:
        return b"".join(map(self.piece, tokens)).decode("utf-8", "replace")

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        assert not add_special
        assert not parse_special
        return list(text.encode())


class Reasons(Bytes):
    """The same with a control token for the mark that ends reasoning."""

    n_tokens = 260
    controls: ClassVar = {"<|im_end|>": 258, "</think>": 259}

    def piece(self, token: int) -> bytes:
        return b"</think>" if token == 259 else super().piece(token)

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        if parse_special:
            assert text == "</think>"
            return [259]
        return super().tokenize(text, add_special=add_special, parse_special=False)


class Blanks(Bytes):
    """The same with the blank that SentencePiece puts before a text."""

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        return super().tokenize(f" {text}", add_special=add_special, parse_special=parse_special)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("xabc", (120, 256, 99)),
        ("xabd", (120, 256, 100)),
        ("xaXc", (120, 97, 88, 99)),
        ("xabcé!", (120, 256, 99, 0xC3, 0xA9, 33)),
        ("Xabc", ()),
        ("xabc\n", (120, 256, 99, 10)),
        ("", ()),
    ],
)
def test_ids_before_an_edit_are_kept(text: str, wanted: tuple[int, ...]) -> None:
    assert ids_of_text(Bytes(), (120, 256, 99), text) == wanted  # type: ignore[arg-type]


def test_ids_outside_the_vocabulary_end_what_is_kept() -> None:
    assert ids_of_text(Bytes(), (120, -1, 98), "xb") == (120, 98)  # type: ignore[arg-type]
    assert ids_of_text(Bytes(), (-1,), "x") == ()  # type: ignore[arg-type]
    assert ids_of_text(Bytes(), (120, 258), "x") == (120,)  # type: ignore[arg-type]


def test_half_a_character_at_the_end_is_told_when_it_is_whole() -> None:
    assert ids_of_text(Bytes(), (120, 0xC3), "x") == (120, 0xC3)  # type: ignore[arg-type]
    assert ids_of_text(Bytes(), (120, 0xC3), "x\ufffd") == (120, 0xC3)  # type: ignore[arg-type]
    asked = Generate(ConversationId("c"), MessageId("a"), (), HALF)
    of = asked, None, Prompt([1], ()), 0, None, ReuseReason(""), Bytes(), FirstTokenClocks(0.0)
    request = Request(*of, generated=[120, 0xC3], n_continued=2)  # type: ignore[arg-type]
    request.sampled(0xA9, 1.0)
    assert request.take_text() == ("é", (0xA9,))
    assert request.n_new == 1


def test_a_text_in_the_middle_gets_no_blank_of_its_own() -> None:
    assert text_tokens(Blanks(), "ab") == [97, 98]  # type: ignore[arg-type]
    assert text_tokens(Bytes(), "ab") == [97, 98]  # type: ignore[arg-type]


def test_the_mark_that_ends_reasoning_is_one_in_an_edited_answer_too() -> None:
    assert text_tokens(Reasons(), "a</think>b") == [97, 259, 98]  # type: ignore[arg-type]
    assert ids_of_text(Reasons(), (97, 97, 259, 98), "ab</think>b") == (97, 98, 259, 98)  # type: ignore[arg-type]
    assert text_tokens(Reasons(), "<|im_end|>") == list(b"<|im_end|>"), "no other control text"  # type: ignore[arg-type]
    assert text_tokens(Bytes(), "a</think>") == list(b"a</think>"), "not known here"  # type: ignore[arg-type]


def test_statistics_of_all_requests_add_up() -> None:
    first = TurnStats(10, 4, 6, 20, 1.0, 1.0, 1.0)
    second = TurnStats(30, 29, 1, 15, 1.0, 1.0, 1.0).after(first)
    third = TurnStats(45, 44, 1, 5, 1.0, 1.0, 1.0).after(second)
    assert (third.all_generated, third.all_prefilled) == (40, 8)
    assert (third.generated_tokens, third.prefilled_tokens) == (5, 1)
