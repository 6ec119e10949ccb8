"""An engine that does not answer: it is said, and it does not keep the window from closing."""

from collections.abc import Callable
from pathlib import Path

from kvdesk.app.silence import SILENT_S
from tests.app.conftest import Rig, over_both


@over_both
def test_silence_is_said_once_and_so_is_its_end(rig: Rig) -> None:
    silence, activity = rig.controller._silence, rig.window.activity
    silence.look()
    rig.worker.host.silent_s = SILENT_S - 1
    silence.look()
    assert activity.text == ""
    rig.worker.host.silent_s = SILENT_S
    silence.look()
    assert "has not responded for 15 seconds" in activity.text
    activity.dismiss()
    silence.look()
    assert activity.text == "", "it was dismissed"
    rig.worker.host.silent_s = 0.0
    silence.look()
    assert activity.text == "The engine is responding again."
    rig.worker.host.silent_s = 2 * SILENT_S - 1
    silence.look()
    assert activity.text == "The engine is responding again.", "it takes that long here"
    rig.worker.host.silent_s = 2 * SILENT_S
    silence.look()
    assert "has not responded for 30 seconds" in activity.text
    rig.worker.host.silent_s = 0.0
    silence.look()
    assert activity.sentences == ("The engine is responding again.",), "that it does not is no longer true"


@over_both
def test_a_load_that_hangs_at_the_end_is_not_repeated_unasked(make_rig: Callable[..., Rig], tmp_path: Path) -> None:
    model = tmp_path / "hangs.gguf"
    rig = make_rig(model)
    rig.worker.ends = False
    rig.window.close()
    assert not rig.controller.engine_ended
    assert rig.marker.unfinished() == str(model)


@over_both
def test_a_load_that_ended_leaves_no_mark(make_rig: Callable[..., Rig], tmp_path: Path) -> None:
    rig = make_rig(tmp_path / "good.gguf")
    rig.window.close()
    assert rig.controller.engine_ended
    assert rig.marker.unfinished() == ""
