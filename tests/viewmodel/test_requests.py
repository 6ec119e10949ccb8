"""Rows of requests, from the events of the engine."""

from kvdesk.cache.snapshot import CacheSnapshot, Verification
from kvdesk.message import ConversationId, MessageId, TurnStats
from kvdesk.protocol.cache import CacheView, ClientShare
from kvdesk.protocol.chat import Asked, EngineRestarted, TextDelta, TurnEnded, TurnStarted
from kvdesk.reasoning import ReasoningMarks
from kvdesk.values import replace
from kvdesk.viewmodel.palette import N_COLOURS, request_index
from kvdesk.viewmodel.requests import MOST_ROWS, RequestLog

WHY = "The prompt differs from what was held."
STATS = TurnStats(40, 30, 10, 5, 1.0, 1.0, 1.0, why=WHY)


def started(n: int, client: str = "curl/8") -> TurnStarted:
    return TurnStarted(ConversationId(f"c{n}"), MessageId(f"a{n}"), 2, 40, 30, client=client)


def test_a_request_becomes_a_row_and_a_chat_does_not() -> None:
    log = RequestLog(lambda: 0.0)
    assert not log.apply(started(1, client=""))
    assert log.apply(started(2))
    log.apply(TextDelta(ConversationId("c2"), MessageId("a2"), "Hello there", (1, 2)))
    (row,) = log.rows
    assert (row.client, row.seq_id, row.n_generated, row.state) == ("curl/8", 2, 2, "streaming")
    assert row.cached_text == "30 of 40 (75 %)"
    assert log.n_running == 1
    log.apply(TurnEnded(ConversationId("c2"), MessageId("a2"), "complete", STATS))
    (row,) = log.rows
    assert (row.state, row.n_generated, row.explanation) == ("complete", 5, WHY)
    assert not log.apply(TurnEnded(ConversationId("c1"), MessageId("a1"), "complete", STATS))


def test_a_row_tells_the_protocol_the_tools_and_reasoning() -> None:
    log = RequestLog()
    marks = ReasoningMarks("<think>", "</think>")
    for n, asked in enumerate(
        (Asked("/messages", 12, thinks=True), Asked("/responses", 1, thinks=False), Asked("/new", 0, thinks=True), None)
    ):
        log.apply(replace(started(n), asked=asked, marks=marks if n < 2 else None))
    assert [row.asked for row in reversed(log.rows)] == [
        "Messages, 12 tools, reasoning",
        "Responses, 1 tool",
        "/new",
        "",
    ]


def test_all_requests_are_scored_also_those_that_are_listed_no_more() -> None:
    log = RequestLog()
    for n in range(MOST_ROWS + 1):
        log.apply(started(n))
        stats = replace(STATS, reread_tokens=10, miss="tools") if n == 0 else STATS
        log.apply(TurnEnded(ConversationId(f"c{n}"), MessageId(f"a{n}"), "complete", stats))
    log.apply(TurnEnded(ConversationId("chat"), MessageId("chat"), "complete", STATS))
    assert log.score.sentence == "75 % reused; 1 miss: tools reordered or changed (1)"
    assert log.score.requests == MOST_ROWS + 1, "chats are not scored"


def test_what_is_kept_of_each_program_is_shown() -> None:
    log = RequestLog()
    view = CacheView(
        CacheSnapshot(1, (), (), (), 0, 512, Verification("mirrored", 0)),
        (),
        clients=(ClientShare("curl/8", 1200, 3_400_000),),
    )
    assert log.apply(view)
    assert log.kept == "Kept for programs: curl/8: 1,200 cells, 3.4 MB saved."
    assert not log.apply(view)
    assert log.apply(replace(view, clients=()))
    assert not log.kept


def test_only_the_latest_are_kept_the_newest_first() -> None:
    log = RequestLog()
    for n in range(MOST_ROWS + 5):
        log.apply(started(n))
    assert len(log.rows) == MOST_ROWS
    assert log.rows[0].answer == f"a{MOST_ROWS + 4}"


def test_a_restart_interrupts_what_ran() -> None:
    log = RequestLog()
    log.apply(started(1))
    log.apply(EngineRestarted("It stopped.", ""))
    assert [row.state for row in log.rows] == ["interrupted"]
    assert replace(log.rows[0], n_prompt=0).cached_text.startswith("30 of 0")


def test_no_request_is_silver_as_cells_of_nobody_are() -> None:
    found = {request_index(seq) for seq in range(64)}
    assert found == set(range(N_COLOURS - 1))
