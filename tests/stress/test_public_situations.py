"""The situations of twelve public threads about caches that missed, made again with llama-server: `kvdesk doctor` names
the cause that each thread found.

KVDESK_LLAMA_SERVER=…/llama-server   where it is (`serving`)
"""

import json
import os
from pathlib import Path
from typing import Any, Final

import httpx2 as httpx
import pytest

from kvdesk.cli.doctor import main
from kvdesk.engine_log.findings import Cause
from kvdesk.values import dataclass
from tests.backends.local.tiny_models import written
from tests.stress.serving import llama_server, needs_llama_server

Message = dict[str, Any]
LONG: Final = "You are a careful gardener who answers in short sentences and never guesses. " * 3
REMINDER: Final = "<system-reminder>Do not forget the list of things that are still to be done today.</system-reminder>"
TOOL: Final = {"type": "function", "function": {"name": "water", "description": LONG, "parameters": {"type": "object"}}}
TEMPLATE: Final = (
    "{% for t in tools or [] %}{{ t | tojson }}\n{% endfor %}"
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}"
    "{% endif %}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n{% if loop.index0 > ns.last %}"
    "{{ m.content }}{% else %}{{ m.content.split('</think>')[-1] }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Drops reasoning before the last question, as Qwen's does."""


def said(role: str, text: str) -> Message:
    return {"role": role, "content": text}


SYSTEM: Final = said("system", LONG)
ASKED: Final = said("user", "When do I water the tomatoes in a dry summer, and how much does each plant need?")
ANSWERED: Final = said("assistant", "Every second day, early in the morning, about two litres for each of them.")
NEXT: Final = said("user", "And the beans?")


@dataclass(frozen=True, slots=True)
class Situation:
    """`requests`: the messages of each, or a body; the last one missed, for one of `causes`."""

    thread: str
    causes: frozenset[Cause]
    requests: tuple[Any, ...]
    model: str = "llama"
    options: tuple[str, ...] = ()


def situation(thread: str, causes: set[Cause], *requests: Any, model: str = "llama", options: str = "") -> Situation:
    return Situation(thread, frozenset(causes), requests, model, tuple(options.split()))


def header(checksum: str) -> Message:
    return said("system", f"x-anthropic-billing-header: cc_version=2.1; cch={checksum}; {LONG}")


THINKING: Final = said("assistant", f"<think>{LONG}</think>I look it up.")
SITUATIONS: Final = (
    situation("anthropics/claude-code #24168", {Cause.ATTRIBUTION}, [header("1ab3f"), ASKED], [header("90c2e"), ASKED]),
    situation(
        "farion1231/cc-switch #7252",
        {Cause.ROLE},
        [SYSTEM, ASKED, ANSWERED, NEXT],
        [SYSTEM, {**ASKED, "role": "system"}, ANSWERED, NEXT],
    ),
    situation(
        "anomalyco/opencode #23595",
        {Cause.BLOCK_MOVED},
        [SYSTEM, said("user", f"{ASKED['content']}\n{REMINDER}")],
        [SYSTEM, ASKED, ANSWERED, said("user", f"{NEXT['content']}\n{REMINDER}")],
    ),
    situation(
        "zed-industries/zed #59528",
        {Cause.TOOLS},
        {"messages": [SYSTEM, ASKED], "tools": [TOOL]},
        {"messages": [SYSTEM, ASKED, ANSWERED, NEXT]},
    ),
    situation(
        "zed-industries/zed #63808",
        {Cause.EDITED},
        [said("system", f"# AGENTS.md\nUse tabs.\n{LONG}"), ASKED],
        [said("system", f"# AGENTS.md\nUse spaces.\n{LONG}"), ASKED, ANSWERED, NEXT],
    ),
    situation(
        "open-webui #6677",
        {Cause.EDITED, Cause.DIVERGED, Cause.ROLE},
        [SYSTEM, ASKED],
        [said("user", f"Write a title for this chat: {LONG} {ASKED['content']}")],
    ),
    situation(
        "can1357/oh-my-pi #3541",
        {Cause.TEMPLATE, Cause.THINKING},
        [SYSTEM, ASKED, THINKING, said("tool", "every second day")],
        [SYSTEM, ASKED, THINKING, said("tool", "every second day"), ANSWERED, NEXT],
    ),
    situation(
        "llama.cpp #21749",
        {Cause.WINDOW, Cause.FORCED},
        {"prompt": [3 + 7 * i % 90 for i in range(300)]},
        {"prompt": [3 + 7 * i % 90 for i in range(40)] + [5] * 100},
        model="iswa",
        options="--ctx-checkpoints 0 -b 32 -ub 32",
    ),
    situation(
        "llama.cpp #22746",
        {Cause.RECURRENT, Cause.FORCED},
        {"prompt": [3 + 7 * i % 90 for i in range(300)]},
        {"prompt": [3 + 7 * i % 90 for i in range(40)] + [5] * 100},
        model="granitehybrid",
    ),
    situation(
        "llama.cpp #28194",
        {Cause.NO_CHECKPOINT_IN_FILE},
        {"prompt": [3 + 7 * i % 90 for i in range(300)]},
        "save",
        "restore",
        {"prompt": [3 + 7 * i % 90 for i in range(200)] + [5] * 100},
        model="granitehybrid",
    ),
    situation(
        "open-webui/computer #238",
        {Cause.LOW_SIMILARITY, Cause.OTHER_SLOT, Cause.EDITED, Cause.DIVERGED},
        {"prompt": [3 + 7 * i % 90 for i in range(300)]},
        {"prompt": [3 + 7 * i % 90 for i in range(20)] + [5] * 400},
        options="-np 2 --cache-ram 0",
    ),
    situation(
        "ollama #14259",
        {Cause.FRONT_CUT},
        [SYSTEM, ASKED, ANSWERED, said("user", "And the roses?"), said("assistant", "Once a week."), NEXT],
        [SYSTEM, said("user", "And the roses?"), said("assistant", "Once a week."), NEXT],
    ),
)


def ask(http: httpx.Client, request: Any) -> None:
    more = {"n_predict": 2, "max_tokens": 2, "temperature": 0.0, "ignore_eos": True}
    if isinstance(request, str):
        answer = http.post(f"/slots/0?action={request}", json={"filename": "slot.bin"})
    elif "prompt" in request:
        answer = http.post("/completion", json={**request, **more})
    else:
        body = request if isinstance(request, dict) else {"messages": request}
        answer = http.post("/v1/chat/completions", json={**body, **more})
    assert answer.status_code == 200, answer.text


@pytest.mark.stress
@pytest.mark.timeout(1200)
@needs_llama_server
def test_doctor_names_what_the_threads_found(
    tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In ten of the twelve at least, each with a cure."""
    (tmp_path / "template").write_text(TEMPLATE)
    wrong = {}
    for made in SITUATIONS:
        missed = _missed(made, written(tiny_folder, made.model, text=True), tmp_path, capsys)
        if missed["cause"] not in {cause.value for cause in made.causes} or not missed["cures"]:
            wrong[made.thread] = missed["cause"]
    assert len(wrong) <= 2, wrong


def _missed(made: Situation, model: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The last request of a situation, as doctor explains it."""
    slots = ("--slot-save-path", f"{folder}{os.sep}", "--chat-template-file", str(folder / "template"))
    base = ("-c", "4096", *(() if "-np" in made.options else ("-np", "1")), "-lv", "5", *slots)
    environment = {"LLAMA_SERVER_SLOTS_DEBUG": "1", "LLAMA_SERVER_SLOTS_N_DIFF": "24"}  # as kvdesk watch sets them
    log = folder / "server.log"
    with log.open("wb") as file, llama_server(model, *base, *made.options, environment=environment, log=file) as http:
        for request in made.requests:
            ask(http, request)
        ask(http, {"prompt": [3, 4, 5]})  # a slot is printed as its last request left it
    assert main([str(log), "--json"]) == 0
    *found, _sums = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    missed: dict[str, Any] = sorted(found, key=lambda request: int(request["line"]))[-2]
    return missed
