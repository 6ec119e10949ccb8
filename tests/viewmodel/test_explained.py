"""The figures of the explanation: numbers of the model and the chat, not of an example."""

import numpy as np
import pytest

from kvdesk.cache.snapshot import CacheMap
from kvdesk.message import MessageId
from kvdesk.protocol.cache import MessageSpan
from kvdesk.values import replace
from kvdesk.viewmodel.explained import Facts, parts
from tests.ui.samples import CONTEXT, STATS, cache_view

SPANS = tuple(
    MessageSpan(MessageId(str(i)), p0, p1, p0, ()) for i, (p0, p1) in enumerate(((0, 32), (32, 100), (100, 180)))
)
FACTS = Facts(CONTEXT, cache_view().snapshot, n_layer=2, n_ctx_train=4096, own_cells=180, stats=STATS, spans=SPANS)


def figure(title: str, facts: Facts = FACTS) -> dict[str, str]:
    (part,) = [part for part in parts(facts) if part.title == title]
    return {bar.label: bar.text for bar in part.bars}


def test_a_cell_has_the_bytes_that_the_engine_allocated() -> None:
    n_bytes = CONTEXT.k_bytes / CONTEXT.n_ctx
    assert figure("What is kept")["K of one token, f16"] == f"{n_bytes:,.0f} bytes"
    assert figure("What is kept")["Both in one of 2 layers"] == f"{n_bytes:,.0f} bytes"


def test_lengths_end_with_what_the_model_was_trained_on_and_name_the_one_that_is_open() -> None:
    assert list(figure("How long a context fits")) == ["1,024 tokens, now", "4,096 tokens"]
    assert figure("How long a context fits")["4,096 tokens"] == "48 MB"


def test_a_window_has_no_line_of_lengths_but_says_how_far_it_looks() -> None:
    snapshot = cache_view().snapshot
    (plain,) = snapshot.maps
    windowed = replace(snapshot, maps=(replace(plain, name="base"), CacheMap("window", plain.streams, 512)))
    facts = replace(FACTS, snapshot=windowed)
    assert figure("How long a context fits", facts) == {}
    assert figure("Windows and recurrent layers", facts) == {
        "Without a window, back to": "1,024 tokens",
        "With a window, back to": "512 tokens",
    }


def test_the_last_turn_is_shown_with_what_it_reused() -> None:
    assert figure("Why a second turn is fast") == {
        "In the cache": "128 tokens",
        "Read": "12 tokens, first token after 0.09 s",
    }
    assert figure("Why a second turn is fast", replace(FACTS, stats=None)) == {}


def test_an_edit_costs_all_that_follows() -> None:
    unknown = replace(STATS, prefill_tok_s=0.0)
    assert figure("What an edit costs", replace(FACTS, stats=unknown)) == {
        "Message 1": "180 tokens",
        "Message 2": "148 tokens",
        "Message 3": "80 tokens",
    }
    measured = replace(STATS, prefilled_tokens=600, prefill_tok_s=100.0)
    assert figure("What an edit costs", replace(FACTS, stats=measured))["Message 1"] == "180 tokens, 1.8 s"


def test_cells_are_those_of_the_map() -> None:
    assert figure("When the cache is full") == {
        "This chat": "180 cells",
        "Other chats": "40 cells",
        "Free": "804 cells",
    }


@pytest.mark.parametrize(("kind", "share"), [("f16", 1.0), ("q8_0", 34 / 64), ("q4_0", 18 / 64)])
def test_types_are_converted_by_their_rows(kind: str, share: float) -> None:
    (part,) = [part for part in parts(FACTS) if part.title == "Smaller numbers"]
    by_label = {bar.label.removesuffix(", now"): bar.value for bar in part.bars}
    assert np.isclose(by_label[kind], 12_000_000 * share)


def test_without_a_model_every_figure_says_what_would_fill_it() -> None:
    assert all(part.missing and not part.bars for part in parts(Facts()))
