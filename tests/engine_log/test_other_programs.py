"""Requests of programs other than llama-server, and of its relatives: Ollama and LM Studio on MLX, KoboldCpp, TabbyAPI,
oMLX, llama-cpp-python, ik_llama.cpp.
"""

import json
from typing import Any

import pytest

from kvdesk.engine_log.causes import explain_request
from kvdesk.engine_log.findings import Cause
from tests.engine_log.test_requests import causes, requests


@pytest.mark.parametrize(
    ("line", "numbers", "cause", "lost"),
    [
        ('level=INFO source=prefix_cache.go:124 msg="cache hit" total=33083 matched=32838 cached=24933 left=8150',
         (33083, 24933, 8150), Cause.CHECKPOINT, 7905),
        ('level=INFO source=cache.go:1 msg="Cache hit" total=900 cached=880 left=20', (900, 880, 20),
         Cause.CONTINUED, 0),
        ('level=INFO source=cache.go:1 msg="Cache miss" left=900 matched=800 reason=non_trimmable_divergence',
         (900, 0, 900), Cause.FORCED, 800),
        ('level=INFO source=cache.go:1 msg="Cache miss" left=900', (900, 0, 900), Cause.NEW, 0),
        (" [coordinator][INFO]: Prompt cache restore: cached_tokens=17408 uncached_tokens=24 lifetime_efficiency=62%",
         (17432, 17408, 24), Cause.CONTINUED, 0),
    ],
)  # fmt: skip
def test_mlx_tells_all_of_a_request_in_one_line(
    line: str, numbers: tuple[int, int, int], cause: Cause, lost: int
) -> None:
    (request,) = requests(line + "\n")
    assert (request.n_prompt, request.reused, request.read) == numbers
    finding = explain_request(request, request.server)
    assert (finding.cause, finding.lost) == (cause, lost)


def test_koboldcpp_tells_what_it_reads_and_what_it_had() -> None:
    def ended(used: int, generated: int) -> str:
        times = "Process:33.00s (3.1ms/T = 323.44T/s), Generate:9.76s (82.7ms/T = 12.09T/s), Total:42.81s (2.76T/s)"
        return f"[12:10:11] CtxLimit:{used}/4096, Amt:{generated}/512, Init:0.02s, {times}\n"

    log = "\nProcessing Prompt [BATCH] (512 / 2900 tokens)\rProcessing Prompt [BATCH] (2900 / 2900 tokens)\n"
    log += ended(3000, 100) + "Processing Prompt (50 / 50 tokens)\n" + ended(3150, 100)
    log += "Processing Prompt [BLAS] (512 / 2800 tokens)\n" + ended(3400, 100)
    found = requests(log)
    assert [(r.n_prompt, r.reused, r.read) for r in found] == [(2900, 0, 2900), (3050, 3000, 50), (3300, 500, 2800)]
    assert causes(log) == [Cause.NEW, Cause.CONTINUED, Cause.DIVERGED]
    finding = explain_request(found[2], found[2].server)
    assert "The prompt fills the context (3,300 of 4,096 tokens)" in finding.notes[0]
    assert "--smartcache N" in [cure.name for cure in finding.cures]


def test_koboldcpps_older_lines_are_enough() -> None:
    log = (
        "CtxLimit: 11892/12288, Process:34.76s (3.0ms/T = 338.83T/s), Generate:9.61s (82.9ms/T = 12.07T/s), Total:4s\n"
    )
    (request,) = requests(log)
    assert (request.n_prompt, request.reused, request.read, request.is_rounded) == (11776, 0, 11776, True)


def test_koboldcpps_lines_of_2026_are_read() -> None:
    def ended(used: int, read: int, generated: int) -> str:
        times = f"Processed:{read} in 34.68s (47.19T/s), Generated:{generated}/300 in 2.19s (2.87T/s), Total:37.63s"
        return f"[04:18:10] CtxLimit:{used}/65536, Init:0.76s, {times}\n"

    log = "Processing Prompt [BATCH] (12000 / 12000 tokens)\n" + ended(12100, 12000, 100)
    log += "Processing Prompt [BATCH] (12200 / 12200 tokens)\n" + ended(12600, 12200, 100) + ended(2048, 161477, 0)
    found = requests(log)
    numbers = [(r.n_prompt, r.reused, r.read, r.generated, r.prompt_ms, r.cancelled) for r in found]
    assert numbers[:2] == [(12000, 0, 12000, 100, 34680, False), (12500, 300, 12200, 100, 34680, False)]
    assert numbers[2] == (2048, 0, 2048, 0, 34680, True)
    assert causes(log)[:2] == [Cause.NEW, Cause.DIVERGED]


def test_what_koboldcpp_loads_from_another_slot_is_no_change_of_the_client() -> None:
    def read(n: int, used: int) -> str:
        return (
            f"Processing Prompt [BATCH] ({n} / {n} tokens)\n[04:18:10] CtxLimit:{used}/65536, Amt:100/300, "
            "Process:9.00s (9.0T/s), Generate:9.00s (9.0T/s), Total:18.0s\n"
        )

    log = read(12000, 12100) + read(15000, 15100)
    log += "[SmartCache Match of 12090 tokens in slot 0. Switching KV...]\n" + read(410, 12600)
    log += "[SmartCache RNN Match of 2048 tokens in slot 6. Saving into slot 4 and switching...]\n" + read(13000, 15148)
    assert causes(log) == [Cause.NEW, Cause.UNKNOWN, Cause.LOADED, Cause.UNKNOWN]


def test_little_that_was_reused_is_no_continued_conversation() -> None:
    def read(n: int) -> str:
        at = "llama_perf_context_print:"
        return f"{at} prompt eval time = 9.00 ms / {n} tokens (\n{at} eval time = 9.00 ms / 20 runs (\n"

    hit = "Llama.generate: {} prefix-match hit, remaining {} prompt tokens to eval\n"
    log = read(12000) + hit.format(256, 12580) + read(12580) + hit.format(12836, 500) + read(500)
    assert causes(log) == [Cause.NEW, Cause.DIVERGED, Cause.CONTINUED]
    of_lm_studio = "Cache reuse summary: {}/{} of prompt (2%), 256 prefix, 0 non-prefix\n"
    of_mlx = (
        'time=2026-08-19T19:41:24Z level=INFO source=a.go:1 msg="cache hit" total={1} matched={0} cached={0} left=9\n'
    )
    of_tabby = (
        "INFO:     Metrics (ID: a1b2): 477 tokens generated in 14.47 seconds (Queue: 0.0 s, Process: {} cached tokens "
        "and {} new tokens at 1400.22 T/s, Generate: 52.11 T/s, Context: 9 tokens)\n"
    )
    for line in (of_lm_studio, of_mlx, of_tabby):
        log = line.format(0, 12000) + line.format(11990, 12500) + line.format(256, 12600)
        assert causes(log) == [Cause.NEW, Cause.CONTINUED, Cause.UNKNOWN]
        finding = explain_request((last := requests(log)[2]), last.server)
        assert finding.notes
        assert not finding.more


def test_tabbyapi_tells_all_of_a_request_when_it_has_ended() -> None:
    at = "INFO:     Metrics (ID: a1b2): 477 tokens generated in 14.47 seconds (Queue: 0.0 s, Process: "
    log = f"{at}0 cached tokens and 12034 new tokens at 1203.4 T/s, Generate: 52.11 T/s, Context: 12034 tokens)\n"
    log += f"{at}12032 cached tokens and 0 new tokens at Indeterminate T/s, Generate: Indeterminate T/s, Con\n"
    found = requests(log)
    assert [(r.n_prompt, r.reused, r.read, r.generated) for r in found] == [
        (12034, 0, 12034, 477),
        (12032, 12032, 0, 477),
    ]
    assert found[0].prompt_ms == pytest.approx(10_000)
    assert found[0].server.name == "TabbyAPI"


def test_the_request_before_may_be_of_another_model() -> None:
    line = 'time=2026-08-19 level=DEBUG source=cache.go:104 msg="loading cache slot" id=0 cache={} prompt={} used={} '
    log = (line + "remaining=1\n").format(0, 300, 0) + (line + "remaining=550\n").format(5400, 5600, 5050)
    assert causes(log) == [Cause.NEW, Cause.DIVERGED]


def test_omlx_tells_what_the_closest_stored_sequence_had() -> None:
    at = "2026-09-20 22:21:09,739 - omlx.scheduler - INFO - [-] - "

    def restored(used: int, left: int) -> str:
        return f"{at}Prefix cache restore for 3bc2f293: source=paged cached={used} suffix={left} blocks=29\n"

    def differs(used: int, left: int, same: int, stored: int) -> str:
        shared = (
            f"closest stored sequence b200d0ee shares the first {same} of {stored} comparable tokens before diverging"
        )
        return (
            f"{at}prefix cache: request 3bc2f293 re-prefills {left} of {used + left} tokens (reused {used}); {shared}\n"
        )

    log = restored(0, 2000) + restored(118784, 301389) + differs(118784, 301389, 119464, 417792) + restored(419840, 700)
    log += differs(6144, 14900, 20000, 21000) + differs(0, 24223, 18432, 18432)
    _, *found = requests(log)
    assert [(r.n_prompt, r.reused, r.same, r.held) for r in found] == [
        (420173, 118784, 119464, 417792), (420540, 419840, 419840, -1), (21044, 6144, 20000, 21000),
        (24223, 0, 18432, 18432),
    ]  # fmt: skip
    assert causes(log)[1:] == [Cause.DIVERGED, Cause.CONTINUED, Cause.CHECKPOINT, Cause.FORCED]
    findings = [explain_request(one, one.server) for one in found]
    assert [finding.lost for finding in findings[2:]] == [13856, 18432]
    assert {cure.name for finding in findings for cure in finding.cures} == {"a stable beginning"}


def keyed(text: str, task: int, more: str = "") -> str:
    return f'INFO [  some_function] {text} | tid="12" timestamp=1771659750 id_slot=0 id_task={task} {more}\n'


def test_ik_llama_writes_keys_behind_its_messages() -> None:
    def turn(task: int, reused: int, read: int, generated: int) -> str:
        times = f"prompt eval time = {read}.00 ms / {read} tokens (\n  eval time = 9.00 ms / {generated} tokens (\n"
        n = reused + read + generated - 1
        return (
            keyed("slot is processing task", task)
            + keyed("kv cache rm [p0, end)", task, f"p0={reused}")
            + times
            + keyed("slot released", task, f"n_ctx=90112 n_past={n} n_system_tokens=0 truncated=false")
        )

    log = turn(1, 0, 2771, 41) + turn(2, 2811, 50, 10) + turn(3, 10, 2861, 41)
    found = requests(log)
    assert [(r.task, r.n_prompt, r.reused, r.read) for r in found] == [
        (1, 2771, 0, 2771), (2, 2861, 2811, 50), (3, 2871, 10, 2861),
    ]  # fmt: skip
    assert causes(log) == [Cause.NEW, Cause.CONTINUED, Cause.DIVERGED]


@pytest.mark.parametrize("more", ["n_past =  2844, n_past_prompt = 2844", "n_past0 =  2840, n_past1 =  2844, n_past_p"])
def test_ik_llama_compares_the_prompt_with_the_slot(more: str) -> None:
    at = "slot apply_checkp: id  0 | task 9 | "
    begin = keyed("slot is processing task", 9) + f"======== Cache: cache_size = 4845, {more}\n"
    restored = (
        f"{at}restored context checkpoint took  11.87 ms (pos_min = 27, pos_max = 643, n_tokens = 644, n_past = 644\n"
    )
    forced = f"{at}forcing full prompt re-processing due to lack of cache data\n"
    found = {}
    for name, middle, n in (("plain", "", 2844), ("restored", restored, 644), ("forced", forced, 0)):
        log = begin + middle + keyed("kv cache rm [p0, end)", 9, f"p0={n}")
        log += f"prompt eval time = 9.00 ms / {4900 - n} tokens (\n"
        (request,) = requests(log)
        assert (request.same, request.held, request.reused, request.n_prompt) == (2844, 4845, n, 4900)
        found[name] = explain_request(request, request.server).cause
    assert found == {"plain": Cause.DIVERGED, "restored": Cause.CHECKPOINT, "forced": Cause.FORCED}


@pytest.mark.parametrize("names", [("id_slot", "id_task"), ("slot_id", "task_id")])
def test_keys_may_be_those_of_json(names: tuple[str, str]) -> None:
    def line(message: str, task: int, **more: Any) -> str:
        head = {"function": "update_slots", "level": "INFO", "line": 9, "msg": message, "tid": "94", "timestamp": 171}
        return json.dumps({**head, **dict(zip(names, (0, task), strict=True)), **more}) + "\n"

    def turn(task: int, reused: int, read: int) -> str:
        return (
            line("slot is processing task", task)
            + line("kv cache rm [p0, end)", task, p0=reused)
            + line(f"prompt eval time     =     120.53 ms /    {read} tokens (    1.98 ms per token", task)
            + line("generation eval time =     120.53 ms /    40 runs   (    1.98 ms per token", task)
            + line("slot released", task, n_ctx=8192, n_past=reused + read + 39, truncated=False)
        )

    found = requests(turn(0, 0, 600) + turn(50, 12, 700))
    assert [(r.task, r.n_prompt, r.reused, r.read) for r in found] == [(0, 600, 0, 600), (50, 712, 12, 700)]
    assert causes(turn(0, 0, 600) + turn(50, 12, 700)) == [Cause.NEW, Cause.DIVERGED]
