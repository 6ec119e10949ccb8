"""The figures by which speed is judged: every part has rows that exist, and its result is held against its bars."""

from pathlib import Path

import pytest

from kvdesk.experiments.benchmarks.cache.run import SCENARIOS
from tests.benchmarks.peers import two_servers
from tests.benchmarks.peers.judged import ALIKE, BACK, PARTS, Part, command, main, verdicts
from tests.benchmarks.peers.rows import ROWS, TURN_NAMES

PEER = "llama-server"


def line(what: str, value: float, low: float, high: float) -> dict[str, object]:
    return {"what": what, "peers": {PEER: {"times_as_fast": value, "low": low, "high": high}}}


def test_every_part_has_rows_that_exist_and_bars_of_them() -> None:
    known = {"peers": {row.id for row in ROWS}, "cache": set(SCENARIOS), "servers": {r.id for r in two_servers.ROWS}}
    for part in PARTS.values():
        assert set(part.rows) <= known[part.what]
        assert set(part.bars) <= set(part.rows)
        assert bool(part.peers) == (part.what == "peers")


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_a_command_on_its_model(name: str, tmp_path: Path) -> None:
    for file, size in (("small", 1), ("middle", 2), ("large", 3)):
        (tmp_path / f"{file}.gguf").write_bytes(b"x" * size)
    asked = command(PARTS[name], tmp_path, Path("llama-server"))
    expected = {"largest": "large", "second": "middle"}.get(PARTS[name].model, "SmolLM2-135M-Instruct.Q4_1")
    assert Path(asked[asked.index("--model") + 1]).stem == expected
    assert asked[asked.index("--rounds") + 1] == str(PARTS[name].rounds)
    assert "--json" in asked


def test_an_interval_or_a_median_is_held_against_the_bar() -> None:
    part = Part("peers", "largest", 5, 1, ("turns", "return"), (PEER,), bars={"turns": ALIKE, "return": BACK})
    (back,) = next(row for row in ROWS if row.id == "return").names
    rows = [
        line(TURN_NAMES[0], 0.5, 0.4, 0.6),
        line(TURN_NAMES[1], 0.9, 0.8, 0.99),
        line(TURN_NAMES[2], 0.9, 0.8, 0.97),
        line(back, 29.0, 20.0, 40.0),
        {"what": TURN_NAMES[3], "peers": {PEER: {"problem": "It is gone."}}},
    ]
    told = list(verdicts(part, {"rows": rows}))
    assert [verdict.passed for verdict in told] == [True, True, False, False, False]
    assert "no bar" in told[0].found
    assert str(told[2]) == "FAIL  first token of turn 3, over llama-server: 0.9 (0.8 to 0.97), at least 0.98"


def test_scenarios_have_their_own_bars() -> None:
    figures = {"beside.gap": {"value": 300.0, "bar": 400.0, "at_least": False, "passed": True}}
    scenarios = {"beside": {"audit": "verified"}, "verify": {"audit": "none", "problem": "It ended."}}
    told = list(verdicts(Part("cache", "second", 1, 1), {"figures": figures, "scenarios": scenarios}))
    assert [(verdict.found, verdict.passed) for verdict in told] == [("300 (at most 400)", True), ("It ended.", False)]


def test_a_folder_without_models_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--llama-server", "llama-server", "--only", "largest"]) == 2
    assert capsys.readouterr().err.strip() == f"There is no GGUF file in {tmp_path}."
