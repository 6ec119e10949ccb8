"""Each experiment runs, smaller than its short form: in this process on a tiny model, most of them in every run, and in
the matrix in a child on the embedded model, whose verdict is that of `docs/questions`, and on other kinds of memory.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kvdesk import paths
from kvdesk.experiments import child, experiment_by_id
from kvdesk.experiments.process import ExperimentProcess, experiment_command
from kvdesk.experiments.questions import fragmentation, move_cost, soak
from kvdesk.experiments.raw_context import Answer, RawContext
from kvdesk.policies.load import LoadMeter
from kvdesk.protocol.experiment import Failed, Finished, Request, Sample, chosen
from tests.backends.local.talking import write_talking
from tests.places import SHARED_MODELS

pytestmark = pytest.mark.timeout(300)  # a child that measures: half a minute here is minutes on a slow, busy machine
SMALL: dict[str, tuple[dict[str, float], str]] = {
    "positions": ({}, "any start; no gaps; no going back; nothing stacks"),
    "seq-ids": ({"n_seq_max": 4, "requests": 3, "prompt": 20, "tokens": 1, "rounds": 2}, "; refused"),
    "seq-rm-memory": ({"n_ctx": 1024, "fill": 128, "rounds": 1}, "frees cells, keeps memory"),
    "size-formula": ({"n_ctx": 1024}, "right with K/V heads; the estimate is right"),
    "fragmentation": ({"per_filler": 32, "tokens": 4, "rounds": 2}, "compaction heals; a rebuild heals"),
    "kv-types": ({"chunk": 64, "chunks": 1, "written": 4, "deepest": 64, "rounds": 2}, "matters more"),
    "requantization": ({"text": 64, "judged": 16, "rounds": 1}, "q8_0 "),
    "forgetting": ({"facts": 4}, "removed is forgotten; "),
    "eviction": ({"facts": 48, "questions": 2}, "least is lost with "),
    "threads": ({"tokens": 4, "prompt": 32, "rounds": 2}, "beside a busy process"),
    "context-size": ({"n_ctx": 2048, "used": 16, "tokens": 4, "prompt": 128, "rounds": 2}, "a small n_batch costs"),
    "rebuild": ({"text": 64, "others": 256, "tokens": 4, "rounds": 2}, "a rebuild"),
    "batching": ({"text": 16, "tokens": 2, "longest": 16, "cut": 16, "prompt": 32, "rounds": 2}, "at once write"),
    "drafts": ({"depth": 16, "tokens": 8, "answers": 1, "written": 8, "rounds": 2}, "exact answers are the same"),
    "soak": ({"minutes": 0.1, "n_ctx": 512, "looks": 4, "tokens": 4}, "with time"),
    "move-cost": ({"cells": 256, "run": 4, "rounds": 2}, "one conversation alone is"),
    "no-cache": ({"longest": 32, "rounds": 2}, "the cache is faster"),
    "prefix-sharing": ({"chats": 3, "forks": 1, "system": 48, "prompt": 4, "rounds": 2}, "saves time"),
    "six-requests": ({"requests": 3, "tokens": 2, "prompt": 1, "rounds": 2}, "the record sent again"),
    "documents": ({"document": 128, "questions": 4, "judged": 1}, "hold"),
    "paged": ({"turns": 5, "cells": 256, "chats": 2, "system": 8, "prompt": 4, "answer": 3, "rounds": 2}, "waste is"),
    "defrag-policies": ({"turns": 4, "yesterday": 2, "chats": 4, "answer": 2, "rounds": 2}, "in pauses nobody waits"),
}
TRAINED: dict[str, tuple[dict[str, float], str]] = {
    "forgetting": ({"facts": 4}, "removed is half forgotten; an erratum helps"),
    "six-requests": ({"requests": 3, "tokens": 3, "prompt": 4, "rounds": 2}, "the record sent again"),
    "fragmentation": ({"per_filler": 32, "tokens": 4, "rounds": 2}, "; a rebuild "),
}
"""On the embedded model, where they are others: there the requests must take long enough to be timed. Two rounds beside
other tests do not say what heals (`test_time_conclusions` does).
"""
LESS = {"soak": {"minutes": 0.01}}
"""Than a person may ask for."""
MEASURED = frozenset(
    {
        "fragmentation",
        "kv-types",
        "requantization",
        "threads",
        "context-size",
        "rebuild",
        "batching",
        "soak",
        "move-cost",
        "no-cache",
    }
    | {"prefix-sharing", "documents", "paged", "defrag-policies", "seq-rm-memory", "size-formula"}
)
"""Whose verdict is about speed or bytes, which are others for a tiny model."""
LONGEST = frozenset(
    {"threads", "eviction", "drafts", "soak", "batching", "fragmentation", "kv-types", "documents", "move-cost"}
)
"""Of those that take more than a second, all but the first question: in the matrix."""


@pytest.fixture
def smallest(monkeypatch: pytest.MonkeyPatch) -> None:
    """No round is waited for, and none is added, because of what runs beside; caches of the processor stay warm; fewer
    sequences and kinds of attention.
    """
    monkeypatch.setattr(LoadMeter, "read", lambda *_: 0.0)
    monkeypatch.setattr(fragmentation, "KINDS", fragmentation.KINDS[::2])
    monkeypatch.setattr(fragmentation, "N_FILLERS", 15)
    monkeypatch.setattr(fragmentation, "N_TEXT", 30)
    monkeypatch.setattr(move_cost, "others_work", lambda: None)
    monkeypatch.setattr(move_cost, "REPEATED", 1)
    monkeypatch.setattr(soak, "COPY_BYTES", 2**20)


@pytest.fixture
def a_second_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """What llama.cpp decodes takes as many seconds as it has tokens, whatever the threads: a verdict is about what was
    sent.
    """
    decode = RawContext.decode

    def counted(context: RawContext, tokens: Sequence[int], *args: Any, **kwargs: Any) -> Answer:
        return decode(context, tokens, *args, **kwargs)._replace(seconds=float(len(tokens)))

    monkeypatch.setattr(RawContext, "decode", counted)
    monkeypatch.setattr(RawContext, "set_threads", lambda *_: None)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.matrix) if n in LONGEST else n for n in SMALL])
@pytest.mark.usefixtures("smallest")
def test_it_runs_to_a_verdict(name: str, talking_file: Path, request: pytest.FixtureRequest) -> None:
    if name == "six-requests":
        request.getfixturevalue("a_second_a_token")
    given, said = SMALL[name]
    values = {**chosen(experiment_by_id(name).parameters, given, short=True), **LESS.get(name, {})}
    *others, last = child.run(Request(name, str(talking_file), values, short=True), lambda _: None)
    assert isinstance(last, Finished)
    assert said in last.result.verdict.key or (name in MEASURED and last.result.verdict.key)
    assert any(isinstance(event, Sample) for event in others)
    assert last.result.figures or last.result.tables


def test_only_what_later_cells_have_seen_is_remembered(talking_file: Path, model_file: Path, tmp_path: Path) -> None:
    """With one layer a cell is made of its own token alone: what is removed is forgotten but for rounding."""
    one_layer = write_talking(tmp_path / "one.gguf", model_file, n_layer=1)
    values = chosen(experiment_by_id("forgetting").parameters, {"facts": 2}, short=True)
    ghosts = []
    for model in (one_layer, talking_file):
        *_, last = child.run(Request("forgetting", str(model), values, short=True), lambda _: None)
        assert isinstance(last, Finished)
        ghosts.append(last.result.figures[0].value)
    forgotten, remembered = ghosts
    assert 0 <= forgotten < 1e-4 < remembered


def ended(name: str, model: str, given: dict[str, float]) -> Finished | Failed:
    values = chosen(experiment_by_id(name).parameters, given, short=True)
    with ExperimentProcess(experiment_command(Request(name, model, values, short=True))) as process:
        *_, last = process.events()
    assert isinstance(last, Finished | Failed)
    return last


@pytest.mark.matrix
@pytest.mark.parametrize("name", SMALL)
def test_it_runs_on_the_embedded_model(name: str) -> None:
    given, said = TRAINED.get(name, SMALL[name])
    last = ended(name, str(paths.embedded_model()), dict(given))
    assert isinstance(last, Finished), last
    assert said in last.result.verdict.key


@pytest.mark.matrix
def test_what_was_asked_before_a_removal_remembers_more() -> None:
    """The same removals come out the other way if later cells have seen what is removed."""
    ghosts = []
    for asked_before in (0, 1):
        last = ended("forgetting", str(paths.embedded_model()), {"facts": 8, "asked_before": asked_before})
        assert isinstance(last, Finished), last
        ghosts.append(last.result.figures[0])
    after, before = ghosts
    assert after.high is not None
    assert before.low is not None
    assert after.high < before.low
    assert last.result.verdict.key.startswith("removed is not forgotten")


@pytest.mark.matrix
@pytest.mark.skipif(not SHARED_MODELS.is_dir(), reason="the models beside the project are not there")
@pytest.mark.parametrize(
    ("name", "model", "said"),
    [
        ("seq-rm-memory", "mamba-dense", "This model is recurrent"),
        ("kv-types", "mamba-dense", "This model is recurrent"),
        ("kv-types", "qwen2-dense", "matters more"),
        ("kv-types", "gemma3-dense", "matters more"),
        ("rebuild", "mamba-dense", "This model is recurrent"),
        ("rebuild", "lfm2-dense", "a rebuild"),  # parts of its sequences cannot be removed
        ("move-cost", "mamba-dense", "This model is recurrent"),
        ("move-cost", "gemma3-dense", "This model's cache is not one of plain attention"),
        ("move-cost", "gpt2-dense", "This model has learned its positions, 0 to 255"),
        ("ring-buffer", "llama-dense", "the codes tell nothing; "),  # its weights are random
        ("ring-buffer", "mamba-dense", "This model is recurrent"),
        ("ring-buffer", "gemma3-dense", "This model's cache is not one of plain attention"),
        ("ring-buffer", "qwen2vl-dense", "Tokens have several positions each (M-RoPE)"),
        ("context-size", "mamba-dense", "a larger context is"),
        ("batching", "gemma3-dense", "at once write"),
        ("drafts", "mamba-dense", "This model is recurrent"),
        ("drafts", "lfm2-dense", "which cannot give back what was guessed wrong"),
        ("threads", "mamba-dense", "beside a busy process"),
        ("prefix-sharing", "mamba-dense", "This model is recurrent"),
        ("prefix-sharing", "lfm2-dense", "of which no prefix can be shared"),
        ("prefix-sharing", "gemma3-dense", "as many tokens as in SGLang's tree: yes"),
        ("paged", "lfm2-dense", "of which no prefix can be shared"),
        ("paged", "gemma3-dense", "the tree computes"),
        ("defrag-policies", "gemma3-dense", "This model's cache is not one of plain attention"),
        ("defrag-policies", "qwen2-dense", "in pauses nobody waits"),
        ("positions", "mamba-dense", "nothing stacks"),
        ("positions", "qwen2vl-dense", "gaps are taken"),  # M-RoPE
        ("positions", "gpt2-dense", "This model has learned its positions, 0 to 255, and the experiment needs 1,002"),
        ("seq-rm-memory", "gpt2-dense", "and the experiment needs 256"),
        ("size-formula", "gpt2-dense", "the formula is right"),
        ("size-formula", "lfm2-dense", "neither; the estimate is right"),
        ("size-formula", "gemma3-dense", "the estimate is right"),
    ],
)
def test_another_kind_of_memory_gets_another_answer(name: str, model: str, said: str) -> None:
    last = ended(name, str(SHARED_MODELS / f"{model}.gguf"), {})
    assert said in (last.sentence if isinstance(last, Failed) else last.result.verdict.key)
