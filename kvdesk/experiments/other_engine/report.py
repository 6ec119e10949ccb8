"""What was found as a file for the issue tracker of llama.cpp: Markdown, and JSON. In English, as those are."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from operator import attrgetter
from typing import Any

from kvdesk import __version__
from kvdesk.backends.local.llama.other_library import Library
from kvdesk.cache.report import batch_words
from kvdesk.codec import to_builtins
from kvdesk.experiments.benchmarks.random_operations import Operation
from kvdesk.experiments.other_engine.messages import Cells, Outcome
from kvdesk.experiments.other_engine.run import Finding, Played, Verified
from kvdesk.protocol import calls

_INTRODUCTION = (
    "Random operations (decode, seq_rm, seq_cp, seq_keep, seq_add, clear, saved states; legal and illegal ones), each "
    "compared with a model of the cache: return code, positions of each sequence, the cells that "
    "`LLAMA_KV_CACHE_DEBUG=3` prints before each slot search, and the cells of the saved state."
)
_COUNTS = (attrgetter("n_decodes"), attrgetter("n_maps"), attrgetter("n_states"))
_MOST_NAMES = 12  # of models in one line of the report


def as_json(found: Verified) -> dict[str, Any]:
    """Plain values: both libraries, each case, each finding with its operations."""
    cases = [one for one in found.played if not one.outcome.not_played]
    return {
        "library": {"folder": str(found.folder), **to_builtins(found.library)},
        "own": to_builtins(found.own),
        "kvdesk": __version__,
        "operations": found.n_ops,
        "seed": found.seed,
        "cases": [
            {"model": one.model, "layout": one.layout, **to_builtins(one.outcome), "last_words": one.last_words}
            for one in found.played
        ],
        "n_cases": len(cases),
        "findings": [
            {
                "model": one.shortest.model,
                "architecture": one.first.outcome.architecture or one.shortest.model,
                "layout": one.first.layout,
                "settings": one.shortest.case.settings,
                "difference": one.shortest.outcome.difference,
                "last_words": one.shortest.last_words,
                "calls": [words(operation) for operation in one.shortest.operations],
                "operations": to_builtins(one.shortest.operations),
                "cells": to_builtins(one.shortest.outcome.cells),
                "own_library": one.own.difference or one.own.not_played or "as expected",
                "also": [f"{other.model}, {other.layout}" for other in one.others],
            }
            for one in found.findings
        ],
    }


def markdown(found: Verified) -> str:
    """The report as one file."""
    cases = [one for one in found.played if not one.outcome.not_played]
    n_wrong = sum(bool(one.outcome.difference) for one in cases)
    outcomes = [one.outcome for one in cases]
    n_models = len({one.model for one in cases})
    decodes, maps, states = (sum(map(count, outcomes)) for count in _COUNTS)
    rows = {
        "library": f"`{found.folder}`, llama.cpp {found.library.commit}",
        "built for": found.library.system.rstrip(" |").replace(" | ", ", "),
        "rules": f"those of llama.cpp {found.own.commit}, as kvdesk {__version__} mirrors them",
        "ABI": f"symbols and defaults as in llama.cpp {found.own.commit}{_sizes(found.library)}",
        "cases": f"{n_models} models, {len(cases)} cases of {found.n_ops} operations, seed {found.seed}",
        "compared": f"{decodes:,} decodes, {maps:,} printed maps, {states:,} saved states",
    }
    lines = [
        f"# KV cache audit of llama.cpp {found.library.commit}: {n_wrong} of {len(cases)} cases differ",
        "",
        _INTRODUCTION,
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows.items()),
        "",
    ]
    for i, finding in enumerate(found.findings, 1):
        lines += _finding(i, finding, found)
    if not found.findings:
        lines += ["Every cell was where the rules say.", ""]
    left_out: dict[str, list[str]] = {}
    for one in found.played:
        if one.outcome.not_played and one.layout in ("unified", "streams"):
            names = left_out.setdefault(one.outcome.not_played, [])
            if one.model not in names:
                names.append(one.model)
    if left_out:
        lines += ["## Not played", ""]
        lines += [f"- {why} ({_names(names)})" for why, names in left_out.items()]
        lines.append("")
    return "\n".join(lines)


def words(operation: Operation) -> str:
    """An operation as the call that it is."""
    match operation.kind:
        case "decode" | "bad" | "illegal" if operation.batch is not None:
            stop = f", stopped at node {operation.stop}" if operation.stop >= 0 else ""
            return f"llama_decode: {batch_words(operation.batch).removeprefix('decode of ')}{stop}"
        case "rm":
            return calls.seq_rm(operation.seq_id, operation.p0, operation.p1)
        case "cp":
            before = f"{calls.seq_rm(operation.dst, -1, -1)}; " if operation.fresh else ""
            return before + calls.seq_cp(operation.seq_id, operation.dst, operation.p0, operation.p1)
        case "keep":
            return calls.seq_keep(operation.seq_id)
        case "add":
            return calls.seq_add(operation.seq_id, operation.p0, operation.p1, operation.shift)
        case "clear":
            return calls.clear(data=operation.data)
        case "save" | "save_seq":
            return calls.state_get() if operation.kind == "save" else calls.state_seq_get(operation.seq_id)
        case _:
            load = "llama_state_set_data" if operation.kind == "load" else calls.state_seq_set(operation.seq_id)
            return f"{load} of the state saved {operation.which + 1} saves ago"


def _finding(i: int, finding: Finding, found: Verified) -> list[str]:
    first, shortest = finding.first, finding.shortest
    what, expected, printed = _difference(shortest.outcome.difference)
    n, n_first = len(shortest.operations), len(first.operations)
    architecture = first.outcome.architecture or "unknown"
    shortened = f"; shortened to {n} operations" if n < n_first else ""
    again = f"--models DIR --only {shortest.model} --ops {found.n_ops} --seed {found.seed}"
    lines = [
        f"## {i}. {what}",
        "",
        *([f"- expected: {expected}", f"- the library: {printed}", ""] if expected else []),
        f"Model: `{shortest.model}` (architecture {architecture}), {first.layout}: {_settings(shortest)}.",
        "",
        f"Found at operation {n_first} of seed {found.seed}{shortened}:",
        "",
        *_block(f"{j}. {words(operation)}" for j, operation in enumerate(shortest.operations, 1)),
    ]
    if shortest.last_words:
        lines += ["The end of its standard error:", "", *_block(shortest.last_words.splitlines())]
    for cells in shortest.outcome.cells:
        lines += _cells(cells)
    lines += [f"The same operations over llama.cpp {found.own.commit}: {_own(finding.own)}.", ""]
    if finding.others:
        lines += [f"The same in: {_names([f'{one.model} ({one.layout})' for one in finding.others])}.", ""]
    return [*lines, f"Again: `kvdesk verify-engine {found.folder} {again}`", ""]


def _block(lines: Iterable[str]) -> list[str]:
    return ["```", *lines, "```", ""]


def _cells(cells: Cells) -> list[str]:
    place = f"{cells.cache} cache, stream {cells.stream}"
    lines = [f"Cells afterwards, {place}:", ""]
    if cells.rows:
        lines += ["| cell | expected | printed |", "|---|---|---|"]
        lines += [
            f"| {i} | {ours} | {theirs if ours == theirs else f'**{theirs}**'} |" for i, ours, theirs in cells.rows
        ]
        lines.append("")
    lines += [f"<details><summary>All cells of the {place}, without rows of free ones</summary>", ""]
    for what in ("positions", "sequences"):
        expected, printed = getattr(cells, f"{what}_expected"), getattr(cells, f"{what}_printed")
        rows = [[row.rstrip(" .*") for row in text.splitlines()] for text in (expected, printed)]
        used = [pair for pair in zip_longest(*rows, fillvalue="") if any(pair)]
        lines += [f"{what.capitalize()}, expected:", "", *_block(ours for ours, _ in used)]
        lines += [f"{what.capitalize()}, printed:", "", *_block(theirs for _, theirs in used)]
    return [*lines, "</details>", ""]


def _difference(text: str) -> tuple[str, str, str]:
    """What differs, as expected and as it is; a difference of another form is all in the first."""
    what, _, values = text.partition(": mirror says ")
    expected, _, found = values.partition(", engine says ")
    return what, expected, found


def _settings(played: Played) -> str:
    names = ["n_ctx", "n_seq_max", "n_batch", "n_ubatch", "kv_unified", "swa_full", "flash_attn", "type_k", "type_v"]
    names += ["n_rs_seq"] * bool(played.case.settings["n_rs_seq"])
    return ", ".join(f"{name} = {str(played.case.settings[name]).lower()}" for name in names)


def _sizes(library: Library) -> str:
    return ", and struct sizes" if library.measured else "; struct sizes are not measured on this processor"


def _own(outcome: Outcome) -> str:
    if outcome.not_played:
        return f"not played ({outcome.not_played})"
    if outcome.difference:
        what, expected, found = _difference(outcome.difference)
        return f"**they differ there too ({what}: expected {expected}, found {found}), so kvdesk is wrong**"
    return "every cell is where it is expected"


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
