"""Requests put together from events: slots in parallel, texts that come later, what happened between requests."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kvdesk.engine_log import requests as of_log
from kvdesk.engine_log.causes import explain_request
from kvdesk.engine_log.cures import LOG_TEXT, READ_ONCE
from kvdesk.engine_log.events import read_events
from kvdesk.engine_log.findings import Cause
from kvdesk.engine_log.lines import read_lines
from kvdesk.engine_log.record import MOST_SLOTS, Request
from kvdesk.engine_log.requests import MOST_WAITING, RequestReader

ERASED = (
    "erased invalidated context checkpoint (pos_min = {last}, pos_max = {last}, n_tokens = {n}, n_swa = {swa}, "
    "pos_next = {next}, size = 62.813 MiB)"
)


def srv(text: str) -> str:
    return f"0.01.000.000 I srv  log_server_r: {text}\n"


def slot(number: int, task: int, text: str) -> str:
    return f"0.01.000.000 I slot update_slots: id  {number} | task {task} | {text}\n"


def began(number: int, task: int, n: int, reused: int = 0, how: str = "LRU, t_last = -1") -> str:
    return (
        slot(number, -1, f"selected slot by {how}")
        + slot(number, -1, "launching slot : {}")
        + slot(number, task, "processing task, is_child = 0")
        + slot(number, task, f"new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = {n}")
        + slot(number, task, f"cached n_tokens = {reused}, memory_seq_rm [{reused}, end)")
    )


def ended(number: int, task: int, n: int, read: int, generated: int = 5) -> str:
    return (
        slot(number, task, f"prompt eval time =   {read}.00 ms /   {read} tokens (")
        + slot(number, task, f"       eval time =   10.00 ms /     {generated} tokens (")
        + slot(number, task, f"stop processing: n_tokens = {n + generated - 1}, truncated = 0")
    )


def sent(body: dict[str, Any], answer: dict[str, Any] | None = None, path: str = "/v1/chat/completions") -> str:
    return (
        srv(f"done request: POST {path} 127.0.0.1 200")
        + srv(f"request:  {json.dumps(body)}")
        + srv(f"response: {json.dumps(answer or {})}")
    )


def chat(*texts: str) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]}


def requests(log: str, reader: RequestReader | None = None) -> list[Request]:
    reader = reader or RequestReader()
    events = read_events(read_lines([log.encode()]))
    return [*(request for event in events for request in reader.feed(event)), *reader.close()]


def causes(log: str) -> list[Cause]:
    reader = RequestReader()
    return [explain_request(request, reader.server).cause for request in requests(log, reader)]


def similar(sim: float, keep: float) -> str:
    return f"LCP similarity, f_sim_best = {sim:.3f} (> 0.100 thold), f_keep = {keep:.3f}"


def test_slots_in_parallel_keep_their_lines_apart() -> None:
    log = began(0, 1, 100) + began(1, 2, 300) + ended(1, 2, 300, 300) + ended(0, 1, 100, 100)
    first, second = requests(log)
    assert [(r.slot, r.task, r.n_prompt, r.read, r.generated) for r in (first, second)] == [
        (1, 2, 300, 300, 5),
        (0, 1, 100, 100, 5),
    ]


def test_bodies_come_after_the_answer_and_name_the_change() -> None:
    log = began(0, 1, 500) + ended(0, 1, 500, 500) + sent(chat("Beans on 2026-11-25?"))
    log += began(0, 2, 600, 100, similar(0.167, 0.198)) + ended(0, 2, 600, 500)
    log += sent(chat("Beans on 2026-11-26?", "Yes.", "And peas?"))
    first, second = requests(log)
    assert first.before is None
    assert second.before == first.prompt
    assert (second.path, second.status) == ("/v1/chat/completions", 200)
    assert causes(log) == [Cause.NEW, Cause.EDITED]


def test_a_log_may_begin_where_a_request_ends() -> None:
    log = "slot print_timing: id  0 | task 4 |\nprompt eval time = 14.41 ms /  3461 tokens (    4.04 ms per token,\n"
    log += "       eval time =   54.30 ms /  1633 tokens (\nslot      release: id  0 | task 4 | stop processing: "
    (request,) = requests(log + "n_tokens = 5093, truncated = 0\n")
    assert (request.n_prompt, request.reused, request.read) == (3461, 0, 3461)
    assert causes(log) == [Cause.UNKNOWN]
    assert explain_request(request, request.server).more == LOG_TEXT


@pytest.mark.parametrize(("swa", "same"), [(0, 43667), (32, 43699)])
def test_checkpoints_tell_the_first_difference_where_no_line_does(swa: int, same: int) -> None:
    """Since 2026 llama-server prints no `n_past` before it reads a prompt."""
    log = slot(0, 9, "processing task, is_child = 0")
    log += slot(0, 9, "new prompt, n_ctx_slot = 131072, n_keep = 0, task.n_tokens = 48866")
    log += slot(0, 9, "checking checkpoint with [43726, 43726] against 43667...")
    log += slot(0, 9, "forcing full prompt re-processing due to lack of cache data")
    log += slot(0, 9, ERASED.format(last=43726, n=43727, swa=swa, next=0))
    (request,) = requests(log)
    assert (request.same, request.reused, request.held) == (same, 0, 43727)
    finding = explain_request(request, request.server)
    assert (finding.cause, finding.lost) == (Cause.RECURRENT, same)


def test_erased_checkpoints_alone_tell_where_reading_began() -> None:
    (request,) = requests("".join(slot(0, 9, ERASED.format(last=n, n=n + 1, swa=0, next=5456)) for n in (9511, 10959)))
    finding = explain_request(request, request.server)
    assert finding.cause is Cause.DIVERGED
    assert finding.sentence.startswith("The slot had 10,960 tokens or more, and was read again from token 5,456 on.")


def test_a_refused_request_is_no_hit() -> None:
    log = slot(0, 9, "processing task") + srv("task id = 9, error: context shift is disabled")
    (request,) = requests(log)
    finding = explain_request(request, request.server)
    assert (finding.cause, finding.sentence) == (
        Cause.REFUSED, "The server refused the request: context shift is disabled"
    )  # fmt: skip


def test_times_alone_are_one_request_each() -> None:
    times = "llama_print_timings: prompt eval time = 9.00 ms / {n} tokens (\n"
    times += "llama_print_timings: eval time = 1 ms / 6 runs\n"
    assert [r.read for r in requests(times.format(n=8) + times.format(n=1822))] == [8, 1822]


def test_other_requests_are_no_answers() -> None:
    log = began(0, 1, 500) + ended(0, 1, 500, 500)
    log += sent({"content": "x"}, path="/tokenize") + sent(chat("Beans?"))
    (request,) = requests(log)
    assert request.path == "/v1/chat/completions"
    assert request.prompt is not None


def test_the_slot_prints_its_last_prompt_where_no_body_came() -> None:
    def launching(task: int, text: str) -> str:
        return slot(
            0, -1, "launching slot : " + json.dumps({"id": 0, "id_task": task, "prompt": text, "generated": ""})
        )

    def text(day: str, more: str = "") -> str:
        return f"<|im_start|>system\nToday is {day}.<|im_end|>\n<|im_start|>user\nBeans?<|im_end|>\n{more}"

    log = began(0, 1, 500) + ended(0, 1, 500, 500)
    log += launching(1, text("2026-11-25")) + began(0, 2, 600, 100, similar(0.167, 0.198)) + ended(0, 2, 600, 500)
    log += launching(2, text("2026-11-26", "<|im_start|>user\nPeas?")) + began(0, 3, 700, 600, similar(0.857, 0.99))
    assert causes(log)[:2] == [Cause.NEW, Cause.EDITED]


def test_an_answer_that_came_back_otherwise_is_known_from_numbers_alone() -> None:
    log = began(0, 1, 500) + ended(0, 1, 500, 500, generated=200)
    log += began(0, 2, 800, 502, similar(502 / 800, 502 / 699)) + ended(0, 2, 800, 298)
    assert causes(log) == [Cause.NEW, Cause.ANSWER]
    log = began(0, 1, 500) + ended(0, 1, 500, 500, generated=200)
    log += sent(chat("Beans?"), {"choices": [{"message": {"reasoning_content": "Beans are plants."}}]})
    log += began(0, 2, 800, 502, similar(502 / 800, 502 / 699)) + ended(0, 2, 800, 298)
    assert causes(log) == [Cause.NEW, Cause.THINKING]


def test_a_slot_file_is_told_from_the_path_or_the_response() -> None:
    forced = slot(0, 2, "forcing full prompt re-processing due to lack of cache data")
    again = began(0, 2, 500, 0, similar(0.9, 0.99)) + forced + ended(0, 2, 500, 500)
    path = srv("done request: POST /slots/0 127.0.0.1 200")
    assert causes(path + again) == [Cause.FORCED]
    (maybe,) = requests(path + again)
    found = explain_request(maybe, maybe.server)
    assert "saved to a file, restored or erased" in found.notes[0]
    assert READ_ONCE in found.cures
    saved = path + srv("request:  {}") + srv('response: {"id_slot":0,"filename":"a","n_saved":450}')
    assert causes(saved + again) == [Cause.FORCED]
    restored = path + srv("request:  {}") + srv('response: {"id_slot":0,"filename":"a","n_restored":450}')
    assert causes(restored + again) == [Cause.NO_CHECKPOINT_IN_FILE]


def test_a_prompt_loaded_from_memory_replaces_what_the_slot_held() -> None:
    looked = srv(" - looking for better prompt, base f_keep = 0.100, f_sim = 0.100")
    found = srv(" - found better prompt with f_keep = 0.900, f_sim = 0.800")
    log = began(0, 1, 500) + ended(0, 1, 500, 500)
    second = began(0, 2, 600, 480).replace("\n", "\n" + looked + found, 1)
    failed = slot(0, -1, "failed to load prompt from cache") + slot(0, -1, "clearing prompt with 504 tokens")
    assert causes(log + second.replace(found, found + failed) + ended(0, 2, 600, 600)) == [Cause.NEW, Cause.EVICTED]
    first, loaded = requests(log + second + ended(0, 2, 600, 120))
    assert (loaded.loaded, loaded.same, loaded.held) == (0.8, 480, -1)
    assert causes(log + second + ended(0, 2, 600, 120)) == [Cause.NEW, Cause.LOADED]
    assert first.loaded < 0


def test_another_model_begins_anew() -> None:
    reader = RequestReader()
    log = began(0, 1, 500) + "0.01.000.000 I srv    load_model: loading model 'b.gguf'\n" + began(0, 2, 600)
    cut, new = requests(log, reader)
    assert (cut.n_prompt, cut.read) == (500, 500)
    assert new.is_first
    assert reader.server.model == "b.gguf"
    assert explain_request(new, new.server).notes == ("A model was loaded before it, so the cache was empty.",)
    assert not explain_request(cut, cut.server).notes


def test_what_is_remembered_is_bounded() -> None:
    def lines() -> Iterator[str]:
        yield srv("done request: POST /x 127.0.0.1 200") + srv("request:  {}")
        for i in range(3000):
            yield slot(i, i, "processing task, is_child = 0") + slot(
                i, i, "stop processing: n_tokens = 5, truncated = 0"
            )

    reader = RequestReader()
    events = read_events(read_lines(line.encode() for line in lines()))
    assert sum(len(reader.feed(event)) for event in events) + len(reader.close()) == 3000
    assert len(reader._slots) <= MOST_SLOTS
    assert len(reader._waiting) <= MOST_WAITING
    log = "".join(
        slot(i, -1, "checking sim = 0.5 (1/2) > 0.1") + slot(i, -1, "skipping, is_processing") for i in range(3000)
    )
    requests(log, reader)
    assert len(reader._choice.same) + len(reader._choice.busy) <= 2 * MOST_SLOTS + 1


def test_prompts_that_are_too_long_together_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_log, "MOST_CHARS", 2000)
    reader = RequestReader(is_live=True)
    for i in range(20):
        for event in read_events(
            read_lines([(began(i, i, 40) + ended(i, i, 40, 40) + sent(chat("x" * 300))).encode()])
        ):
            list(reader.feed(event))
    held = [len(slot.prompt.parts[0].text) for slot in reader._slots.values() if slot.prompt is not None]
    assert 300 <= sum(held) <= 2000


@pytest.mark.parametrize("is_live", [True, False])
def test_messages_are_kept_while_their_server_may_be_asked(is_live: bool) -> None:
    log = "".join(
        began(0, task, 40) + ended(0, task, 40, 40) + sent(chat("Hi"), path=path)
        for task, path in enumerate(("/v1/chat/completions", "/v1/chat/completions", "/v1/responses"))
    )
    found = requests(log, RequestReader(is_live=is_live))
    bodies = [json.loads(request.body) if request.body else None for request in found]
    assert bodies == ([None, chat("Hi"), None] if is_live else [None] * 3)


def test_several_answers_to_one_request_are_one_request() -> None:
    """With `n` > 1 each child slot prints the numbers of its parent, which alone reads the prompt."""
    log = began(0, 1, 500) + ended(0, 1, 500, 500)
    log += slot(1, -1, "selected slot by LRU, t_last = -1")
    log += slot(0, 3, "processing task, is_child = 1") + slot(1, 2, "processing task, is_child = 0")
    log += slot(1, 2, "new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = 700")
    log += slot(1, 2, "cached n_tokens = 0, memory_seq_rm [0, end)")
    log += ended(0, 3, 700, 700) + slot(0, 3, "clearing prompt with 704 tokens") + ended(1, 2, 700, 700)
    log += began(0, 4, 600) + ended(0, 4, 600, 600)
    found = requests(log)
    assert [(request.task, request.read, request.how) for request in found] == [
        (1, 500, "age"),
        (2, 700, "age"),
        (4, 600, "age"),
    ]
    assert causes(log) == [Cause.NEW] * 3


def test_a_task_that_waited_for_a_slot_was_not_kept_from_the_one_it_got() -> None:
    log = began(0, 1, 500) + slot(0, -1, " - skipping, is_processing = 1") + ended(0, 1, 500, 500)
    log += slot(0, -1, " - checking sim = 0.050 (30/600) > 0.100") + began(0, 2, 600, 30) + ended(0, 2, 600, 570)
    _, waited = requests(log)
    assert waited.elsewhere is None
    assert waited.same == 30
    assert Cause.BUSY not in causes(log)


def test_a_slot_by_id_keeps_what_is_compared_after_it() -> None:
    log = slot(0, -1, "selected slot by id (0)") + slot(0, -1, " - checking sim = 0.500 (300/600) > 0.100")
    (request,) = requests(log + slot(0, 1, "processing task, is_child = 0"))
    assert (request.how, request.same) == ("id", 300)


def test_a_slot_that_was_emptied_for_others_stays_so_where_both_lines_are_printed() -> None:
    log = began(0, 1, 500) + ended(0, 1, 500, 500)
    log += srv("purging slot 0 with 504 tokens") + slot(0, -1, "clearing prompt with 504 tokens")
    assert causes(log + began(0, 2, 600) + ended(0, 2, 600, 600)) == [Cause.NEW, Cause.EVICTED]
    loaded = srv(" - found better prompt with f_keep = 0.900, f_sim = 0.800")
    second = began(0, 2, 600, 480).replace("\n", "\n" + loaded, 1)
    assert causes(log + second + ended(0, 2, 600, 120)) == [Cause.NEW, Cause.LOADED]


def test_a_refused_request_gives_its_text_to_no_other() -> None:
    refused = srv("done request: POST /v1/chat/completions 127.0.0.1 401") + srv(f"request:  {json.dumps(chat('No.'))}")
    rendered = srv("done request: POST /apply-template 127.0.0.1 200") + srv(f"request:  {json.dumps(chat('Old.'))}")
    log = began(0, 1, 500) + ended(0, 1, 500, 500) + refused + srv("response: {}") + rendered + srv("response: {}")
    (request,) = requests(log + sent(chat("Beans?")))
    assert request.status == 200
    assert request.prompt.parts[0].text == "Beans?"


def test_an_error_has_its_own_status() -> None:
    log = began(0, 1, 5000) + srv("task id = 1, error: request (5000 tokens) exceeds the available context size")
    log += slot(0, 1, "stop processing: n_tokens = 0, truncated = 0")
    (request,) = requests(log + srv("done request: POST /v1/chat/completions 127.0.0.1 400"))
    assert (request.status, request.path) == (400, "/v1/chat/completions")


def headless(number: int, task: int, read: int) -> str:
    """As versions of 2025 print times: after the slot's line, without a head."""
    return (
        f"slot print_timing: id  {number} | task {task} | \n"
        f"prompt eval time =   {read}.00 ms /   {read} tokens (\n       eval time =   10.00 ms /     5 tokens (\n"
        f"      total time =  {read + 10}.00 ms /  {read + 5} tokens\n"
    )


@pytest.mark.parametrize("is_before", [True, False])
def test_times_without_a_head_belong_to_the_slot_that_was_named(is_before: bool) -> None:
    log = began(0, 1, 100) + began(1, 2, 300)
    for number, task, n in ((0, 1, 100), (1, 2, 300)):
        stopped = slot(number, task, f"stop processing: n_past = {n + 4}, truncated = 0")
        log += headless(number, task, n) + stopped if is_before else stopped + headless(number, task, n)
    assert [(r.task, r.n_prompt, r.read, r.prompt_ms, r.generated) for r in requests(log)] == [
        (1, 100, 100, 100.0, 5),
        (2, 300, 300, 300.0, 5),
    ]


def test_a_client_that_goes_leaves_what_was_read_until_then() -> None:
    log = began(0, 1, 1000, 100) + srv("cancel task, id_task = 1")
    (request,) = requests(log + slot(0, 1, "stop processing: n_tokens = 612, truncated = 0"))
    assert (request.n_prompt, request.reused, request.read, request.asked) == (1000, 100, 512, 612)
    log = began(0, 1, 1000, 100) + srv("cancel task, id_task = 1")
    (request,) = requests(log + slot(0, 1, "stop processing: n_tokens = 1200, truncated = 0"))
    assert (request.read, request.asked) == (900, 1000)


def test_similarities_tell_what_a_client_that_goes_had_changed() -> None:
    log = began(0, 1, 8000) + ended(0, 1, 8000, 8000) + slot(0, -1, f"selected slot by {similar(0.18, 0.144)}")
    log += slot(0, 9, "processing task, is_child = 0")
    log += slot(0, 9, "forcing full prompt re-processing due to lack of cache data")
    log += slot(0, 9, ERASED.format(last=7900, n=7901, swa=0, next=0)) + "srv stop: cancel task, id_task = 9\n"
    log += slot(0, 9, "stop processing: n_tokens = 2048, truncated = 0")
    request = requests(log)[1]
    assert (request.same, request.n_prompt, request.reused, request.read) == (1153, 6406, 0, 2048)
    finding = explain_request(request, request.server)
    assert (finding.cause, finding.lost) == (Cause.DIVERGED, 2048)
    assert "at token 1,153: another conversation, or something changed" in finding.sentence
    assert causes(log.replace("forcing full", "elided"))[1] is Cause.RECURRENT


def test_the_slot_of_another_server_is_no_slot_of_this_one() -> None:
    """Two servers write into one log, and nothing says which line is whose."""

    def turn(task: int, n: int, read: int, sim: float, keep: float) -> str:
        chosen = slot(0, -1, f"selected slot by {similar(sim, keep)}")
        return chosen + slot(0, task, "processing task, is_child = 0") + ended(0, task, n, read)

    log = began(0, 1, 8000) + ended(0, 1, 8000, 8000) + began(0, 2, 500) + ended(0, 2, 500, 500)
    log += turn(30, 8200, 196, 0.976, 1.0) + turn(40, 560, 56, 0.9, 1.0)
    assert [(r.n_prompt, r.reused, r.held) for r in requests(log)][2:] == [(8200, 8004, 8003), (560, 504, 504)]
    assert causes(log)[2:] == [Cause.CONTINUED, Cause.CONTINUED]


def test_a_slot_by_id_may_have_had_another_conversation() -> None:
    """At level 3 nothing is printed of what is alike then."""

    def turn(task: int, n: int, read: int) -> str:
        chosen = slot(0, -1, "selected slot by id (0)") + slot(0, task, "processing task, is_child = 0")
        times = f"slot print_timing: id  0 | task {task} | \nprompt eval time = 9.00 ms / {read} tokens (\n"
        return (
            chosen
            + times
            + " eval time = 9.00 ms / 5 tokens (\n"
            + slot(0, task, f"stop processing: n_tokens = {n + 4}, truncated = 0")
        )

    assert causes(turn(1, 333, 333) + turn(2, 154, 151) + turn(3, 220, 66)) == [
        Cause.NEW, Cause.UNKNOWN, Cause.CONTINUED,
    ]  # fmt: skip


def test_another_conversation_in_a_slot_is_no_compaction() -> None:
    def turn(task: int, n: int, same: int, *texts: str) -> str:
        differs = slot(0, task, f"n_past = {same}, slot.prompt.tokens.size() = 900, seq_id = 0, pos_min = 0, n_swa = 0")
        return began(0, task, n, same) + (differs if same else "") + ended(0, task, n, n - same) + sent(chat(*texts))

    garden = "You are a careful gardener who answers in short sentences. " * 9
    log = turn(1, 900, 0, garden, "When do I water the tomatoes?", "Every second day, at dawn.", "And the beans?" * 99)
    other = turn(2, 90, 3, "Give a title of four words to what follows, and nothing else: " * 2)
    shorter = turn(2, 90, 3, garden, "A summary: tomatoes every second day.")
    assert causes(log + other) == [Cause.NEW, Cause.NEW]
    assert causes(log + shorter) == [Cause.NEW, Cause.COMPACTED]


def test_the_oldest_slot_has_nothing_alike_unless_a_saved_prompt_was_loaded() -> None:
    """Which is not printed at level 3."""

    def turn(task: int, n: int, read: int) -> str:
        times = f"prompt eval time = 9.00 ms / {read} tokens (\n eval time = 9.00 ms / 5 tokens (\n"
        return (
            slot(0, -1, "selected slot by LRU, t_last = 9")
            + slot(0, task, "processing task, is_child = 0")
            + slot(0, task, "print_timing:").replace("update_slots", "print_timing").replace("print_timing:\n", "\n")
            + times
            + slot(0, task, f"stop processing: n_tokens = {n + 4}, truncated = 0")
        )

    log = turn(1, 368, 368) + turn(2, 396, 52) + turn(3, 900, 880)
    assert [r.reused for r in requests(log)] == [0, 344, 20]
    assert causes(log) == [Cause.NEW, Cause.LOADED, Cause.DIVERGED]


def test_a_log_that_lost_lines_mixes_no_requests() -> None:
    log = began(0, 1, 500) + slot(0, 7, "new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = 900")
    log += slot(0, 3, "cached n_tokens = 5, memory_seq_rm [5, end)") + ended(0, 7, 900, 900) + ended(0, 7, 1, 1)
    assert [(request.task, request.n_prompt, request.read) for request in requests(log)] == [
        (1, 500, 500),
        (7, 900, 900),
    ]
    again = began(0, 7, 500) + ended(0, 7, 500, 500)
    assert [request.read for request in requests(log + again)] == [500, 900, 500]


def test_what_concerns_all_slots_is_said_of_each_that_runs() -> None:
    log = began(0, 1, 500) + began(1, 2, 500) + srv("failed to find free space in the KV cache, retrying")
    assert [request.no_room for request in requests(log)] == [True, True]


def test_prompts_dropped_for_idle_slots_belong_to_the_request_that_has_started() -> None:
    dropped = srv(" - making room for prompt cache entry, removing oldest entry (size = 10.000 MiB)")
    first = began(0, 1, 500).replace("LRU, t_last = -1\n", "LRU, t_last = -1\n" + dropped)
    log = first + dropped * 2 + ended(0, 1, 500, 500) + began(0, 2, 500) + ended(0, 2, 500, 500)
    reader = RequestReader()
    assert [request.dropped for request in requests(log, reader)] == [3, 0]
    assert reader.server.n_dropped == 3


def test_tokens_and_gaps_are_no_messages() -> None:
    for body in ({"prompt": [1, 2, 3]}, {"prompt": "", "input_prefix": "def f", "input_suffix": "return"}):
        log = began(0, 1, 500) + ended(0, 1, 500, 500) + sent(body, path="/completion")
        log += began(0, 2, 600, 100, similar(0.167, 0.198)) + ended(0, 2, 600, 500) + sent(body, path="/completion")
        assert causes(log) == [Cause.NEW, Cause.DIVERGED]


def test_embeddings_lose_nothing() -> None:
    log = began(0, 1, 500) + slot(0, 1, "stop processing: n_tokens = 500, truncated = 0")
    log += sent({"input": "a"}, path="/v1/embeddings")
    log += slot(0, -1, " - checking sim = 0.900 (450/500) > 0.100") + began(0, 2, 500, 0, similar(0.9, 0.9))
    log += slot(0, 2, "stop processing: n_tokens = 500, truncated = 0") + sent({"input": "a"}, path="/v1/embeddings")
    assert causes(log) == [Cause.STATELESS] * 2
    newest = "".join(line for line in log.splitlines(keepends=True) if "log_server_r" not in line)
    assert causes(newest) == [Cause.NEW, Cause.STATELESS]


def test_a_log_that_begins_within_a_prompt_takes_no_piece_of_it_for_the_cache() -> None:
    log = slot(0, 1, "created context checkpoint 1 of 32 (pos_min = 0, pos_max = 831, n_tokens = 832, size = 1 MiB)")
    log += slot(0, 1, "cached n_tokens = 832, memory_seq_rm [832, end)")
    log += slot(0, 1, "cached n_tokens = 896, memory_seq_rm [896, end)") + ended(0, 1, 900, 900)
    (request,) = requests(log)
    assert (request.n_prompt, request.reused, request.read) == (900, 0, 900)


def test_numbers_that_contradict_each_other_are_in_no_sum() -> None:
    (request,) = requests(began(0, 1, 500, 900))
    assert not request.has_numbers
