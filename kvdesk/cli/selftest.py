"""`kvdesk selftest`: whether this installation is whole: a window, a plot, the store, the model, the cache."""

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kvdesk import values
from kvdesk.cli.output import say
from kvdesk.cli.parser import Parser
from kvdesk.translation import tr


def main(argv: Sequence[str]) -> int:
    """Exit code 0 when every step passed, else 1, with the failing step on standard error."""
    parser = Parser(
        "selftest", tr("Whether this installation is whole: a window, a plot, the store, the model, the cache.")
    )
    parser.flag("--json", tr("one JSON object on standard output"))
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="kvdesk-selftest-") as home:  # nothing of the user's is touched
        os.environ["KVDESK_HOME"] = home
        return _run(Path(home), as_json=args.json)


def _run(folder: Path, *, as_json: bool) -> int:
    from kvdesk import __version__
    from kvdesk.app.display import has_display
    from kvdesk.backends.local.llama.binding import engine_version
    from kvdesk.dev import selftest

    if not has_display():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    outcomes = []
    for outcome in selftest.run(folder):
        outcomes.append(outcome)
        if not as_json:
            print(f"{'ok' if outcome.passed else 'FAILED':6} {outcome.step}: {outcome.said}", flush=True)
    passed = all(outcome.passed for outcome in outcomes)
    if as_json:
        version = engine_version()
        answer = {
            "kvdesk": __version__,
            "engine": str(version),
            "processor": version.system,
            "passed": passed,
            "steps": [values.asdict(outcome) for outcome in outcomes],
        }
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    if not passed:
        say(tr("The step {step!r} failed: {said}").format(step=outcomes[-1].step, said=outcomes[-1].said))
    return 0 if passed else 1
