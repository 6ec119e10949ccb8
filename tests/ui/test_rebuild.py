"""A context made again with other settings: what the window shows before, and its call."""

import pytest
from pytestqt.qtbot import QtBot

from kvdesk.protocol import cache as protocol
from kvdesk.protocol.chat import Working
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from tests.ui.recording import Record
from tests.ui.samples import CONVERSATIONS, cache_view
from tests.ui.seen import effect_text, ledger_text
from tests.ui.test_operations import done, show


def test_a_rebuild_that_reads_again_ends_with_a_card(window: MainWindow) -> None:
    show(window)
    window.store.apply(Working("Reading conversations again", 0, 1066))
    assert window.activity.text == "Reading conversations again: 0 of 1,066 tokens"
    window.store.apply(protocol.Refilled(3, 1066, 0, 1, 7700.0))
    card = window.inspector.cache.instruments.effect
    assert card.isVisible()
    assert not card.undo_button.isVisible()
    assert "Read again: 1,066 tokens in 7.7 s (138 tok/s)." in effect_text(card)
    assert "Conversations in the new cache: 3; without room: 1." in effect_text(card)
    window.store.apply(done())
    assert "Cells in use 220 → 64" in effect_text(card), "the next operation has its numbers again"


def preview(settings: ContextSettings, **fields: object) -> protocol.ContextPreview:
    base = protocol.ContextPreview(
        settings, "", 3_000_000, 3_000_000, 0, 12_000_000, 900_000_000, 110.0, 220, 1.5, False, "Types differ."
    )
    return replace(base, **fields)  # type: ignore[arg-type]


@pytest.mark.usefixtures("fresh")
def test_a_context_is_shown_before_it_is_made(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    sent, rebuilds = record(window.commands.submit), record(window.commands.rebuild)
    window.store.apply(cache_view())
    panel = window.rooms.show_settings()
    assert panel.bar.isHidden(), "nothing is asked about"
    panel.field("context", "n_ctx").setValue(512)  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: len(sent) == 1)
    settings = sent[0][0].settings  # type: ignore[attr-defined]
    assert sent[0][0] == protocol.PreviewContext(ContextSettings(n_ctx=512))
    window.store.apply(preview(settings))
    assert "K 6.0 → 3.0 MB" in ledger_text(panel.bar.ledger)
    assert "18.0 of 900 MB" in ledger_text(panel.bar.ledger)
    assert "about 110 tok/s" in ledger_text(panel.bar.ledger)
    panel.bar.ledger.set_keep("tokens")
    assert "Prefilled again: 220 tokens in about 1.5 s" in ledger_text(panel.bar.ledger)
    assert "cells" not in ledger_text(panel.bar.ledger)
    window.store.apply(preview(settings, n_cells=1066))
    assert "Prefilled again: 220 tokens in about 1.5 s" in ledger_text(panel.bar.ledger)
    assert "Removed from the cache: 1,066 cells." in ledger_text(panel.bar.ledger)
    assert "recurrent" not in ledger_text(panel.bar.ledger)
    window.store.apply(preview(settings, recurrent_bytes=8_000_000))
    assert "recurrent 8.0 MB\n" in ledger_text(panel.bar.ledger)
    window.store.apply(preview(settings, recurrent_bytes=8_000_000, n_earlier=7, earlier_bytes=7_000_000))
    assert "recurrent 8.0 MB, of which 7 earlier states 7.0\n" in ledger_text(panel.bar.ledger)
    window.store.apply(preview(settings, n_cells=1066))
    panel.bar.ledger.set_keep("nothing")
    assert "Removed from the cache: 1,066 cells" in ledger_text(panel.bar.ledger)
    panel.bar.ledger.set_keep("tokens")
    panel.bar.apply.click()
    assert rebuilds == [(settings, "tokens")]


@pytest.mark.usefixtures("fresh")
def test_a_conversion_is_offered_with_its_price(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    sent, rebuilds = record(window.commands.submit), record(window.commands.rebuild)
    window.store.apply(cache_view())
    question = window.inspector.cache.instruments.question
    question.ask(ContextSettings(type_k=CacheType.Q8_0), 12, [("A chat", 12)])
    possible = {"carries_state": True, "why_not_carried": "", "n_cells": 1066, "convert_seconds": 0.42}
    window.store.apply(preview(ContextSettings(type_k=CacheType.Q8_0), **possible))
    assert question._buttons["state"].text() == "Convert K and V"
    assert "Converting K and V takes about 0.42 s, and nothing leaves the cache." in question._cost.text()
    question._buttons["state"].click()
    assert rebuilds == [(ContextSettings(type_k=CacheType.Q8_0), "state")]
    window.rooms.show_settings()
    panel, n = window.rooms.settings, len(sent)
    panel.field("context", "n_ctx").setValue(512)
    qtbot.waitUntil(lambda: len(sent) > n)
    window.store.apply(preview(sent[-1][0].settings, **possible))  # type: ignore[attr-defined]
    ledger = panel.bar.ledger
    ledger.set_keep("state")
    said = ledger_text(ledger)
    assert "Converted in about 0.42 s: 1,066 cells. Nothing is computed, and it can be undone." in said
    assert "removed" not in said


def test_a_context_that_cannot_be_made_is_not_applied(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    sent = record(window.commands.submit)
    panel = window.rooms.show_settings()
    panel.field("context", "n_ctx").setValue(1_000_000)  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: len(sent) == 1)
    window.store.apply(preview(sent[0][0].settings, refused="It needs 30 GB; 0.9 GB are free."))  # type: ignore[attr-defined]
    assert not panel.bar.apply.isEnabled()
    assert "30 GB" in ledger_text(panel.bar.ledger)
    panel.field("context", "n_ctx").setValue(1024)  # type: ignore[attr-defined]
    assert panel.bar.apply.isEnabled(), "another one is another question"


def test_a_rebuild_says_its_call_and_cost_first(window: MainWindow, record: Record) -> None:
    sent, rebuilds = record(window.commands.submit), record(window.commands.rebuild)
    window.store.apply(cache_view())
    window.store.count()
    window.inspector.cache.rebuild.click()
    question = window.inspector.cache.instruments.question
    assert rebuilds == []
    assert sent == [(protocol.PreviewContext(ContextSettings()),)]
    names = [conversation.title for conversation in CONVERSATIONS]
    used = sum(stream.used for stream in cache_view().snapshot.maps[0].streams)
    assert (
        f"removes all {used} cells in use from the cache: 180 of “{names[0]}”, 72 of “{names[1]}”."
        in question._what.text()
    )
    assert "llama_free(ctx); llama_init_from_model(model, params)" in question._call.text()
    assert not question._buttons["state"].isEnabled(), "nobody knows yet whether that is possible"
    window.store.apply(preview(ContextSettings()))
    assert "Reading 220 tokens again takes about 1.5 s at the measured speed." in question._cost.text()
    question._buttons[""].click()
    assert (question.isHidden(), rebuilds) == (True, [])
    window.inspector.cache.rebuild.click()
    question._buttons["tokens"].click()
    assert (question.isHidden(), rebuilds) == (True, [(ContextSettings(), "tokens")])
