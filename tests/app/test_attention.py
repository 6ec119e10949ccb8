"""What a token looked at, with nothing scripted: window, thread, engine, embedded model."""

from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.protocol.attention import Attended
from kvdesk.settings import Sampling
from kvdesk.store.settings_file import save_settings
from kvdesk.ui.attention.page import AttentionPage
from kvdesk.ui.map.colours import UNKNOWN
from kvdesk.ui.map.raster import FIRST_GROUP, N_SHADES
from kvdesk.ui.messages.attention_words import attention_words
from kvdesk.viewmodel.cells.attention import Scope
from tests.app.whole import SETTINGS, App


def test_what_the_last_token_and_the_answer_looked_at(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    few = {"all_instruments": True, "sampling": Sampling(temperature=0.0, max_tokens=3)}
    save_settings(SETTINGS.model_copy(update=few), paths.settings_file())
    app = App(qtbot)
    window, store = app.parts.window, app.parts.window.store
    stats = app.ask("What is the sea?").stats
    app.wait(lambda: app.used() == stats.cells_used)
    window.kit.actions.run("view.attention")
    page = window.inspector._page(AttentionPage)
    app.wait(page.compute.isEnabled)
    assert "1 token" in page._price.text()

    page.compute.click()
    app.wait(lambda: store.attention.shown is not None)
    assert page._title.text().startswith("What ")
    shown = store.attention.shown
    assert shown.weights.size == stats.cells_used
    assert float(shown.weights.sum(dtype=np.float64)) == pytest.approx(1, abs=1e-4)
    assert page.table.positions[0] == 0, "the first token is the sink of most models"
    app.wait(lambda: page.map._frame is not None and page.map._frame.scene.attention is shown)
    codes = page.map._frame.strips[0].layer(0, stats.cells_used).code
    assert ((codes - FIRST_GROUP) // N_SHADES != UNKNOWN).all(), "every cell was looked at"
    answer = window.chat.view.widgets[-1].message
    words = attention_words(store, answer, window.theme.colours)
    assert words.tints
    assert len(page.heads._heads.layers) == store.model.n_layer if page.heads._heads and store.model else False

    page.choices.scope.setCurrentIndex(page.choices.scope.findData(Scope.ANSWER))
    page.choices.scope.activated.emit(page.choices.scope.currentIndex())
    app.wait(page.compute.isEnabled)
    page.compute.click()
    app.wait(lambda: store.attention.shown is not shown)
    done = app.last(Attended)
    assert isinstance(done, Attended)
    assert len(done.pos) > 1
    total = float(store.attention.shown.weights.sum(dtype=np.float64))
    assert total == pytest.approx(len(done.pos), rel=1e-4)

    app.ask("And a lake?")
    app.wait(lambda: not store.running)
    assert "have changed" not in page._title.text(), "more tokens change nothing"
    window.kit.actions.run("cache.forget")
    app.wait(lambda: "have changed" in page._title.text())
    app.parts.controller.shut_down()
