"""`kvdesk doctor` on logs of every program: the cause of each request, what it cost, and the cure by name."""

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from kvdesk.cli.doctor import main
from kvdesk.engine_log.lines import read_lines
from kvdesk.engine_log.live import LiveLog
from kvdesk.errors import UserError

LOGS = Path(__file__).parent / "logs"


def doctor(file: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    """The objects of --json: requests, then the sums."""
    assert main([str(file), "--json", *options]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("name", "causes", "lost", "cure"),
    [
        ("hybrid-2026-02.log", ["new conversation", "recurrent state"], 500, "--ctx-checkpoints"),
        ("window-2026-10.log", ["new conversation", "continued", "window lost"], 300, "--swa-full"),
        ("recurrent-2026-11.log", ["new conversation", "continued", "recurrent state"], 60, "--ctx-checkpoints"),
        ("hybrid-2026-11.log", ["new conversation", "recurrent state", "recurrent state"], 210, "--ctx-checkpoints"),
        ("slot-file-2026-11.log", ["no checkpoint in slot file"], 140, "one request after a restore"),
        ("default-2026-11.log", ["new conversation", "continued", "full re-processing"], 60, "--ctx-checkpoints"),
        ("low-similarity-2026-11.log", ["new conversation", "low similarity", "continued"], 50, "--slot-prompt"),
        (
            "moved-2026-11.log",
            ["new conversation", "checkpoint restored", "prompt changed", "checkpoint restored"],
            28 + 311 + 28,
            "a stable beginning",
        ),
        ("shift-2026-11.log", ["new conversation", "context shift"], 140, "no --context-shift"),
        ("too-long-2026-11.log", ["context full", "new conversation"], 0, "-c N"),
        (
            "text-2026-11.log",
            ["new conversation", "continued", "prompt changed", *["attribution header"] * 2, "cache_prompt off"],
            45 + 60 + 64 + 88,
            "CLAUDE_CODE_ATTRIBUTION_HEADER=0",
        ),
        ("cache-reuse-2026-11.log", ["new conversation", "chunks reused"], 0, ""),
        ("journal-2026-05.log", ["continued"], 0, ""),
        ("lru-2026-08.log", ["low similarity", "new conversation"], 300, "--slot-prompt-similarity"),
        ("default-level.md", ["full re-processing"], 4780, "--swa-full"),
        ("lmstudio-2026.log", ["window lost"], 1200, "no --cache-reuse"),
        ("lmstudio-default-2026-06.log", ["full re-processing"], 1271, "no --cache-reuse"),
        ("ollama-2026-08.log", ["new conversation", "recurrent state"], 9405, "LLAMA_ARG_CTX_CHECKPOINTS=N"),
        ("lmstudio-2025.log", ["new conversation", "regenerated"], 0, ""),
        ("llama-cpp-python.log", ["new conversation", "continued", "recurrent state"], 200, "llama-server instead"),
        (
            "ollama-runner.log",
            ["new conversation", "continued", "diverged", "prompt truncated"],
            756 + 896,
            "OLLAMA_CONTEXT_LENGTH",
        ),
    ],
)
def test_causes_costs_and_cures(
    name: str, causes: list[str], lost: int, cure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    *requests, sums = doctor(LOGS / name, capsys)
    assert [request["cause"] for request in requests] == causes
    assert sum(request["lost_tokens"] for request in requests) == lost
    assert sum(miss["lost_tokens"] for miss in sums["misses"].values()) == lost
    assert cure in " ".join(cure for request in requests for cure in request["cures"])


def test_the_hidden_sentence_is_derived_from_the_default_log(capsys: pytest.CaptureFixture[str]) -> None:
    request, sums = doctor(LOGS / "default-level.md", capsys)
    assert (request["prompt_tokens"], request["reused_tokens"], request["read_tokens"]) == (5000, 0, 5000)
    assert request["is_rounded"]
    assert request["lost_s"] == pytest.approx(9.56)
    assert "-lv 4" in request["more"]
    assert sums["log_level"] == 3


def test_prompts_that_the_server_prints_name_the_message(capsys: pytest.CaptureFixture[str]) -> None:
    """At level 5 each slot is printed as its last request left it."""
    *requests, sums = doctor(LOGS / "prompts-2026-11.log", capsys)
    assert [request["cause"] for request in requests][2:5] == [
        "prompt changed", "attribution header", "attribution header"
    ]  # fmt: skip
    assert requests[2]["sentence"].startswith("Message 1 changed.")
    assert sums["log_level"] == 5


def test_a_changed_beginning_is_found_in_another_slot_and_requests_come_in_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The server takes the oldest slot where no prompt begins alike: for it the conversation is a new one."""
    *requests, _ = doctor(LOGS / "moved-2026-11.log", capsys)
    assert [request["task"] for request in requests] == [0, 27, 56, 86]
    moved = requests[2]
    assert (moved["slot"], moved["reused_tokens"]) == (0, 0)
    assert moved["sentence"].startswith("Message 1 changed. Usual cause: the system prompt contains the date")


def test_a_slot_taken_by_age_is_no_continuation_at_the_default_level(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """llama-server prints similarities of slots that it takes for them alone."""
    head, times = "slot a: id  0 | task ", "prompt eval time = 10.00 ms / "
    log = tmp_path / "a.log"
    log.write_text(
        "slot b: id  0 | task -1 | selected slot by LRU, t_last = -1\n"
        f"{head}1 | processing task\n{head}1 | {times}274 tokens\n{head}1 | eval time = 5 ms / 16 tokens\n"
        f"{head}1 | stop processing: n_tokens = 289, truncated = 0\n"
        "slot b: id  0 | task -1 | selected slot by LRU, t_last = 9\n"
        f"{head}2 | processing task\n{head}2 | {times}293 tokens\n{head}2 | eval time = 5 ms / 16 tokens\n"
        f"{head}2 | stop processing: n_tokens = 318, truncated = 0\n"
        "slot b: id  1 | task -1 | selected slot by LRU, t_last = -1\n"
        f"{head}3 | processing task\n{head}3 | {times}333 tokens\n".replace("id  0", "id  1")
    )
    _, changed, moved, sums = doctor(log, capsys)
    assert (changed["reused_tokens"], changed["cause"], changed["lost_tokens"]) == (10, "diverged", 279)
    assert moved["cause"] == "new conversation"
    assert moved["notes"] == ["No slot begins like it: another conversation, or something changed near its beginning."]
    assert sums["more"]


def test_a_prompt_that_no_text_explains_shows_what_another_slot_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a.log"
    text = (LOGS / "moved-2026-11.log").read_text()
    log.write_text("\n".join(line for line in text.splitlines() if "launching slot" not in line))
    *requests, _ = doctor(log, capsys)
    assert requests[2]["cause"] == "new conversation"
    assert requests[2]["notes"][0].startswith("Slot 1 has the same first tokens (16), and others after them")


def test_text_says_cause_cost_and_cure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(LOGS / "hybrid-2026-02.log"), "--misses"]) == 0
    out = capsys.readouterr().out
    assert "ok " not in out
    assert "MISS  line 16 · slot 0, task 42 · 1,000 tokens · 0 reused · 1,000 read (4.00 s) · recurrent state" in out
    assert "Read again: 500 tokens, 2.00 s" in out
    assert "none of its checkpoints (1) is before the first difference (token 500)" in out
    assert "→ --ctx-checkpoints N" in out
    assert "2 requests, 1,900 tokens in prompts, 0 % reused. 1 miss: 500 tokens read again, 2.0 s." in out


@pytest.mark.parametrize(
    ("name", "program", "more"),
    [
        ("ollama-2026-08.log", "llama-server in Ollama", ""),
        ("ollama-runner.log", "Ollama", ""),
        ("lmstudio-default-2026-06.log", "llama-server in LM Studio", "LM Studio's developer log, verbose"),
        ("hybrid-2026-11.log", "llama-server", ""),
    ],
)
def test_the_program_is_named_with_its_own_cures_and_logs(
    name: str, program: str, more: str, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, sums = doctor(LOGS / name, capsys)
    assert (sums["program"], sums["more"]) == (program, more)
    cures = " ".join(cure for miss in sums["misses"].values() for cure in miss["cures"])
    assert ("--" in cures) != ("Ollama" in program)


def test_what_a_fragment_does_not_say_is_not_given_as_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "fragment.md"
    log.write_text(
        "It happens each time:\n"
        "slot a: id  0 | task 730 | n_past = 819, slot.prompt.tokens.size() = 6258, seq_id = 0, pos_min = 6257\n"
        "slot a: id  0 | task 730 | forcing full prompt re-processing due to lack of cache data\n"
    )
    assert main([str(log)]) == 0
    out = capsys.readouterr().out
    assert "Read again: 819 tokens\n" in out
    assert "1 request. 1 miss: 819 tokens read again.\n" in out
    assert " 0.0" not in out


def test_times_after_the_end_of_a_request_are_no_other_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a.log"
    log.write_text(
        "slot launch_slot_: id  0 | task 35 | processing task\n"
        "slot update_slots: id  0 | task 35 | kv cache rm [185, end)\n"
        "slot      release: id  0 | task 35 | stop processing: n_past = 434, truncated = 0\n"
        "slot print_timing: id  0 | task 35 | \n"
        "prompt eval time =     182.78 ms /   237 tokens (    0.77 ms per token,  1296.63 tokens per second)\n"
        "       eval time =     342.29 ms /    13 tokens (   26.33 ms per token,    37.98 tokens per second)\n"
    )
    (request, _) = doctor(log, capsys)
    assert request["task"] == 35


def test_a_log_on_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with (LOGS / "hybrid-2026-02.log").open() as log:
        monkeypatch.setattr(sys, "stdin", log)
        assert main(["-"]) == 0
    assert "recurrent state" in capsys.readouterr().out


def test_what_is_no_log_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Dear diary,\n")
    with pytest.raises(UserError, match="contains no request"):
        main([str(tmp_path / "a.txt")])
    with pytest.raises(UserError, match="cannot be read"):
        main([str(tmp_path / "none")])


def test_control_characters_of_a_log_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a.log"
    log.write_text(
        "slot launch_slot_: id  0 | task 1 | processing task, is_child = 0\n"
        "srv    send_error: task id = 1, error: request \x07\x1b]0;owned\x07 exceeds the available context size\n"
    )
    assert main([str(log)]) == 0
    out = capsys.readouterr().out
    assert "did not fit" in out
    assert not {"\x07", "\x1b"} & set(out)


def test_logs_cut_mixed_and_broken_raise_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(1)
    texts = [path.read_bytes() for path in sorted(LOGS.iterdir())]
    log = tmp_path / "a.log"
    for _ in range(60):
        pieces = [text[rng.randrange(len(text)) :][: rng.randrange(4000)] for text in rng.choices(texts, k=6)]
        broken = bytearray(b"".join(pieces))
        for _ in range(rng.randrange(40)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        lines = broken.split(b"\n")
        rng.shuffle(lines)
        log.write_bytes(b"\n".join(lines))
        try:
            *requests, sums = doctor(log, capsys)
        except UserError:
            continue
        assert sums["requests"] == len(requests)
        live = LiveLog(lambda _: None)
        for line in read_lines([log.read_bytes()]):
            live.feed(line)
        live.close()
        assert live.totals.score.requests == len(requests)


def test_shares_are_of_the_requests_whose_numbers_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "a.log"
    at = "slot a: id  0 | task"
    log.write_text(
        f"{at} 1 | processing task\n{at} 2 | processing task\n{at} 2 | new prompt, n_ctx_slot = 9, n_keep = 0, "
        f"task.n_tokens = 400\n{at} 2 | cached n_tokens = 100, memory_seq_rm [100, end)\n"
    )
    assert main([str(log)]) == 0
    said = "2 requests, 400 tokens in prompts, 25 % reused in the 1 whose numbers the log contains."
    assert said in capsys.readouterr().out
    *_, sums = doctor(log, capsys)
    assert (sums["requests"], sums["requests_with_numbers"]) == (2, 1)


def test_what_a_client_that_went_did_not_wait_for_is_in_no_sum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a.log"
    at = "slot a: id  0 | task 2 |"
    log.write_text(
        f"{at} processing task\n{at} new prompt, n_ctx_slot = 9, n_keep = 0, task.n_tokens = 4000\n"
        f"{at} n_past = 1000, slot.prompt.tokens.size() = 3000, seq_id = 0, pos_min = 0\n"
        f"{at} cached n_tokens = 1000, memory_seq_rm [1000, end)\nsrv stop: cancel task, id_task = 2\n"
        f"{at} stop processing: n_tokens = 1500, truncated = 0\n"
    )
    request, sums = doctor(log, capsys)
    assert (request["read_tokens"], request["lost_tokens"]) == (500, 500)
    assert (sums["prompt_tokens"], sums["reused_tokens"]) == (1500, 1000)


def test_a_log_that_was_rotated_and_packed_is_unpacked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (LOGS / "hybrid-2026-11.log").read_bytes()
    log = tmp_path / "a.log.2.gz"
    log.write_bytes(gzip.compress(text))
    assert doctor(log, capsys) == doctor(LOGS / "hybrid-2026-11.log", capsys)
    log.write_bytes(gzip.compress(text)[:-9])
    assert len(doctor(log, capsys)) > 2
    damaged = bytearray(gzip.compress(text))
    damaged[20:200] = b"x" * 180
    log.write_bytes(damaged)
    with pytest.raises(UserError, match="cannot be read"):
        main([str(log)])
