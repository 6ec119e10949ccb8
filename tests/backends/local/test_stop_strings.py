"""Stop strings end an answer at the same character wherever its tokens begin and end, and nothing of them is sent."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.backends.local.llama.samplers.utf8 import Utf8Decoder
from kvdesk.backends.local.scheduler import answer_events
from kvdesk.backends.local.scheduler.stop_strings import StopStrings
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import new_conversation_id, new_message_id
from kvdesk.protocol.cache import MessageSpans
from kvdesk.protocol.chat import Generate, RawPrompt, TextDelta, TurnEnded, TurnStarted
from kvdesk.protocol.operations import ClearCache, Operate
from kvdesk.reasoning import ReasoningMarks, SaidStart
from kvdesk.settings import Sampling
from tests.backends.local.test_turns import held, of

WHOLE = Sampling(temperature=0.0, max_tokens=40)
QUESTION = "Tell me a long story about a lighthouse and the sea."

strings = st.lists(st.text("abü🙂", min_size=1, max_size=4), min_size=1, max_size=4)


def until_stop(text: str, stops: Sequence[str]) -> str | None:
    """The text before the stop string that ends first, of those the longest; None if there is none."""
    for n in range(1, len(text) + 1):
        if ends := [stop for stop in stops if text[:n].endswith(stop)]:
            return text[: n - max(map(len, ends))]
    return None


@given(st.text("abü🙂", max_size=20), strings, st.lists(st.integers(1, 7), max_size=60), st.integers(1, 3))
def test_the_answer_ends_at_the_same_character_however_it_is_cut(
    text: str, stops: list[str], sizes: list[int], every: int
) -> None:
    pieces, rest = [], text.encode()
    for size in [*sizes, *([1] * len(rest))]:
        pieces.append(rest[:size])
        rest = rest[size:]
    watch = StopStrings(tuple(stops), pieces.__getitem__, Utf8Decoder())
    wanted = until_stop(text, stops)
    final = text if wanted is None else wanted
    sent, tokens = "", []
    for token in range(len(pieces)):
        found = watch.add(token)
        if (token + 1) % every == 0:
            new, its_tokens = watch.take(over=False)
            sent += new
            tokens += its_tokens
            assert final.startswith(sent), "nothing is sent that must go"
            assert final.encode().startswith(b"".join(pieces[t] for t in tokens))
        if found:
            break
    new, its_tokens = watch.take(over=True)
    assert sent + new == final
    assert bool(watch.found) == (wanted is not None)
    of_answer = b"".join(pieces[t] for t in tokens + its_tokens)
    assert final.encode().startswith(of_answer) if watch.found else of_answer == text.encode()


def test_only_what_may_become_a_stop_string_is_held_back() -> None:
    pieces = [b"one ", b"EN", b"E", b"ND", b" two"]
    watch = StopStrings(("END",), pieces.__getitem__, Utf8Decoder())
    sent = []
    for token in range(3):
        assert not watch.add(token)
        sent.append(watch.take(over=False))
    assert sent == [("one ", [0]), ("", []), ("EN", [1])]
    assert watch.add(3)
    assert watch.take(over=True) == ("", [])
    assert watch.found == "END"


def told(pieces: Sequence[str], stops: tuple[str, ...], said: SaidStart, before: str = "") -> tuple[list[str], str]:
    watch = StopStrings(stops, [piece.encode() for piece in pieces].__getitem__, Utf8Decoder(), said, before)
    sent = []
    for token in range(len(pieces)):
        found = watch.add(token)
        sent.append(watch.take(over=False)[0])
        if found:
            break
    return sent, watch.found


def test_a_string_inside_reasoning_ends_nothing() -> None:
    pieces = ["<th", "ink>", "a END b", "</th", "ink>", "\n\n", "c ", "EN", "D d"]
    assert told(pieces, ("END", "\n\n"), SaidStart(None)) == (
        ["", "<think>", "a END b", "</th", "ink>", "", "\n\nc ", "", ""],
        "END",
    )
    opened = ReasoningMarks("<think>", "</think>", is_open=True)
    assert told(["a END", "</think>", "b", "END"], ("END",), SaidStart(opened))[1] == "END"
    assert told(["a END", " b"], ("END",), SaidStart(opened)) == (["a END", " b"], "")


def test_what_only_looks_like_a_mark_is_not_sent_before_it_is_certain() -> None:
    assert told(["<", "t", "x", "y"], ("<tx",), SaidStart(None)) == (["", "", ""], "<tx")
    assert told([" <", "b>", "x"], ("<b",), SaidStart(None)) == (["", " "], "<b")


def test_an_answer_that_is_continued_goes_on_in_its_reasoning() -> None:
    assert told([" END", "</think>", "x", "END"], ("END",), SaidStart(None), "<think>hm") == (
        [" END", "</think>", "x", ""],
        "END",
    )
    assert told([" ENDx"], ("END",), SaidStart(None), "<think>hm</think>Yes") == ([" "], "END")


# --- whole turns ------------------------------------------------------------------------------------------------------


def story(headless: HeadlessEngine) -> tuple[str, tuple[int, ...]]:
    chat = HeadlessChat(headless)
    chat.answer(QUESTION, WHOLE)
    headless.do(Operate(ClearCache(), measured=False))
    return chat.messages[-1].text, chat.messages[-1].tokens


@pytest.mark.parametrize("tell_s", [0.0, 1.0])
def test_an_answer_ends_before_a_stop_string_in_the_middle_of_tokens(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch, tell_s: float
) -> None:
    monkeypatch.setattr(answer_events, "TELL_S", tell_s)
    text, tokens = story(headless)
    vocab = headless.engine.session.loaded.model.vocab
    border = len(vocab.text(tokens[:20]))
    stop = text[border - 2 : border + 3]  # the end of one token and the beginning of the next
    wanted = text[: text.index(stop)]
    chat = HeadlessChat(headless)
    ended = chat.answer(QUESTION, WHOLE.model_copy(update={"stop": ("never", stop)}))
    assert (ended.state, ended.finish, ended.note) == ("complete", "stop string", "")
    assert chat.messages[-1].text == wanted
    assert vocab.text(chat.messages[-1].tokens) in wanted
    assert ended.stats.generated_tokens < 40
    (spans,) = [event.spans[-1] for event in of(headless.events, MessageSpans)[-1:]]
    assert spans.char_ends[-1] == len(wanted), "cells of the stop string are no part of the text"
    n_kept = len(chat.messages[-1].tokens)
    stats = chat.answer("And then?", Sampling(temperature=0.0, max_tokens=2)).stats
    assert stats.reused_tokens >= ended.stats.prompt_tokens + n_kept, "what was sent is not read again"
    held(headless, chat)


def test_an_answer_without_the_stop_string_is_whole(headless: HeadlessEngine) -> None:
    text, tokens = story(headless)
    chat = HeadlessChat(headless)
    ended = chat.answer(QUESTION, WHOLE.model_copy(update={"stop": (text[-1:] + "never",)}))
    assert ended.finish == "limit"
    assert (chat.messages[-1].text, chat.messages[-1].tokens) == (text, tokens)


THINKING = r'root ::= "<think>\nThe text says Question: what is it?\n</think>\n\nThe answer. Question: none."'


def test_a_stop_string_in_the_reasoning_of_an_answer_does_not_end_it(headless: HeadlessEngine) -> None:
    chat = HeadlessChat(headless)
    ended = chat.answer("Hi", Sampling(temperature=0.0, grammar=THINKING, stop=("Question:", "\n\n")))
    assert ended.finish == "stop string"
    assert chat.messages[-1].text.endswith("</think>\n\nThe answer. ")
    held(headless, chat)


def test_of_a_prompt_that_nothing_renders_all_of_the_answer_counts(headless: HeadlessEngine) -> None:
    headless.events = []
    sampling = Sampling(temperature=0.0, grammar=THINKING, stop=("Question:",))
    headless.engine.handle(Generate(new_conversation_id(), new_message_id(), (), sampling, raw=RawPrompt("Hi")))
    headless.host.run_until_idle()
    said = "".join(event.text for event in of(headless.events, TextDelta))
    assert said == "<think>\nThe text says "


def test_answers_of_several_conversations_end_each_at_its_own(headless: HeadlessEngine) -> None:
    text, _ = story(headless)
    stops = (text[30:34], text[60:64], "")
    chats = [HeadlessChat(headless) for _ in stops]
    headless.events = []
    for chat, stop in zip(chats, stops, strict=True):
        chat.add_question(QUESTION)
        sampling = WHOLE.model_copy(update={"stop": (stop,) if stop else ()})
        headless.engine.handle(Generate(chat.id, new_message_id(), tuple(chat.messages), sampling))
    headless.host.run_until_idle()
    said = {chat.id: "" for chat in chats}
    for delta in of(headless.events, TextDelta):
        said[delta.conversation] += delta.text
    wanted = [text[: text.index(stop)] if stop else text for stop in stops]
    assert [said[chat.id] for chat in chats] == wanted
    ended = {event.conversation: event.finish for event in of(headless.events, TurnEnded)}
    assert [ended[chat.id] for chat in chats] == ["stop string", "stop string", "limit"]
    assert len(of(headless.events, TurnStarted)) == 3
