"""A recording as a trace of Chrome and Perfetto: each call as a slice, the used cells as counters. Pure.

The form is that of the Trace Event Format, in its JSON object: `ph` "X" has `ts` and `dur` in microseconds, "C" has
numbers, "M" names. Requests may overlap: each is a pair of "b" and "e". Texts of prompts and token ids are left out.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from kvdesk.cache.journal.file import JournalHeader
from kvdesk.cache.journal.packing import REQUEST
from kvdesk.cache.journal.recording import Recording

_PROCESS, _THREAD = 1, 1


def trace_text(recording: Recording, header: JournalHeader) -> str:
    """The file, as JSON."""
    about = {"model": header.model, **header.versions}
    events = list(_events(recording, header))
    return json.dumps({"displayTimeUnit": "ms", "otherData": about, "traceEvents": events}, ensure_ascii=False)


def _events(recording: Recording, header: JournalHeader) -> Iterator[dict[str, Any]]:
    yield _named("process_name", header.model or "kvdesk")
    yield _named("thread_name", "llama.cpp")
    offsets = recording.shape.offsets
    used = np.zeros(offsets[-1], dtype=bool)
    base = recording.base()
    used[base.index] = base.pos >= 0
    begin = None
    for operation, patch in recording.patches():
        start = operation.at_s - operation.ms / 1e3  # it is recorded when it has ended
        begin = start if begin is None and operation.at_s else begin
        since = 0.0 if begin is None else start - begin
        at = {"ts": max(0.0, round(since * 1e6, 3)), "pid": _PROCESS, "tid": _THREAD}
        used[patch.index] = patch.pos >= 0
        arguments = {"operation": operation.number, "call": operation.call, "cells": patch.n_cells}
        ms = round(operation.ms * 1e3, 3)
        one = {"name": operation.name, "cat": "cache"}
        if operation.name == REQUEST:
            one["id"] = str(operation.number)
            yield {**one, "ph": "b", **at, "args": arguments}
            yield {**one, "ph": "e", **at, "ts": round(at["ts"] + ms, 3)}
            continue
        yield {**one, "ph": "X", **at, "dur": ms, "args": arguments}
        counts = {
            f"{name} {stream}": int(used[offsets[i] : offsets[i + 1]].sum())
            for i, (name, stream) in enumerate(recording.shape.places)
        }
        if counts:
            yield {"name": "used cells", "ph": "C", **at, "ts": round(at["ts"] + ms, 3), "args": counts}


def _named(what: str, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": _PROCESS, "tid": _THREAD, "args": {"name": name}}
