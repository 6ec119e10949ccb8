"""The bar of the context follows what is typed and says what it is filled with."""

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from kvdesk.chat import Conversation
from kvdesk.message import Attachment
from kvdesk.protocol.chat import ContextUse, TurnPreview
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from kvdesk.viewmodel.cells.context_parts import ContextParts, DraftEstimate, parts_of_preview, parts_of_use
from tests.ui.samples import ONE

USE = ContextUse(ONE, 300, 180, 1024, n_system=40, n_answer=128)
PREVIEW = TurnPreview(
    ONE, 300, 12, 90.0, "about 0.1 s", 1024, 312, 40, 128, text="hello", n_system=40, n_attached=(), n_fitting=5
)


def test_parts_of_what_was_counted() -> None:
    assert parts_of_use(USE) == ContextParts(1024, 40, 260, answer=128)
    assert parts_of_preview(PREVIEW) == ContextParts(1024, 40, 272, 0, 40, 128)
    evicting = replace(PREVIEW, n_conversation=950, n_evicted_tokens=200, n_draft=90, n_attached=(30, 20))
    assert parts_of_preview(evicting) == ContextParts(1024, 40, 710, 50, 40, 128)
    assert parts_of_preview(evicting).free == 1024 - 840 - 128


def test_between_two_counts_a_draft_is_estimated_as_the_last_one_was() -> None:
    estimate = DraftEstimate()
    assert estimate.parts(USE, 0, 0) == parts_of_use(USE)
    assert estimate.parts(USE, 40, 20) == replace(parts_of_use(USE), attachments=10, draft=5, is_estimate=True)
    estimate.learn(replace(PREVIEW, text="x" * 100, n_draft=100))
    estimate.learn(replace(PREVIEW, text="x", n_draft=3))  # too short to say anything
    assert estimate.parts(USE, 0, 20).draft == 20


def test_it_follows_what_is_typed(window: MainWindow, qtbot: QtBot) -> None:
    meter = window.chat.composer.meter
    assert not meter.isVisible(), "nothing is known yet"
    window.store.apply(USE)
    assert (meter.isVisible(), meter.number.text()) == (True, "300 / 1,024")
    qtbot.keyClicks(window.chat.composer.edit, "hello")
    assert meter.number.text() == "≈ 301 / 1,024", "at once, not after a pause"
    window.store.apply(PREVIEW)
    assert meter.number.text() == "352 / 1,024"
    qtbot.keyClicks(window.chat.composer.edit, "!")
    assert meter.number.text().startswith("≈")
    window.chat.composer.edit.clear()
    assert meter.number.text() == "300 / 1,024"


def test_the_legend_names_every_part(window: MainWindow, qtbot: QtBot) -> None:
    meter = window.chat.composer.meter
    window.store.apply(USE)
    assert meter.legend.isHidden()
    meter.bar.setFocus()
    qtbot.keyClick(meter.bar, Qt.Key.Key_Space)
    said = "System prompt: 40, History: 260, Attachments: 0, Draft: 0, Free: 596, Room for the answer: 128"
    assert meter.legend.accessibleName() == said
    assert meter.bar.accessibleDescription() == said
    accent = QColor(window.theme.colours.accent).rgb()
    image = meter.grab(QRect(0, meter.bar.height(), meter.width(), meter.height())).toImage()
    inks = {image.pixel(x, y) for x in range(image.width()) for y in range(image.height())}
    assert accent in inks, "the colour of the draft, in the legend"
    assert "Attachments: 0" in meter.bar.toolTip()
    window.store.apply(replace(USE, n_tokens=310))
    assert "History: 270" in meter.legend.accessibleName(), "it goes along"
    qtbot.keyClick(meter.bar, Qt.Key.Key_Space)
    assert meter.legend.isHidden()


def test_what_is_attached_counts_before_the_engine_has_counted(window: MainWindow) -> None:
    window.store.apply(USE)
    paper = Attachment("a.txt", "text", "x" * 383)  # 400 characters as the model reads it
    window.store.show_conversations((Conversation(ONE, "A", 0, draft_attachments=(paper,)),), ONE)
    parts = window.chat.composer.meter.parts
    assert (parts.attachments, parts.is_estimate) == (100, True)


def test_every_part_has_its_width(window: MainWindow) -> None:
    window.store.apply(replace(USE, n_tokens=1024, n_system=512, n_answer=0))
    bar = window.chat.composer.meter.bar
    image = bar.grab().toImage()
    middle = image.height() // 2
    inks = [image.pixelColor(int(image.width() * share), middle).name() for share in (0.1, 0.4, 0.6, 0.9)]
    assert inks[0] == inks[1] != inks[2] == inks[3]


def test_a_context_that_is_full_has_a_full_bar(window: MainWindow) -> None:
    window.store.apply(replace(USE, n_tokens=1030, n_system=0, n_answer=128))
    bar = window.chat.composer.meter.bar
    image = bar.grab().toImage()
    middle = image.height() // 2
    assert len({image.pixelColor(int(image.width() * share), middle).name() for share in (0.1, 0.5, 0.9, 0.97)}) == 1
    assert window.chat.composer.meter.number.text() == "1,030 / 1,024"
    assert ContextParts(1024, history=1000, answer=128).answer_room == 24
