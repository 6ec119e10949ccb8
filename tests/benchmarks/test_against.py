"""`kvdesk bench engine --against CHECKOUT`: children in turns, which figures are compared, and their ratios."""

import json
import sys
from pathlib import Path

import pytest

from kvdesk.cli import bench
from kvdesk.errors import UserError
from tests.benchmarks import against
from tests.benchmarks.against import LESS_IS_BETTER, MORE_IS_BETTER, Value, compare, read, table
from tests.places import ROOT

FAKE = """
import json, sys
from pathlib import Path
turns = Path(sys.argv[0]).resolve().parents[2] / "turns"
with turns.open("a") as file:
    file.write(json.dumps([{name!r}, *sys.argv[1:]]) + "\\n")
for option in {unknown!r}:
    if option in sys.argv:
        print("unrecognized arguments: " + option, file=sys.stderr)
        sys.exit(2)
print({out!r})
sys.exit({code})
"""
OLD = """
import json, sys
from kvdesk.dev import bench_ui

def main():
    assert sys.argv[1:] == ["bench", "ui", "--rounds", "1", "--n-ctx", "1024", "--json"], sys.argv
    print(json.dumps({"tokens_per_s": bench_ui.MAX_TOKENS, "rounds_per_s": bench_ui.MOST_ROUNDS}))
    return 0
"""
NOW = {
    "passed": False,
    "figures": {"decode_vs_bare": {"value": 1.0, "at_least": True}, "new": {"value": 1.0, "at_least": True}},
    "decode_tok_s": {"engine": [20.0, 30.0, 40.0]},
    "resident_bytes": 100,
}
THEN = {
    "passed": True,
    "figures": {"decode_vs_bare": {"value": 0.8, "at_least": True}},
    "decode_tok_s": {"engine": [15.0]},
    "resident_bytes": 200,
    "old_ms": 3.0,
}


def checkout(folder: Path, out: str, *, code: int = 0, unknown: tuple[str, ...] = ()) -> Path:
    """A folder whose kvdesk gives `out`, and notes in `turns` beside it how it was called."""
    package = folder / "kvdesk"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    fake = FAKE.format(name=folder.name, unknown=unknown, out=out, code=code)
    (package / "__main__.py").write_text(fake, encoding="utf-8")
    return folder


@pytest.fixture
def now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This kvdesk, which misses a bar."""
    folder = checkout(tmp_path / "now", json.dumps(NOW), code=1)
    program = [sys.executable, str(folder / "kvdesk" / "__main__.py")]
    monkeypatch.setattr(against, "child_command", lambda *arguments: [*program, *arguments])
    return folder


def turns(tmp_path: Path) -> list[list[str]]:
    return [json.loads(line) for line in (tmp_path / "turns").read_text(encoding="utf-8").splitlines()]


@pytest.mark.usefixtures("now")
def test_rounds_are_in_turns_and_who_begins_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    then = checkout(tmp_path / "then", json.dumps(THEN))
    options = ["--n-ctx", "1024", "engine", "--against", str(then), "--rounds", "3", "--only", "memory", "decode"]
    assert bench.main([*options, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    called = turns(tmp_path)
    assert [name for name, *_ in called] == ["now", "then", "then", "now", "now", "then"]
    command = ["bench", "engine", "--rounds", "1", "--n-ctx", "1024", "--only", "memory", "decode", "--json"]
    assert all(rest == command for _, *rest in called)
    assert {name: of["ratio"] for name, of in result["figures"].items()} == {
        "decode_vs_bare": 1.25,
        "decode_tok_s.engine": 2.0,
        "resident_bytes": 2.0,
    }
    assert (result["only_now"], result["only_then"]) == (["new"], ["old_ms"])


@pytest.mark.usefixtures("now")
def test_rounds_that_would_take_too_long_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    then = checkout(tmp_path / "then", json.dumps(THEN))
    assert bench.main(["engine", "--against", str(then), "--rounds", "9", "--minutes", "0", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (len(turns(tmp_path)), result["rounds"]) == (2, 1)
    assert result["figures"]["decode_vs_bare"]["low"] is None


@pytest.mark.usefixtures("now")
def test_what_only_one_has_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    then = checkout(tmp_path / "then", json.dumps(THEN))
    assert bench.main(["engine", "--against", str(then), "--rounds", "2"]) == 0
    said = capsys.readouterr().out
    assert "decode_vs_bare                1         0.8  1.250  1.250 to 1.250" in said
    assert said.splitlines()[-2:] == ["Only this kvdesk has: new", "Only the other has: old_ms"]


@pytest.mark.usefixtures("now")
def test_a_checkout_that_cannot_measure_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = checkout(tmp_path / "broken", "", code=3)
    assert bench.main(["engine", "--against", str(broken)]) == 2
    assert "then measured nothing (exit code 3)." in capsys.readouterr().err
    assert bench.main(["ui", "--against", str(tmp_path)]) == 2
    assert "is no checkout of kvdesk." in capsys.readouterr().err
    with pytest.raises(SystemExit):
        bench.main(["cache", "--against", str(broken)])


def test_a_checkout_is_run_by_its_own_python(tmp_path: Path) -> None:
    assert against._python(tmp_path) == sys.executable
    own = tmp_path / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.touch()
    assert against._python(tmp_path) == str(own)


def test_what_is_better_is_told_by_the_name() -> None:
    out = {
        "figures": {"stall": {"value": 4.0, "at_least": False}},
        "decode_tok_s": {"engine": [1.0, 5.0]},
        "seconds_of_a_bare_loop": [[1.0], [2.0, 3.0]],
        "map": {"refreshes_per_s": 9},
        "allowed_bytes": 7,
        "reused_tokens": 8,
        "passed": True,
    }
    assert read(json.dumps(out)) == {
        "stall": Value(4.0, LESS_IS_BETTER),
        "decode_tok_s.engine": Value(3.0, MORE_IS_BETTER),
        "seconds_of_a_bare_loop": Value(2.0, LESS_IS_BETTER),
        "map.refreshes_per_s": Value(9.0, MORE_IS_BETTER),
    }


def test_the_interval_is_student_s_of_the_logarithms_of_the_ratios_of_rounds() -> None:
    """ln 1.1 and ln 1.3: mean 0.17883, standard error 0.083527, times 12.706."""
    now = [{"ms": Value(100.0, LESS_IS_BETTER)}, {"ms": Value(10.0, LESS_IS_BETTER)}]
    then = [{"ms": Value(110.0, LESS_IS_BETTER)}, {"ms": Value(13.0, LESS_IS_BETTER)}]
    of = compare(now, then)["figures"]["ms"]
    assert (of["ratio"], of["low"], of["high"]) == pytest.approx((1.1958, 0.4138, 3.4559), abs=2e-4)
    back = compare(then, now)["figures"]["ms"]
    assert back["ratio"] * of["ratio"] == pytest.approx(1, abs=1e-3)
    assert back["low"] * of["high"] == pytest.approx(1, abs=1e-3)


def test_a_single_round_has_no_interval_and_a_zero_no_ratio() -> None:
    one = [{"ms": Value(2.0, LESS_IS_BETTER), "stall_ms": Value(0.0, LESS_IS_BETTER)}]
    result = compare(one, one)
    assert (result["figures"]["ms"]["low"], result["not_above_0"]) == (None, ["stall_ms"])
    assert "one round: not known" in list(table(result))[1]


def test_a_real_round_of_two_checkouts(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--rounds", "1", "--only", "turns", "--n-ctx", "1024", "--threads", "1", "--json"]
    assert bench.main(["engine", "--against", str(ROOT), *options]) == 0
    result = json.loads(capsys.readouterr().out)
    figure = result["figures"]["turn_5_prefilled_over_new"]
    assert (figure["now"], figure["then"], figure["ratio"]) == (1.0, 1.0, 1.0)
    assert not result["only_now"] + result["only_then"]


def test_the_child_s_last_words_are_the_detail(tmp_path: Path) -> None:
    broken = checkout(tmp_path / "broken", "", unknown=("--n-ctx",))
    side = against.Side("then", broken, "engine", [], ["--n-ctx", "1"])
    with pytest.raises(UserError) as told:
        side.measure()
    assert "unrecognized arguments: --n-ctx" in told.value.detail


def test_the_window_is_measured_briefly_in_any_checkout(tmp_path: Path) -> None:
    """Of one whose bench is where it was at first."""
    folder = checkout(tmp_path / "old", "")
    (folder / "kvdesk" / "dev").mkdir()
    (folder / "kvdesk" / "dev" / "bench_ui.py").write_text("MAX_TOKENS, MOST_ROUNDS = 320, 2\n", encoding="utf-8")
    (folder / "kvdesk" / "__main__.py").write_text(OLD, encoding="utf-8")
    side = against.Side("then", folder, "ui", [], ["--n-ctx", "1024"])
    assert {name: of.value for name, of in side.measure().items()} == {"tokens_per_s": 64.0, "rounds_per_s": 1.0}


def test_a_round_that_does_not_end_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkout(tmp_path / "slow", "")
    (folder / "kvdesk" / "__main__.py").write_text("import threading\nthreading.Event().wait()\n", encoding="utf-8")
    monkeypatch.setattr(against, "ROUND_LIMIT_S", 0.5)
    with pytest.raises(UserError, match="then did not measure one round"):
        against.Side("then", folder, "engine", [], []).measure()
