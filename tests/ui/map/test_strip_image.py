"""A map that is brought up to date row by row looks like one that is drawn anew."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPointF, QRect
from PySide6.QtGui import QImage, QPainter, QRegion

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import Verification
from kvdesk.chat import ConversationId
from kvdesk.protocol.cache import CacheView, Lease
from kvdesk.ui.map.colours import ColourBy, Scene
from kvdesk.ui.map.frame import MapFrame, make_frame, strips_of
from kvdesk.ui.map.painter import Edges, MapPainter
from kvdesk.ui.map.viewport import Viewport
from kvdesk.ui.widgets.theme import Theme

WIDTH, HEIGHT = 420, 240
UNSELECTED: Edges = {}


def views(n_ctx: int) -> Iterator[CacheView]:
    """A cache at work: tokens here and there, shared cells, holes, positions that moved."""
    pick = random.Random(7)
    mirror = Mirror(plan(ModelFacts("llama", "attention"), ContextParams(n_ctx=n_ctx, n_seq_max=4, kv_unified=True)))
    ends = [0] * 4
    leases = tuple(Lease(ConversationId(f"c{seq}"), seq) for seq in range(3))
    for step in range(40):
        seq = pick.randrange(3)
        n = pick.choice((1, 1, 1, 9, 60))
        tokens = [pick.randrange(400) for _ in range(n)]
        mirror.decode(Batch(tokens, range(ends[seq], ends[seq] + n), [(seq,)] * n, [False] * n), 0)
        ends[seq] += n
        if step % 9 == 8:
            mirror.seq_cp(seq, 3, 0, ends[seq] // 2)
        if step % 13 == 12:
            mirror.seq_rm(seq, ends[seq] // 3, ends[seq] // 2)
        if step == 30:
            mirror.seq_add(seq, ends[seq] // 2, -1, 5)
            ends[seq] += 5
        yield CacheView(mirror.snapshot(Verification("mirrored", 0)), leases)


def frame_of(view: CacheView, mode: ColourBy, ratio: float, before: MapFrame | None = None) -> MapFrame:
    scene = Scene(mode, {0: 0, 1: 1, 2: 2}, {0: "a", 1: "b", 2: "c"})
    operation = view.snapshot.operation
    return make_frame(view, strips_of(view, WIDTH, HEIGHT, ratio), scene, (operation - 6, operation - 3), before)


def paint(painter: MapPainter, image: QImage, frame: MapFrame, viewport: Viewport, region: QRegion | None) -> None:
    """As the widget does: its ground, then the map, no farther than the region."""
    with QPainter(image) as on:
        if region is not None:
            on.setClipRegion(region)
        on.fillRect(0, 0, WIDTH, HEIGHT, 0xFF101010)
        painter.paint(on, frame, viewport, {}, UNSELECTED, None, None if region is None else region.boundingRect())


def region_of(rects: list[QRect]) -> QRegion:
    region = QRegion()
    for rect in rects:
        region += rect
    return region


def blank(ratio: float) -> QImage:
    image = QImage(round(WIDTH * ratio), round(HEIGHT * ratio), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    return image


@pytest.mark.parametrize("mode", [ColourBy.CONVERSATION, ColourBy.AGE, ColourBy.SEQUENCES])
@pytest.mark.parametrize(("n_ctx", "zoom", "ratio"), [(1024, 1.0, 1.0), (1024, 3.0, 2.0), (65_536, 1.0, 1.0)])
def test_rows_that_differ_are_all_that_is_drawn(
    theme: Theme, mode: ColourBy, n_ctx: int, zoom: float, ratio: float
) -> None:
    painter, kept = MapPainter(theme), blank(ratio)
    drawn, seen, frame = 0, None, None
    for view in views(n_ctx):
        frame = frame_of(view, mode, ratio, frame)
        if seen is None:
            cell = frame.strips[0].strip.cell
            seen = Viewport(WIDTH, HEIGHT, ratio).zoomed(QPointF(30, 20), zoom, cell)
        rects = painter.prepare(frame, seen, UNSELECTED)
        region = None if rects is None else region_of(rects)
        drawn += region is not None and region.boundingRect().height() < HEIGHT / 2
        paint(painter, kept, frame, seen, region)
        anew = blank(ratio)
        paint(MapPainter(theme), anew, frame_of(view, mode, ratio), seen, None)
        assert kept == anew, f"operation {frame.operation}"
    assert drawn > 10 or mode is ColourBy.AGE, "most frames change few rows"
