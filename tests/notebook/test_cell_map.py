"""The map of a notebook: what is drawn, and that no text gets out of its place."""

import re
from xml.etree import ElementTree as ET

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.journal.packing import Operation
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import Verification
from kvdesk.notebook.cell_map import page

HOSTILE = "<script>alert(1)</script>\"'&.gguf"


def mirror(n_ctx: int = 256) -> Mirror:
    made = Mirror(plan(ModelFacts("llama", "attention"), ContextParams(n_ctx=n_ctx, n_seq_max=4, kv_unified=True)))
    made.decode(Batch.of(0, 0, list(range(70))), 0)
    made.decode(Batch.of(1, 0, list(range(10))), 0)
    made.seq_cp(0, 2, 0, 5)
    return made


def drawn(text: str) -> list[ET.Element]:
    """Rectangles of cells."""
    root = ET.fromstring(text)
    return [found for found in root.iter("{http://www.w3.org/2000/svg}rect") if len(found)]


def test_neighbours_of_the_same_sequences_are_one_rectangle() -> None:
    found = drawn(page(mirror().snapshot(Verification("mirrored", 0)), (), "tiny.gguf"))
    assert [rect[0].text for rect in found] == [
        "cells 0 to 4: sequence 0, 2, positions 0 to 4",
        "cells 5 to 63: sequence 0, positions 5 to 63",
        "cells 64 to 69: sequence 0, positions 64 to 69",
        "cells 70 to 79: sequence 1, positions 0 to 9",
    ]
    assert [rect.get("stroke") for rect in found] == ["currentColor", None, None, None]
    assert len({rect.get("fill") for rect in found}) == 2


def test_every_text_is_escaped_and_nothing_is_loaded() -> None:
    call = Operation(3, 0.0, "decode", HOSTILE, 1.25)
    snapshot = mirror().snapshot(Verification("mismatch", 3, HOSTILE))
    text = page(snapshot, [call], HOSTILE)
    root = ET.fromstring(text)
    assert {found.tag.rpartition("}")[2] for found in root.iter()} <= {
        *("div", "p", "b", "svg", "rect", "title", "table", "caption", "tr", "td", "code")
    }
    assert text.count("&lt;script&gt;") == 3
    assert not re.search(r"\b(src|href|url|on\w+)\s*[=(]", text.replace(HOSTILE, ""))


def test_a_large_cache_says_what_is_not_drawn() -> None:
    text = page(mirror(16384).snapshot(Verification("verified", 3)), (), "tiny.gguf")
    assert "8,192 more cells are not drawn." in text
    assert "verified with the engine" in text
    assert 'height="1024"' in text
