"""`make lab-figures`: the short form of every experiment, and its first plot beside its page in docs/questions.

With names as arguments (`make lab-figures NAMES="threads rebuild"`): of these only.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from setup import ROOT

sys.path.insert(0, str(ROOT))

from kvdesk.experiments import EXPERIMENTS

QUESTIONS = ROOT / "docs" / "questions"


def main(names: Sequence[str]) -> int:
    """Exit code 0, or that of the first experiment that failed."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names or [experiment.id for experiment in EXPERIMENTS]:
            out = Path(folder) / name
            command = [sys.executable, "-m", "kvdesk", "lab", "run", name, "--short", "--out", str(out)]
            code = subprocess.run(command, cwd=ROOT, check=False).returncode
            if code:
                return code
            plot = out / "plot-1.svg"
            if plot.exists():
                plot.replace(QUESTIONS / f"{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
