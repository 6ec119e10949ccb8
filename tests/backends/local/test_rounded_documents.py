"""*Documents as q8_0*: what is kept of documents is rounded by ggml, and converted back when it is used."""

import json
from pathlib import Path

import numpy as np
import pytest

from kvdesk.backends.local.cache_manager.documents import READ_AGAIN
from kvdesk.backends.local.llama.requantize import unrounded
from kvdesk.cache.state.blob import parse_seq_state
from kvdesk.chat import QueuedMessage
from kvdesk.conversations.requests import preview
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.library.gguf_header import read_header
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.cache import OperationDone, RebuildContext, UsePolicy
from kvdesk.protocol.chat import CloseConversation, TurnPreview
from kvdesk.settings import CachePolicy, CacheType
from kvdesk.state_files.reading import open_file
from kvdesk.state_files.restore import judge
from tests.backends.local.conftest import SMALL, opened_with
from tests.backends.local.test_cache_manager import audited
from tests.backends.local.test_documents import FIRST, READ_ONCE, REPORT, SECOND, Chat, store
from tests.backends.local.test_turns import of


@pytest.fixture
def rounding(headless: HeadlessEngine) -> HeadlessEngine:
    """Documents are kept as q8_0."""
    headless.do(UsePolicy(CachePolicy(read_once=True, documents_q8_0=True)))
    return headless


def test_kept_as_q8_0_it_takes_half_and_is_put_there_as_ggml_reads_it(rounding: HeadlessEngine) -> None:
    one, two = Chat(rounding, FIRST), Chat(rounding, FIRST)
    one.ask("How many lamps has Ada?", REPORT)
    (saved,) = [saved for saved in store(rounding)._all() if saved.chats]
    runtime = session_of(rounding).runtime
    per_token = runtime.context.states.seq_size(one.sequence.seq_id) / len(one.sequence.tokens)
    assert saved.rounded
    assert 0.5 < saved.n_bytes / len(saved.tokens) / per_token < 0.6
    assert "(kept as q8_0)" in next(e.reason for e in of(rounding.events, OperationDone) if e.name == "keep document")
    store(rounding).join(saved, ConversationId("another chat"), MessageId("its message"))
    rounding.do(CloseConversation(one.id))
    assert two.ask("Who has three lamps?", REPORT).stats.put_tokens == len(saved.tokens) - READ_AGAIN
    assert any("(kept as q8_0)" in e.reason for e in of(rounding.events, OperationDone) if e.name == "splice")
    audited(rounding)
    traits, states = runtime.context.traits, runtime.context.states
    kept = unrounded(saved.blob or b"", traits)
    put, n = states.seq_get(two.sequence.seq_id), len(saved.tokens)
    (held,), (stored,) = (parse_seq_state(blob, traits.geometry).caches[0] for blob in (put, kept))
    for there, mine in zip(held.sections, stored.sections, strict=True):
        cells = np.frombuffer(put, np.uint8, there.n_bytes, there.offset).reshape(held.n_cells, -1)
        wanted = np.frombuffer(kept, np.uint8, mine.n_bytes, mine.offset).reshape(n, -1)
        at = held.pos.argsort()[saved.first + READ_AGAIN : saved.first + n]
        np.testing.assert_array_equal(cells[at], wanted[READ_AGAIN:])


def test_kept_as_q8_0_after_a_restart_without_the_setting(
    talking_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = []
    for beginning, rounds in ((FIRST, True), (SECOND, False)):
        for headless in opened_with(talking_file, SMALL):
            headless.do(UsePolicy(CachePolicy(read_once=True, documents_q8_0=rounds), tmp_path))
            swapper = session_of(headless).runtime.cache_manager.swapper
            monkeypatch.setattr(swapper, "_costs", lambda n, _: (1e3 * n, 1.0))
            chat, draft = Chat(headless, beginning), QueuedMessage("Who has three lamps?", (REPORT,))
            (price,) = of(headless.do(preview(chat.known, [], draft, READ_ONCE)), TurnPreview)
            put.append(chat.ask(draft.text, REPORT).stats.put_tokens)
            assert price.n_put == put[-1]
            audited(headless)
    assert put[0] == 0 < put[1]
    (row,) = (row for row in json.loads((tmp_path / "index.json").read_bytes()) if row["chats"])
    assert row["rounded"]
    kept = [open_file(path).file for path in tmp_path.rglob("*") if path.is_file() and path.name != "index.json"]
    (rounded,) = (file for file in kept if file.made_by is not None and file.made_by.get("kept_as") == "q8_0")
    fit = judge(rounded, read_header(talking_file), SMALL)
    assert (fit.fits, "converts" in fit.reasons[0]) == (None, True)


def test_its_price_has_the_time_to_read_it_back(rounding: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Chat(rounding, FIRST), Chat(rounding, SECOND)
    one.ask("How many lamps has Ada?", REPORT)
    (saved,) = [saved for saved in store(rounding)._all() if saved.chats]
    prices, kept = [], session_of(rounding).runtime.documents
    for ms in (0.0, 1e-4):
        monkeypatch.setitem(kept.__dict__, "_unrounding_ms", ms)
        draft = QueuedMessage("Who has three lamps?", (REPORT,))
        (price,) = of(rounding.do(preview(two.known, [], draft, READ_ONCE)), TurnPreview)
        prices.append(price.first_token_ms or 0.0)
    assert prices[1] - prices[0] == pytest.approx(1e-4 * saved.n_bytes)


def test_when_the_types_of_the_cache_change_it_is_what_they_say(rounding: HeadlessEngine) -> None:
    """Conversion reads the rows as they are kept, and writes those of the new context."""
    one, two = Chat(rounding, FIRST), Chat(rounding, SECOND)
    one.ask("How many lamps has Ada?", REPORT)
    wider = SMALL.model_copy(update={"type_k": CacheType.F32, "type_v": CacheType.F32})
    rounding.do(RebuildContext(wider, keep="state"))
    try:
        (saved,) = [saved for saved in store(rounding)._all() if saved.chats]
        assert not saved.rounded
        assert two.ask("Who has three lamps?", REPORT).stats.put_tokens == len(saved.tokens) - READ_AGAIN
        audited(rounding)
    finally:
        rounding.do(RebuildContext(SMALL, keep="nothing"))
