"""vLLM, SGLang and /metrics: numbers of all requests together, and what of them is a cause."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvdesk.cli.doctor import main
from kvdesk.engine_log.events import Event
from kvdesk.engine_log.pools import Pool
from kvdesk.engine_log.sentences import Kind
from kvdesk.errors import UserError

REPORT = (
    "(APIServer pid=11) INFO 03-17 15:38:10 [loggers.py:259] Engine {engine:03}: Avg prompt throughput: {prompt} "
    "tokens/s, Avg generation throughput: 18.1 tokens/s, Running: 8 reqs, Waiting: {waiting} reqs, {more}GPU KV cache "
    "usage: {usage}%, Prefix cache hit rate: {hit}%\n"
)
OLD = (
    "INFO 05-11 12:04:19 metrics.py:486] Avg prompt throughput: 13.2 tokens/s, Avg generation throughput: 13.0 "
    "tokens/s, Running: 1 reqs, Swapped: 0 reqs, Pending: 2 reqs, GPU KV cache usage: 99.1%, CPU KV cache usage: 0%.\n"
)
PREEMPTED = (
    " Sequence group 63 is preempted by PreemptionMode.{mode} mode because there is not enough KV cache space. "
    "total_num_cumulative_preemption={n}\n"
)
PREFILL = "[2025-09-03 18:33:18 TP0] Prefill batch{dot} #new-seq: 2, #new-token: {read}, #cached-token: {cached}, "
RETRACT = "[21:49:33 TP{rank}] {what} #retracted_reqs: 2, #new_token_ratio: 0.1474 -> 0.1845\n"


def report(**numbers: Any) -> str:
    known: dict[str, Any] = {"engine": 0, "prompt": 36.1, "waiting": 0, "more": "", "usage": 9.0, "hit": 0.0}
    return REPORT.format(**known | numbers)


FULL = "token usage: 0.98, #running-req: 3, #queue-req: 2\n"


def prefill(read: int, cached: int, dot: str = ".", rest: str = FULL) -> str:
    return PREFILL.format(read=read, cached=cached, dot=dot) + rest


def sums(log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The totals of --json, which are all there is."""
    (tmp_path / "a.log").write_text(log)
    assert main([str(tmp_path / "a.log"), "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    return dict(json.loads(line))


@pytest.mark.parametrize(
    ("log", "program", "causes", "text"),
    [
        (report(), "vLLM", ["nothing reused"], "has recurrent states and kept none of them. Or prefix caching is off."),
        (report(hit=42.0), "vLLM", [], ""),
        (report(prompt=0.0), "vLLM", [], ""),
        (report() + "INFO config.py:1] Setting attention block size to 528 tokens to ensure\n", "vLLM",
         ["nothing reused"], "whole blocks of 528 tokens are reused, and only if"),
        ("INFO non-default args: {'enable_prefix_caching': False}\n" + report(), "vLLM", ["prefix cache off"], ""),
        ("config: x, enable_prefix_caching=True, y\n" + report(), "vLLM", ["nothing reused"], "kept none of them."),
        (OLD + "INFO 05-11 12:04:19 metrics.py:502] Prefix cache hit rate: GPU: 0.00%, CPU: 0.00%\n", "vLLM",
         ["cache full", "nothing reused"], "99.1 %"),
        (report(hit=1, more="Preemptions: 3, ") * 2, "vLLM", ["preempted"], "computed again: 6 or more"),
        (PREEMPTED.format(mode="RECOMPUTE", n=1) + PREEMPTED.format(mode="RECOMPUTE", n=51), "vLLM", ["preempted"],
         "computed again: 51 or more"),
        (PREEMPTED.format(mode="SWAP", n=1), "vLLM", ["preempted"], "moved to another memory"),
        (("ValueError: The model's max seq len (8192) is larger than the maximum number of tokens that can be stored "
         "in KV cache (6048). Try\n"), "vLLM", ["cache too small"], "room for 6,048"),
        (("To serve at least one request with the models's max seq len (131072), (4.00 GiB KV cache is needed, which "
         "is larger than the available KV cache memory (0.65 GiB). Based on the available memory, the estimated "
         "maximum model length is 21440.\n"), "vLLM", ["cache too small"], "room for 21,440"),
        (report().replace("\n", ", External prefix cache hit rate: 96.9%\n"), "vLLM", [], ""),
        ('level=WARN source=runner.go:129 msg="truncating input prompt" limit=2048 prompt=16101 keep=4 new=2048\n',
         "Ollama", ["prompt truncated"], "The longest had 16,101 tokens."),
        ('INFO [update_slots] input truncated | n_ctx=2048 n_erase=1090 tid="130623106379776" timestamp=1721345155\n',
         "llama-server", ["prompt truncated"], "silently: 1."),
        ("W srv    load_model: cache_reuse is not supported by multimodal, it will be disabled\n", "llama-server",
         ["cache reuse off"], "(multimodal)"),
        (prefill(100, 0), "SGLang", ["cache full", "nothing reused"], "98.0 %"),
        (prefill(100, 50, rest=""), "SGLang", [], ""),
        (prefill(43008, 0, ",", "full token usage: 0.14, mamba usage: 0.20, #running-req: 1, #queue-req: 97\n"),
         "SGLang", ["nothing reused"], ""),
        ("server_args=ServerArgs(x=1, disable_radix_cache=True, y=2)\n" + prefill(9, 0, rest=""), "SGLang",
         ["prefix cache off"], ""),
        ("".join(RETRACT.format(rank=rank, what="KV cache pool is full. Retract requests.") for rank in range(4)),
         "SGLang", ["preempted"], "computed again: 2 or more"),
        (RETRACT.format(rank=13, what="Decode out of memory happened."), "SGLang", ["preempted"], ""),
        ("> update_slots : failed to find free space in the KV cache, retrying with smaller n_batch = 512\n" * 3,
         "llama-server", ["no free cells"], "in the cache: 3."),
        ("llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache\n",
         "llama-server", ["cache too small"], ""),
    ],
)  # fmt: skip
def test_numbers_of_all_requests_have_causes(
    log: str, program: str, causes: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = sums(log, tmp_path, capsys)
    assert (found["program"], [one["cause"] for one in found["findings"]]) == (program, causes)
    assert text in " ".join(one["sentence"] for one in found["findings"])


def test_the_most_of_each_number_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = report(hit=20.0, usage=30.9, waiting=90) + report(engine=1, hit=40.0, usage=50.0)
    found = sums(log, tmp_path, capsys)
    names = ("prefix_cache_hit_percent", "most_cache_percent", "most_running", "most_waiting", "preempted")
    assert [found[name] for name in names] == [30.0, 50.0, 8, 90, 0]
    assert main([str(tmp_path / "a.log")]) == 0
    assert "up to 90 waiting (while 30.9 % of the cache or less was in use)" in capsys.readouterr().out


def test_a_setting_alone_is_no_report(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("enable_prefix_caching=True\n")
    with pytest.raises(UserError, match="contains no request"):
        main([str(tmp_path / "a.log")])


def test_cures_have_the_names_of_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (vllm,) = sums(report(hit=1, more="Preemptions: 3, "), tmp_path, capsys)["findings"]
    (sglang,) = sums(RETRACT.format(rank=0, what="KV cache pool is full."), tmp_path, capsys)["findings"]
    assert vllm["cures"] == ["--gpu-memory-utilization N", "--max-num-seqs N", "--max-model-len N"]
    assert sglang["cures"][0] == "--mem-fraction-static N"
    assert sglang["cures"][-1] == "--schedule-conservativeness 1.3"


@pytest.mark.parametrize(
    ("text", "program", "hits"),
    [
        ("vllm:prefix_cache_queries_total  1131\nvllm:prefix_cache_hits_total     0\n", "vLLM", 0.0),
        (('vllm:prefix_cache_queries_total{engine="0"} 800.0\nvllm:prefix_cache_queries_total{engine="1"} 2e2\n'
         'vllm:prefix_cache_hits_total{engine="0"} 600.0\n'), "vLLM", 60.0),
        ("sglang:cache_hit_rate 0.5\n", "SGLang", 50.0),
        ("llamacpp:prompt_tokens_total 250\nllamacpp:prompt_tokens_cached_total 750\n", "llama-server", 75.0),
    ],
)  # fmt: skip
def test_metrics_are_read_too(
    text: str, program: str, hits: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = sums("# HELP x\n" + text + "other:metric 9\n", tmp_path, capsys)
    assert (found["program"], found["prefix_cache_hit_percent"]) == (program, hits)
    assert len(found["findings"]) == (not hits)


def test_metrics_of_endless_engines_stay_bounded() -> None:
    pool = Pool()
    for i in range(600):
        pool.learn(Event(Kind.METRIC, i, values={"name": "vllm:num_requests_running", "labels": f"{i}", "n": "1"}))
    assert (len(pool.samples), pool.running) == (500, 500)
