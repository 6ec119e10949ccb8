"""What `kvdesk bench engine` does to measure, on the embedded model in small; speeds are not judged here."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.backends.local.llama import self_check
from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.model import Model
from kvdesk.cli.bench import _table
from kvdesk.errors import ContextError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.benchmarks import engine
from kvdesk.experiments.benchmarks.baselines import BareLoop
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.protocol.cache import RebuildContext
from kvdesk.settings import CachePolicy, ContextSettings

SETTINGS = ContextSettings(n_ctx=512, n_seq_max=2, n_threads=1, n_threads_batch=1)


@pytest.fixture(scope="module")
def headless(model_file: Path) -> Iterator[HeadlessEngine]:
    with Bench(model_file, SETTINGS, {}).engine(CachePolicy()) as headless:
        engine._answer_at_length(headless)
        yield headless


def bench(model: Path, rounds: int, told: list[str]) -> Bench:
    return Bench(model, SETTINGS, {"rounds": rounds}, say=told.append)


def test_a_noisy_machine_is_measured_longer(
    headless: HeadlessEngine, model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the ratio is sure, at most twice the rounds; a single round, as `--against` asks for, is measured once."""
    monkeypatch.setattr(engine, "READ", {48: 1})
    for rounds, sure, n_rounds, n_values in ((2, 0.0, 4, 8), (2, float("inf"), 2, 4), (1, 0.0, 1, 1)):
        monkeypatch.setattr(engine, "SURE", sure)
        told: list[str] = []
        speeds = engine._prefill_speeds(headless, bench(model_file, rounds, told))
        assert (len(told), len(speeds[48][0])) == (n_rounds, n_values)


def test_prompts_are_as_long_as_is_said(headless: HeadlessEngine) -> None:
    for n in (64, 512):
        prompt = engine._prompt(headless, engine.prompt_of_size(headless, n))
        assert n - 4 <= len(prompt) <= n


def test_prefill_is_measured_beside_llama_cpp_s_defaults(
    headless: HeadlessEngine, model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "READ", {48: 2, 64: 1})
    monkeypatch.setattr(engine, "SURE", float("inf"))
    told: list[str] = []
    speeds = engine._prefill_speeds(headless, bench(model_file, 2, told))
    assert {n: (len(ours), len(theirs)) for n, (ours, theirs) in speeds.items()} == {48: (8, 8), 64: (4, 4)}
    assert all(speed > 0 for pair in speeds.values() for side in pair for speed in side)
    assert [line.split(":")[0] for line in told] == ["prefill, round 1", "prefill, round 2"]
    assert headless.engine.session.runtime.context.settings == SETTINGS, "what follows has the settings as they were"


@pytest.mark.usefixtures("models_are_tried")
def test_a_context_that_both_use_is_as_new_when_the_engine_comes_second(headless: HeadlessEngine) -> None:
    requests = {48: engine.prompt_of_size(headless, 48)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "READ", {48: 1})
        patch.setattr(self_check, "BUDGET_S", 60.0)  # on a busy machine it would prove a part
        engine._prefill_in_one_context(headless, SETTINGS, requests, bare_first=True)
    audited = headless.engine.session.runtime.context.auditor.audit(whole=True)
    assert (audited.state, audited.detail, audited.rebuilt_at) == ("verified", "", 0)


def test_other_batches_than_llama_cpp_s_are_compared_with_its_own(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bare loop in the engine's context would be as slow."""
    made: list[int] = []

    def bare_loop(model: Model, settings: ContextSettings, ctx: object) -> BareLoop:
        bare = BareLoop(model, settings, ctx=ctx)
        assert (bare.ctx is ctx) == (ctx is not None)
        made.append(int(lib.llama_n_ubatch(bare.ctx)))
        return bare

    monkeypatch.setattr(engine, "BareLoop", bare_loop)
    monkeypatch.setattr(engine, "READ", {48: 1})
    requests = {48: engine.prompt_of_size(headless, 48)}
    for settings in (SETTINGS, SETTINGS.model_copy(update={"n_ubatch": 32})):
        engine._prefill_in_one_context(headless, settings, requests, bare_first=False)
    headless.do(RebuildContext(SETTINGS))
    assert made == [512, 512]


def test_answers_have_one_length_whatever_the_model_says(headless: HeadlessEngine) -> None:
    last, n_new = engine._fifth_turn(headless)
    assert last.generated_tokens == engine.SHORT.max_tokens
    assert last.prefilled_tokens == n_new


def test_weights_that_stay_as_they_are_count_once(model_file: Path) -> None:
    assert engine._repacked_bytes(model_file) == 0


def test_a_wrong_map_has_not_passed(model_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of a wrong map count for nothing, and it is said without --json too."""
    monkeypatch.setattr(Bench, "audited", property(lambda _: "mismatch: cell 3"))
    settings = SETTINGS.model_copy(update={"n_ctx": 2048})
    result = engine.run(model_file, settings, 1, lambda _: None, only=["turns"])
    assert all(figure["passed"] for figure in result["figures"].values())  # type: ignore[attr-defined]
    assert result["passed"] is False
    assert list(_table(result))[-1] == "FAIL  the map is mismatch: cell 3"


def test_a_batch_without_room_is_a_sentence(headless: HeadlessEngine) -> None:
    small = SETTINGS.model_copy(update={"n_ctx": 256})
    with (
        closing(BareLoop(session_of(headless).loaded.model, small)) as bare,
        pytest.raises(ContextError, match=r"llama_decode returned 1 in the bare loop, in a context of 256 cells\."),
    ):
        bare.decode_tok_s(range(5, 305), 2)
