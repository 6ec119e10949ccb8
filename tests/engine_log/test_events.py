"""Every sentence of every version becomes its event."""

import pytest

from kvdesk.engine_log.events import Event, event_of, read_events
from kvdesk.engine_log.lines import LogLine, read_lines
from kvdesk.engine_log.sentences import Kind


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        (
            ("slot get_availabl: id  3 | task -1 | selected slot by LCP similarity, f_sim_best = 0.500 (> 0.100 thold)"
            ", f_keep = 0.056"),
            Kind.BY_SIMILARITY,
            {"sim_best": "0.500", "threshold": "0.100", "keep": "0.056"},
        ),
        (
            "slot get_availabl: id  3 | task -1 | selected slot by lcs similarity, lcs_len = 20, similarity = 0.250",
            Kind.BY_SIMILARITY,
            {"sim": "0.250"},
        ),
        ("slot get_availabl: id  1 | task -1 |  - checking sim = 0.081 (9/111) > 0.100", Kind.SIMILARITY,
         {"sim": "0.081", "same": "9", "n": "111", "threshold": "0.100"}),
        ("srv         alloc:  - making room for prompt cache entry, removing oldest entry (size = 3418.112 MiB)",
         Kind.DROPPED, {"mib": "3418.112"}),
        ("srv        update:  - cache size limit reached, removing oldest entry (size = 1.5 MiB)", Kind.DROPPED,
         {"mib": "1.5"}),
        ("slot update_slots: id  0 | task 9 | new prompt, n_ctx_slot = 4096, n_keep = -1, n_prompt_tokens = 12",
         Kind.PROMPT, {"ctx": "4096", "keep": "-1", "n": "12"}),
        ("slot update_slots: id  0 | task 9 | kv cache rm [4096, end)", Kind.CACHED, {"n": "4096"}),
        ("slot update_slots: id  0 | task 9 | n_tokens = 0, memory_seq_rm [0, end)", Kind.CACHED, {"n": "0"}),
        ("slot update_slots: id  0 | task 9 | n_past = 5, cache_tokens.size() = 9, seq_id = 0, pos_min = 8",
         Kind.PREFIX, {"same": "5", "held": "9", "seq": "0", "first": "8"}),
        ("slot update_slots: id  0 | task 9 | Checking checkpoint with [195, 1474] against 0...", Kind.CHECKED,
         {"first": "195", "last": "1474", "against": "0"}),
        ("slot update_slots: id  0 | task 9 | restored SWA checkpoint (pos_min = 1, pos_max = 9, size = 1 MiB)",
         Kind.RESTORED, {"first": "1", "last": "9"}),
        ("slot print_timing: id  0 | task 9 | prompt eval time =   10.50 ms /    25 tokens (", Kind.EVALUATED,
         {"ms": "10.50", "n": "25"}),
        ("       eval time =   16131.90 ms /   192 tokens (", Kind.GENERATED, {"ms": "16131.90", "n": "192"}),
        ("llama_perf_context_print: prompt eval time =      10.00 ms /     5 tokens (", Kind.EVALUATED,
         {"ms": "10.00", "n": "5"}),
        ("slot      release: id  0 | task 9 | stop processing: n_past = 77, truncated = 1", Kind.STOPPED,
         {"n": "77", "truncated": "1"}),
        ("srv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 200", Kind.DONE,
         {"method": "POST", "path": "/v1/chat/completions", "status": "200"}),
        ("srv  log_server_r: request:  {}", Kind.BODY, {"json": "{}"}),
        ("srv    load_model: prompt cache is enabled, size limit: no limit", Kind.RAM_LIMIT, {}),
        ("srv         alloc:  - prompt state size 9.500 MiB exceeds cache size limit 8.000 MiB, skipping", Kind.DROPPED,
         {"mib": "9.500"}),
        ("srv    load_model: initializing, n_slots = 4, n_ctx_slot = 512, kv_unified = 'true'", Kind.SLOTS,
         {"n": "4", "ctx": "512", "unified": "true'"}),
        ("slot launch_slot_: id  0 | task 9 | processing task, is_child = 1", Kind.STARTED, {"child": "1"}),
        ("slot print_timing: id  0 | task 9 | ", Kind.TIMES, {}),
        ("slot print_timing: id  0 | task 9 | draft acceptance = 0.57576 (   19 accepted /    33 generated)",
         Kind.DRAFTED, {"share": "0.57576"}),
        ("srv  llama_server: server is listening on http://127.0.0.1:8020", Kind.LISTENING,
         {"url": "http://127.0.0.1:8020"}),
        ("main: server is listening on http://127.0.0.1:8080 - starting the main loop", Kind.LISTENING,
         {"url": "http://127.0.0.1:8080 - starting the main loop"}),
        (('time=2026-01-25T14:40:29Z level=DEBUG source=cache.go:142 msg="loading cache slot" id=0 cache=8 prompt=68 '
         "used=7 remaining=61"), Kind.LOOKUP, {"cache": "8", "prompt": "68", "used": "7", "remaining": "61"}),
        (('time=2026-01-25T14:40:29Z level=WARN source=a.go:1 msg="truncating input prompt" limit=4096 prompt=9000 '
         "keep=4 new=4096"), Kind.TRUNCATED, {"limit": "4096", "prompt": "9000", "keep": "4", "new": "4096"}),
        ("Cache reuse summary: 939/940 of prompt (100%), 939 prefix, 0 non-prefix", Kind.SUMMARY,
         {"used": "939", "n": "940"}),
        ("srv  log_server_r: cancel task, id_task = 4", Kind.CANCELLED, {"task": "4"}),
    ],
)  # fmt: skip
def test_sentences(text: str, kind: Kind, values: dict[str, str]) -> None:
    event = event_of(LogLine(1, text))
    assert (event.kind, event.values) == (kind, values)


def test_ids_are_those_of_the_head_or_of_the_sentence() -> None:
    def ids(text: str) -> tuple[int, int]:
        event = event_of(LogLine(1, text))
        return event.slot, event.task

    assert ids("slot launch_slot_: id 12 | task 345 | processing task, is_child = 0") == (12, 345)
    assert ids("slot   operator(): id  2 | task 7 | new prompt, n_ctx_slot = 256, n_keep = 0, task.n_tokens = 1") == (
        2,
        7,
    )
    assert ids("srv  try_clear_id: purging slot 3 with 55 tokens") == (3, -1)
    assert ids("srv    send_error: task id = 5, error: too long") == (-1, 5)


def test_what_says_nothing_is_passed_over() -> None:
    for text in ("", "slot update_slots: id  0 | task 3 | ", "srv  update_slots: all slots are idle",
                 "slot a: id 99999999999999999999 | task 1 | processing task", "eval time = nothing"):  # fmt: skip
        assert event_of(LogLine(1, text)) is None


def test_a_number_that_is_none_has_its_default() -> None:
    assert Event(Kind.CACHED, 1, values={"n": "1.2.3"}).number("n", 7) == 7
    assert Event(Kind.CACHED, 1).real("n") == -1.0
    assert Event(Kind.METRIC, 1, values={"n": "1e+999"}).number("n", 7) == 7
    released = event_of(LogLine(1, 'INFO [x] slot released | tid="1" id_slot=foo id_task= n_past=9'))
    assert released is not None
    assert (released.slot, released.task, released.number("n")) == (-1, -1, 9)


def test_text_around_a_difference_is_joined() -> None:
    log = (
        b"slot update_slots: id  0 | task 9 | old: ... you\nare |  kind\n"
        b"slot update_slots: id  0 | task 9 | new: ... you\nare |  brief\n"
        b"slot update_slots: id  0 | task 9 |    1   2   3\n"
    )
    events = list(read_events(read_lines([log])))
    assert [event.values["text"] for event in events] == ["you\nare |  kind", "you\nare |  brief"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text", ["msg=" + "time=" * 800_000, "[GIN] " * 600_000, "slot x: id 1 | task 1 | " + " -" * 2_000_000]
)
def test_a_long_line_takes_no_long_time(text: str) -> None:
    assert list(read_events([LogLine(1, text)])) == []


def test_texts_of_events_stay_bounded() -> None:
    lines = [
        LogLine(1, "srv send_error: task id = 3, error: " + "x" * 10**6),
        LogLine(2, "slot f: id 0 | task 1 | old: ... a"),
    ]
    lines += [LogLine(3, "y" * 10**6)]
    error, old = read_events(lines)
    assert len(error.values["what"]) == len(old.values["text"]) == 2000
