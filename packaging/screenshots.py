"""Makes the pictures of docs/ from the running application: `make screenshots`.

Each is a step of the guided tour (kvdesk/app/tour.py), photographed from the real window with the real model. A new
picture is one line here and a `yield from self._picture(name)` there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
PICTURES = {
    # name in docs/images: (theme, step of the tour)
    "window": ("dark", "two-conversations"),
    "loaded": ("light", "loaded"),
    "second-turn": ("light", "second-turn"),
    "two-conversations": ("light", "two-conversations"),
    "forgotten": ("light", "forgotten"),
    "prefilled-again": ("light", "prefilled-again"),
}


def main() -> int:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kvdesk-screenshots-") as folder:
        for theme in sorted({theme for theme, _ in PICTURES.values()}):
            out = Path(folder, theme)
            tour = [sys.executable, "-m", "kvdesk", "demo", "--offscreen", "--theme", theme, "--out", str(out)]
            if subprocess.run(tour, cwd=ROOT, check=False).returncode:
                print(f"The tour failed; its report is:\n{(out / 'report.json').read_text(encoding='utf-8')}")
                return 1
            for name, (wanted, step) in PICTURES.items():
                if wanted == theme:
                    (found,) = out.glob(f"[0-9][0-9]-{step}.png")
                    shutil.copy(found, IMAGES / f"{name}.png")
                    print(f"docs/images/{name}.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
