"""Parameters that are each in their range but do not go together: a sentence, or a measurement of what was asked."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kvdesk.cache.geometry import CTX_PAD
from kvdesk.errors import ContextError, UserError
from kvdesk.experiments import EXPERIMENTS, child, experiment_by_id
from kvdesk.experiments.bench import MOST_REPEATED, Bench
from kvdesk.experiments.experiment import Experiment
from kvdesk.experiments.questions import context_size, documents, forgetting, fragmentation, kv_types, size_formula
from kvdesk.policies.load import LoadMeter
from kvdesk.protocol.experiment import Finished, Request, Sample, chosen
from kvdesk.settings import CacheType


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No round is added or waited for."""
    monkeypatch.setattr(LoadMeter, "read", lambda *_: 0.0)


def ended(
    name: str, model: Path, given: dict[str, float], text_file: Path | None = None
) -> tuple[list[Sample], Finished]:
    """What was measured, and the end. Raises UserError."""
    values = chosen(experiment_by_id(name).parameters, given, short=True)
    request = Request(name, str(model), values, short=True, text_file=str(text_file or ""))
    *told, last = child.run(request, lambda _: None)
    assert isinstance(last, Finished)
    return [event for event in told if isinstance(event, Sample)], last


def edges(experiment: Experiment) -> Iterator[dict[str, float]]:
    """The least and the most of all parameters, and the most of each one."""
    low = {p.key: p.low for p in experiment.parameters}
    high = {p.key: p.high for p in experiment.parameters}
    yield from (low, high)
    yield from (low | {key: most} for key, most in high.items())


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.id)
def test_parameters_at_their_edges_make_a_context_or_a_sentence(experiment: Experiment) -> None:
    for given in edges(experiment):
        values = chosen(experiment.parameters, given, short=True)
        assert sum(experiment.work(values)) > 0
        with suppress(UserError):  # whose sentence is tested below
            assert experiment.context(values).n_ctx >= CTX_PAD


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("six-requests", {"requests": 12, "tokens": 128}, "No context may be as large as these parameters need"),
        ("context-size", {"n_ctx": 2048, "used": 1024, "tokens": 256}, "Only one context has room for 1,280 tokens"),
        ("paged", {"cells": 256, "system": 4096}, "does not fit into 256 cells: choose more cells"),
        ("defrag-policies", {"cells": 1024, "longest": 16384}, "Yesterday's chats have 73,728 tokens together"),
        ("ring-buffer", {"window": 192, "text": 256, "message": 128}, "The text makes 2 messages, and 6 are needed"),
        ("ring-buffer", {"window": 192, "message": 64}, "with the longest of "),
    ],
)
def test_what_does_not_go_together_is_said(
    name: str, given: dict[str, float], sentence: str, talking_file: Path
) -> None:
    with pytest.raises(UserError, match=sentence):
        ended(name, talking_file, given)


def test_a_context_in_which_the_tokens_have_no_room_is_not_timed(talking_file: Path) -> None:
    """llama.cpp refuses a token without a cell, which takes no time: that is no speed of a small context."""
    given: dict[str, float] = {"n_ctx": 2048, "used": 400, "tokens": 4, "prompt": 128, "rounds": 2}
    samples, _ = ended("context-size", talking_file, given)
    assert sorted({s.x for s in samples if s.series == context_size.TOKEN}) == [512, 1024, 2048]


def test_tokens_are_timed_at_the_depth_that_is_said() -> None:
    parameters = kv_types.PARAMETERS
    for deepest, rounds in ((64, 2), (64, 15), (64, 100), (2048, 15), (32768, 100)):
        values = chosen(parameters, {"deepest": deepest, "rounds": rounds}, short=True)
        depths = kv_types._depths(values)
        assert depths[-1] == deepest
        reached = [depth + rounds + MOST_REPEATED for depth in depths]
        assert all(end <= depth for end, depth in zip(reached, depths[1:], strict=False))
        assert kv_types._cells(values) >= reached[-1]


@pytest.mark.matrix
def test_more_rounds_than_a_depth_has_tokens_are_measured(talking_file: Path) -> None:
    given: dict[str, float] = {"chunk": 64, "chunks": 1, "written": 4, "deepest": 64, "rounds": 40}
    samples, last = ended("kv-types", talking_file, given)
    assert {s.x for s in samples if s.series.endswith(kv_types.SECONDS)} == {16, 64}
    assert "at depth 64" in last.result.verdict.sentence


@pytest.mark.matrix
def test_a_text_without_an_end_of_a_sentence_makes_no_longer_document(talking_file: Path, tmp_path: Path) -> None:
    text = tmp_path / "one.txt"
    text.write_text("没有句号的一句话 without an end " * 2000, "utf-8")
    samples, _ = ended("documents", talking_file, {"document": 128, "questions": 4, "judged": 1}, text)
    assert any(s.series.endswith(documents.SAME) for s in samples)


@pytest.mark.matrix
def test_more_questions_than_the_document_has_tokens_for_have_room(talking_file: Path) -> None:
    samples, _ = ended("documents", talking_file, {"document": 128, "questions": 60, "judged": 1})
    assert len({s.x for s in samples if s.series == f"{documents.ALL}: {documents.SAME}"}) == 60


# --- what llama.cpp refuses -------------------------------------------------------------------------------------------

FRAGMENTS = {"per_filler": 32.0, "tokens": 4.0, "rounds": 2.0}
QUANTIZED_V = fragmentation.Kind("no flash attention, V q8_0", flash_attn=False, type_v=CacheType.Q8_0)


def test_attention_that_a_model_cannot_have_is_left_out(talking_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragmentation, "KINDS", (fragmentation.KINDS[0], QUANTIZED_V))
    monkeypatch.setattr(fragmentation, "N_FILLERS", 7)
    monkeypatch.setattr(fragmentation, "N_TEXT", 14)
    _, last = ended("fragmentation", talking_file, FRAGMENTS)
    assert len(last.result.tables[0].rows) == len(fragmentation.LAYOUTS)
    (refused,) = [remark for remark in last.result.remarks if "is not possible with this model" in remark]
    assert refused.startswith("no flash attention, V q8_0 is not possible with this model: V as q8_0 needs flash")
    monkeypatch.setattr(fragmentation, "KINDS", (QUANTIZED_V,))
    with pytest.raises(ContextError, match="needs flash attention"):
        ended("fragmentation", talking_file, FRAGMENTS)


def test_a_type_that_a_model_cannot_have_is_left_out_of_the_formula(
    talking_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Bench.context_of

    def without_q4(bench: Bench, settings, **options: bool):  # type: ignore[no-untyped-def]
        flash_attn = settings.type_v is not CacheType.Q4_0
        return made(bench, settings.model_copy(update={"flash_attn": flash_attn}), **options)

    monkeypatch.setattr(Bench, "context_of", without_q4)
    samples, last = ended("size-formula", talking_file, {"n_ctx": 1024})
    assert {s.x for s in samples if s.series == size_formula.ALLOCATED} == {0, 1, 2, 3, 4}
    assert len(last.result.tables[0].rows) == 5
    assert "V as q4_0 needs flash attention" in last.result.remarks[-1]


# --- what says a fact -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", " "], ids=["as it is", "with a space in front of every text"])
def test_the_token_that_says_a_fact_is_the_one_behind_its_reply(prefix: str) -> None:
    """SentencePiece models may put a space in front of what is tokenized."""
    pieces: list[str] = []

    def ids(text: str) -> list[int]:
        found: list[int] = []
        for word in (prefix + text).split(" "):
            piece = f" {word}"
            if piece not in pieces:
                pieces.append(piece)
            found.append(pieces.index(piece))
        return found

    fact = forgetting.facts(1)[0]
    assert pieces[forgetting.value_token(ids, fact)] == f" {fact.value}"
