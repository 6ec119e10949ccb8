import pytest

from kvdesk.cache.snapshot import CacheSnapshot, Verification
from kvdesk.values import replace
from kvdesk.viewmodel.cells.readout import (
    describe_cell,
    positions_of,
    reasons,
    sequences_of,
    stats_parts,
    stats_tip,
    totals,
    verification_line,
    visible,
)
from kvdesk.viewmodel.cells.ruler_row import runs
from tests.ui.samples import STATS, cache_view, stream


def test_totals() -> None:
    found = totals(cache_view().snapshot)
    assert (found.used, found.high_water, found.n_kv, found.shared) == (220, 240, 256, 32)
    assert found.hole_ratio == pytest.approx(20 / 240)


def test_totals_of_a_model_without_attention_cache() -> None:
    snapshot = CacheSnapshot(1, (), (), (), 0, 1024, Verification("mirrored", 0))
    assert totals(snapshot).capacity == 0
    assert positions_of(snapshot, 0).size == 0


def test_positions_of_a_sequence() -> None:
    assert positions_of(cache_view().snapshot, 1).tolist() == [*range(32), *range(32, 72)]


def test_a_cell_is_described_by_its_conversations_and_its_text() -> None:
    cells = stream(8, [(2, 4, (0, 3), 10, 1)])
    first, second = describe_cell(cells, 3, "stream 1", {0: "Village"}, {3: " sea"})
    assert first == "cell 3  ·  stream 1  ·  position 11  ·  token 3"
    assert second == "“␣sea”  ·  Village, sequence 3"
    _, second = describe_cell(cells, 3, "", {0: "Village"}, {3: " sea"}, ("message 1 of 2",))
    assert second == "“␣sea”  ·  message 1 of 2  ·  Village, sequence 3", "what may be long comes last"
    assert describe_cell(cells, 0, "", {}, {}) == ("cell 0", "free")
    assert sequences_of(cells, 3) == (0, 3)


def test_control_characters_of_a_token_can_be_seen() -> None:
    assert visible("\n\t\x00") == "“⏎⇥\\x00”"
    assert len(visible("x" * 500)) < 40


def test_the_quiet_line() -> None:
    assert stats_parts(STATS) == ("reused 128", "prefilled 12", "first token 0.09 s", "118 tok/s")
    assert stats_parts(replace(STATS, decode_tok_s=0.39))[-1] == "0.4 tok/s", "slow is not 0"
    assert "n_kv 256" in stats_tip(STATS)
    assert stats_tip(replace(STATS, seed=7)) == stats_tip(STATS) + "\nseed 7"


@pytest.mark.parametrize(
    ("verification", "text", "tone"),
    [
        (Verification("verified", 1204), "map verified at operation 1,204", "good"),
        (Verification("mirrored", 12), "map mirrored since operation 12", "secondary"),
        (Verification("mismatch", 9, "used 3, not 4"), "map not verified: used 3, not 4", "warning"),
    ],
)
def test_trust(verification: Verification, text: str, tone: str) -> None:
    assert verification_line(verification) == (text, tone)


def test_runs_of_positions() -> None:
    snapshot = cache_view(runs=((0, 4, (0,), 0, 1), (4, 6, (0,), 10, 1))).snapshot
    assert runs(positions_of(snapshot, 0)) == [(0, 4), (10, 12)]
    assert runs(positions_of(snapshot, 5)) == []


def test_speeds_that_were_not_measured_are_not_told() -> None:
    one = replace(STATS, reused_tokens=139, prefilled_tokens=1, prefill_tok_s=31.0, decode_tok_s=0.0)
    assert "1 were computed\nanswer 40 tokens\n" in stats_tip(one)
    assert "12 were computed (640 tok/s)\nanswer 40 tokens (118 tok/s)\n" in stats_tip(STATS)


def test_documents_that_were_not_read_are_not_among_the_reused() -> None:
    put = replace(STATS, put_tokens=1968)
    assert stats_parts(put)[:3] == ("reused 128", "of documents 1,968", "prefilled 12")
    assert "\n1,968 tokens of documents were read elsewhere and put there: not exact\n" in stats_tip(put)


def test_what_guessing_gave_is_among_the_reasons() -> None:
    stats = replace(STATS, time_why="Quick.", why="", draft_why="No drafts: a batch of 8 costs 8.4 steps here.")
    assert reasons(stats) == "Quick.\nNo drafts: a batch of 8 costs 8.4 steps here."
