"""A recording as one HTML page: the map of the cells with a slider over the calls, to be attached to an issue. Pure.

Nothing is loaded, and the page forbids it. Texts are data that the script puts into the page as text. Texts of prompts
and token ids are left out.
"""

import json
from collections.abc import Iterator
from html import escape
from typing import Any, Final

from kvdesk.cache.journal.file import JournalHeader
from kvdesk.cache.journal.recording import Recording
from kvdesk.cache.journal.runs import runs_of
from kvdesk.cache.memories.cells import Patch
from kvdesk.errors import UserError
from kvdesk.notebook.cell_map import FIRST_HUE, GOLDEN_ANGLE
from kvdesk.translation import tr

_MOST_RUNS: Final = 2_000_000
"""Runs of changed cells in one page: about 60 MB."""
_CELLS: Final = 5
"""Of a run: stream, first cell, number, first position, sequences; one of three empties its cells."""
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>%(title)s</title>
<style>
:root { color-scheme: light dark; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 1rem; max-width: 65rem; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
input { width: 100%%; margin: 0; }
canvas { display: block; max-width: 100%%; margin-bottom: 1rem; }
p { margin: .5rem 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
span { white-space: nowrap; display: inline-block; }
span::before {
  content: ""; display: inline-block; width: .7em; height: .7em; margin: 0 .4em 0 1em; background: var(--hue);
}
</style>
</head>
<body>
<h1>%(title)s</h1>
<input id="at" type="range" min="0" value="0" aria-label="%(label)s">
<p id="call"></p>
<div id="maps"></div>
<script type="application/json" id="data">%(data)s</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const most = 12, every = 256;
const [slider, call, maps] = ["at", "call", "maps"].map((id) => document.getElementById(id));
const columns = maps.clientWidth < 480 ? 32 : maps.clientWidth < 1000 ? 64 : 128;
const side = Math.max(4, Math.min(10, Math.floor(maps.clientWidth / columns)));
const colour = (owner, light) => `hsl(${(%(hue)s + owner * %(angle)s) %% 360} 60%% ${light}%%)`;
const drawn = data.streams.map((stream) => {
  const text = maps.appendChild(document.createElement("p"));
  const canvas = maps.appendChild(document.createElement("canvas"));
  canvas.setAttribute("role", "img");
  canvas.width = columns * side;
  canvas.height = Math.ceil(stream.size / columns) * side;
  return { text, context: canvas.getContext("2d") };
});
function changed(state, runs) {
  for (const [stream, first, n, pos, owners] of runs)
    for (let i = 0; i < n; i++) state[stream][first + i] = owners ? owners : null;
}
const kept = [data.streams.map((stream) => new Array(stream.size).fill(null))];
changed(kept[0], data.base);
function stateAt(number) {
  let k = Math.min(Math.floor(number / every), kept.length - 1);
  let state = kept[k].map((cells) => cells.slice());
  for (let i = k * every; i < number; i++) {
    changed(state, data.calls[i].cells);
    if ((i + 1) %% every === 0 && kept.length === (i + 1) / every) kept.push(state.map((cells) => cells.slice()));
  }
  return state;
}
const shown = (n) => n.toLocaleString("en", { maximumFractionDigits: 2 });
function show(number) {
  const state = stateAt(number), one = data.calls[number - 1];
  call.textContent = one ? `${one.n}: ${one.call || one.name}` + (one.ms ? ` · ${shown(one.ms)} ms` : "") : "";
  slider.setAttribute("aria-valuetext", call.textContent);
  state.forEach((cells, s) => {
    const { text, context } = drawn[s];
    context.clearRect(0, 0, context.canvas.width, context.canvas.height);
    let used = 0;
    const seen = new Set();
    cells.forEach((owners, cell) => {
      const isUsed = owners && owners.length;
      if (isUsed) used++, owners.forEach((owner) => seen.add(owner));
      context.fillStyle = isUsed ? colour(owners[0], owners.length > 1 ? 35 : 55) : "#8883";
      context.fillRect((cell %% columns) * side, Math.floor(cell / columns) * side, side - 1, side - 1);
    });
    text.textContent = `${data.streams[s].name}: ${shown(used)} / ${shown(cells.length)}`;
    for (const owner of [...seen].sort((a, b) => a - b).slice(0, most)) {
      const key = text.appendChild(document.createElement("span"));
      key.textContent = `${data.sequence} ${owner}`;
      key.style.setProperty("--hue", colour(owner, 55));
    }
    if (seen.size > most) text.append(" …");
    context.canvas.setAttribute("aria-label", text.textContent);
  });
}
slider.max = data.calls.length;
slider.value = data.calls.length;
slider.addEventListener("input", () => show(Number(slider.value)));
show(data.calls.length);
</script>
</body>
</html>
"""


def page(recording: Recording, header: JournalHeader) -> str:
    """Raises UserError for a recording that is too long for a page."""
    shape = recording.shape
    n = 0
    calls: list[dict[str, Any]] = []
    for operation, patch in recording.patches():
        cells = list(_cells(patch, recording))
        n += len(cells)
        if n > _MOST_RUNS:
            raise UserError(tr("The journal is too long for a page; kvdesk replay opens it."))
        one = {"n": operation.number, "name": operation.name, "call": operation.call, "ms": operation.ms}
        calls.append({**one, "cells": cells})
    sizes = [cache.size for cache in shape.caches for _ in range(cache.n_streams)]
    streams = [
        {"name": f"{name} {stream}", "size": size} for (name, stream), size in zip(shape.places, sizes, strict=True)
    ]
    data = {
        "streams": streams,
        "base": list(_cells(recording.base(), recording)),
        "calls": calls,
        "sequence": tr("sequence"),
    }
    title = tr("The cells of {model}").format(model=header.model or "kvdesk")
    parts = {"title": escape(title), "label": escape(tr("Call"), quote=True), "data": _inside_script(data)}
    return _PAGE % {**parts, "hue": FIRST_HUE, "angle": GOLDEN_ANGLE}


def _cells(patch: Patch, recording: Recording) -> Iterator[list[Any]]:
    """The runs without token ids."""
    for run in runs_of(patch, recording.shape):
        yield run[:_CELLS]


def _inside_script(data: object) -> str:
    """JSON that ends no `<script>` and begins no comment in it."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
