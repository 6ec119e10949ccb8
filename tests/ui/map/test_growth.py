from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import Verification
from kvdesk.chat import ConversationId
from kvdesk.protocol.cache import CacheView, Lease
from kvdesk.ui.map.colours import ColourBy, Scene
from kvdesk.ui.map.frame import MapFrame, make_frame, strips_of
from kvdesk.ui.map.raster import FADING, FRESH
from tests.ui.placing import place

LEASES = tuple(Lease(ConversationId(f"c{seq}"), seq) for seq in range(3))
SCENE = Scene(ColourBy.CONVERSATION, {0: 0, 1: 1, 2: 2})


def mirror_of(n_ctx: int = 1024, n_swa: int = 0, unified: bool = True) -> Mirror:
    facts = (
        ModelFacts("gemma3", "iswa", n_swa=n_swa, swa_type="standard") if n_swa else ModelFacts("llama", "attention")
    )
    return Mirror(plan(facts, ContextParams(n_ctx=n_ctx, n_seq_max=4, kv_unified=unified)))


def frame_of(mirror: Mirror, limits: tuple[int, int], before: MapFrame | None, scene: Scene = SCENE) -> MapFrame:
    view = CacheView(mirror.snapshot(Verification("mirrored", 0)), LEASES)
    return make_frame(view, strips_of(view, 400, 240, 1.0), scene, limits, before)


def assert_same(found: MapFrame, whole: MapFrame) -> None:
    for part, wanted in zip(found.strips, whole.strips, strict=True):
        assert np.array_equal(part.layer.code, wanted.layer.code)
        assert np.array_equal(part.layer.marks, wanted.layer.marks)
        assert part.layer.n_free == wanted.layer.n_free
        assert not (part.layer.marks[: part.layer.first_passing] & (FADING | FRESH)).any()
        one, other = part.layer.second, wanted.layer.second
        assert (one is None and other is None) or (one is not None and other is not None and (one == other).all())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n_swa", "unified"), [(0, True), (0, False), (48, True)])
def test_a_frame_made_from_the_one_before_is_the_frame_made_anew(seed: int, n_swa: int, unified: bool) -> None:
    pick, mirror = random.Random(seed), mirror_of(n_swa=n_swa, unified=unified)
    before: MapFrame | None = None
    limits, grown, seq = (0, 0), 0, 0
    for _ in range(150):
        match pick.choice(["append"] * 12 + ["other", "remove", "copy", "move", "clear", "nothing"]):
            case "append":
                for _ in range(pick.choice((1, 2, 8))):
                    place(mirror, seq, mirror.seq_pos_max(seq) + 1, 1)
            case "other":
                seq = pick.randrange(3)
            case "remove" if not n_swa:
                end = mirror.seq_pos_max(seq)
                mirror.seq_rm(seq, end // 2, end // 2 + pick.choice((1, 5)))
            case "copy" if unified and not n_swa:
                mirror.seq_rm((seq + 1) % 3, -1, -1)
                mirror.seq_cp(seq, (seq + 1) % 3, 0, max(mirror.seq_pos_max(seq) // 2, 1))
            case "move" if not n_swa and mirror.seq_pos_max(seq) > 20:
                mirror.seq_add(seq, mirror.seq_pos_max(seq) - 3, -1, 2)
            case "clear":
                mirror.clear(data=False)
        fading = pick.randint(limits[0], max(mirror.operation, limits[0]))
        limits = fading, pick.randint(fading, max(mirror.operation, fading))
        frame = frame_of(mirror, limits, before)
        assert_same(frame, frame_of(mirror, limits, None))
        grown += frame.strips[0].since is not None
        assert not n_swa or frame.strips[1].since is None, "a window is always looked at as a whole"
        before = frame
    assert grown > 30


def test_another_scene_or_another_cache_is_made_anew() -> None:
    mirror = mirror_of()
    place(mirror, 0, 0, 40)
    before = frame_of(mirror, (0, 0), None)
    place(mirror, 0, 40, 1)
    assert frame_of(mirror, (0, 0), before).strips[0].since is before.strips[0].layer
    for other in (replace(SCENE, colours={0: 5}), replace(SCENE, mode=ColourBy.POSITION)):
        assert frame_of(mirror, (0, 0), before, other).strips[0].since is None
    rebuilt = mirror_of()
    place(rebuilt, 1, 0, 40)
    place(rebuilt, 0, 0, 1)
    assert frame_of(rebuilt, (0, 0), before).strips[0].since is None, "the same operations, other cells"


def test_only_what_may_differ_is_said_to() -> None:
    mirror = mirror_of()
    place(mirror, 0, 0, 40)
    place(mirror, 0, 40, 1)
    before = frame_of(mirror, (0, 1), None)
    place(mirror, 0, 41, 1)
    assert frame_of(mirror, (0, 2), before).strips[0].first == 0, "all are still bright"
    later = frame_of(mirror, (2, 2), before)
    assert (later.strips[0].first, frame_of(mirror, (3, 3), later).strips[0].first) == (0, 41)
