"""kill -9 at random moments of a session: the database is whole, nothing acknowledged is lost, kvdesk starts again."""

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.stress.conftest import Row, forms
from tests.stress.driven import Driven, Kept, make_home

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a POSIX matter")
LONGEST_S = 3.0


@forms(1, 200)
def test_kill(row: Row, model_file: Path, tmp_path: Path, n: int) -> None:
    """Runs on one home, one after the other: each starts with what the kill before has left."""
    home, kept, during = tmp_path / "home", Kept(), Counter[str]()
    make_home(home)
    model = tmp_path / "another.gguf"
    shutil.copy(model_file, model)
    for name, numbers in row.rounds("kill -9", n):
        run = Driven(home, name, "--model", str(model))
        if numbers.random() < 0.15:  # while it starts
            run.live_for(numbers.uniform(0.0, 1.5))
        else:
            assert run.wait_until(lambda run=run: bool(run.told("ready"))), f"{name}: it did not start: {run.said()}"  # type: ignore[misc]
            run.live_for(numbers.uniform(0.0, LONGEST_S))
        assert run.process.poll() is None, f"{name}: it ended by itself: {run.said()}"
        moment = run.kill()
        acts = run.told("act")
        during[acts[-1]["name"] if acts else "start"] += 1
        problems = kept.check(home, run, moment)
        assert not problems, f"{name}, killed {moment - run.started:.2f} s after its start: {problems}"
        assert not run.told("died"), f"{name}: {run.told('died')}"
    last = Driven(home, "last")
    assert last.wait_until(lambda: bool(last.told("ready"))), f"it does not start any more: {last.said()}"
    last.kill()
    lost = sorted(kept.lost_s)
    row.say(
        f"kill -9: {kept.n_streaming} of {len(lost)} in the middle of an answer; {len(kept.texts)} messages; "
        f"text lost: median {1000 * lost[len(lost) // 2]:.0f} ms, most {1000 * lost[-1]:.0f} ms; "
        f"last acts: {dict(during)}"
    )
