"""What an answer says of the time until its first token is what was measured of it."""

import re
import time

import pytest

from kvdesk.backends.local.scheduler import first_token
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import new_message_id
from kvdesk.policies.load import LoadMeter
from kvdesk.protocol.chat import Generate, TurnEnded
from tests.backends.local.conftest import SMALL
from tests.backends.local.test_turns import GREEDY, LONG, of


def test_the_numbers_are_those_of_the_answer(headless: HeadlessEngine) -> None:
    stats = HeadlessChat(headless).answer(LONG, GREEDY).stats
    assert stats.time_why.startswith(f"First token after {stats.ttft_ms / 1e3:.{2 if stats.ttft_ms < 1e3 else 1}f} s: ")
    assert f"{stats.prefilled_tokens} tokens read at {stats.prefill_tok_s:,.0f} tok/s" in stats.time_why
    assert stats.why.startswith("Nothing of this conversation was in the cache")


def test_usual_is_learned_and_others_are_named_when_it_is_slower(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = session_of(headless).runtime.speed_model.costs
    for beginning in ("One.", "Two.", "Three.", "Four."):
        HeadlessChat(headless, beginning).answer(LONG, GREEDY)
    usual = costs.usual_tok_s(60, 0, SMALL.n_batch)
    assert usual > 0
    monkeypatch.setattr(costs, "usual_tok_s", lambda *_: 100 * usual)

    monkeypatch.setattr(LoadMeter, "read", lambda _meter, _at_s: 1.5)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    stats = HeadlessChat(headless, "Five.").answer(LONG, GREEDY).stats
    assert re.search(r"usually [\d,]+ on this computer: other programs used 1\.5 of 2 processors", stats.time_why)


def test_the_load_and_the_queue_are_told_apart(headless: HeadlessEngine) -> None:
    chat = HeadlessChat(headless, "You are brief.")
    chat.answer("Hello?", GREEDY)
    asked = Generate(chat.id, new_message_id(), tuple(chat.messages[:-1]), GREEDY)
    now = time.perf_counter()
    headless.engine._scheduler.loaded = now - 5, now - 2
    headless.engine.handle(asked, now - 6)
    headless.host.run_until_idle()
    stats = of(headless.events, TurnEnded)[-1].stats
    assert "3.0 s while the model was loaded, 3." in stats.time_why
    assert stats.time_why.endswith("s until other work had ended, 1 token read.")


def test_what_waited_for_another_answer_says_so() -> None:
    clocks = first_token.FirstTokenClocks(time.perf_counter() - 4, held_back=True)
    said = clocks.reason(20, 0.1)
    assert said.startswith("First token after 4.0 s: 4.0 s in the queue behind another answer, 20 tokens read at 200")
