"""The report of an experiment in a real browser: nothing is fetched, and every plot is seen, with all its curves."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from kvdesk.__main__ import main

pytestmark = [pytest.mark.stress, pytest.mark.timeout(3600)]  # a browser starts slowly where others compute

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
MEASURE = """
<script>
const seen = [...document.querySelectorAll('svg.plot')].map(svg => {
  const box = svg.getBoundingClientRect();
  const curves = [...svg.querySelectorAll('path')].map(path => path.getTotalLength());
  const texts = [...svg.querySelectorAll('text')].map(text => text.getBoundingClientRect());
  const outside = texts.filter(t => t.left < box.left - 1 || t.right > box.right + 1 || t.bottom > box.bottom + 1);
  const colours = new Set([...svg.querySelectorAll('path')].map(path => getComputedStyle(path).stroke));
  return {width: box.width, height: box.height, curves, n_outside: outside.length, n_colours: colours.size};
});
const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
const loaded = performance.getEntriesByType('resource').length;
document.title = JSON.stringify({seen, wide, loaded});
</script>
"""
EXPERIMENTS = {
    "no-cache": ["longest=64", "rounds=2"],
    "kv-types": ["chunk=128", "written=2", "deepest=64", "rounds=2"],
    "fragmentation": ["per_filler=32", "tokens=4", "rounds=2"],
    "six-requests": ["requests=3", "tokens=2", "prompt=1", "rounds=2"],
}


@pytest.mark.skipif(not BROWSER, reason="no Chromium is installed")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_plot_of_a_report_is_seen(name: str, talking_file: Path, tmp_path: Path) -> None:
    given = [argument for pair in EXPERIMENTS[name] for argument in ("--set", pair)]
    assert main(["lab", "run", name, "--model", str(talking_file), "--short", *given, "--out", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    plots = json.loads((tmp_path / "result.json").read_text("utf-8"))["finished"]["result"]["plots"]
    copy = tmp_path / "measured.html"
    copy.write_text(page.replace("</body>", f"{MEASURE}</body>"), "utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--window-size=1280,2000"]
    run = [BROWSER, *options, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", copy.as_uri()]
    dom = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    title = re.search(r"<title>(.*?)</title>", dom)
    assert title is not None
    found = json.loads(unescape(title[1]))
    assert found["loaded"] == 0
    assert found["wide"] <= 0
    assert len(found["seen"]) == len(plots) > 0
    for seen, plot in zip(found["seen"], plots, strict=True):
        assert seen["width"] > 600
        assert seen["height"] > 300
        assert seen["n_outside"] == 0, plot["title"]
        assert len(seen["curves"]) == len(plot["series"])
        several = [
            curve for curve, series in zip(seen["curves"], plot["series"], strict=True) if len(series["points"]) > 1
        ]
        assert all(length > 5 for length in several), plot["title"]
        assert seen["n_colours"] == min(len(plot["series"]), 8)
