"""Nothing that is remembered is lost by whatever else changes a setting, in the real window and after a restart."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSpinBox
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import ModelLoaded
from kvdesk.protocol.model import Endpoint, LocalFile
from kvdesk.settings import KnownServer, Settings, ThemeChoice, WindowPlace
from kvdesk.store.settings_file import load_settings
from kvdesk.ui.chat_list.conversation_model import ConversationModel
from kvdesk.ui.models.get_models import GetModels
from kvdesk.values import replace
from tests.app.conftest import Rig
from tests.ui.samples import CONTEXT, MODEL

CONTROL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
HUB = "http://127.0.0.1:9"
URL = "http://bigbox:8080"


@pytest.fixture
def rig(make_rig: Callable[..., Rig], qtbot: QtBot) -> Iterator[Rig]:
    """A model, a server, the hub and what is served are remembered; the model is open."""
    paths.settings_file().unlink(missing_ok=True)
    rig = make_rig()
    rig.window.show()
    qtbot.waitExposed(rig.window)
    folder = paths.data_dir() / "models"
    favourite, model = folder / "favourite.gguf", folder / "mine.gguf"
    rig.worker.give(ModelLoaded(replace(MODEL, source=Endpoint(URL, "tiny", "bigbox"))))
    rig.worker.give(ModelLoaded(replace(MODEL, source=LocalFile(favourite))))
    rig.worker.give(ModelLoaded(replace(MODEL, source=LocalFile(model))), ContextReady(CONTEXT, rebuilt=False))
    qtbot.waitUntil(lambda: len(rig.controller.settings.models) == 2)
    rig.window.rooms.show_models(get=True)
    page = rig.window.rooms.models
    assert isinstance(page.get_models, GetModels)
    rig.controller.downloads.set_access(HUB, None)
    rig.controller.models.mark(favourite, favourite=True)
    rig.window.rooms.show_chats()
    settings = rig.window.rooms.show_settings()
    settings.field("serve", "port").setProperty("value", 1)
    for name in ("others", "inspect"):
        settings.field("serve", name).setProperty("checked", True)
    rig.window.rooms.show_chats()
    yield rig
    paths.settings_file().unlink(missing_ok=True)


def is_remembered(settings: Settings) -> None:
    assert Path(settings.model).name == "mine.gguf"
    assert [Path(used.path).name for used in settings.models] == ["mine.gguf", "favourite.gguf"]
    assert settings.models[1].favourite
    assert settings.servers == (KnownServer(url=URL, name="bigbox", model="tiny"),)
    assert settings.hub_endpoint == HUB
    assert (settings.serve.port, settings.serve.others, settings.serve.inspect) == (1, True, True)


def press(rig: Rig, qtbot: QtBot, key: Qt.Key, modifiers: Qt.KeyboardModifier) -> None:
    rig.window.activateWindow()
    qtbot.waitUntil(rig.window.isActiveWindow)
    qtbot.keyClick(rig.window, key, modifiers)


def hide_sidebar(rig: Rig, qtbot: QtBot) -> None:
    press(rig, qtbot, Qt.Key.Key_B, CONTROL)
    assert not rig.controller.settings.sidebar_visible


def hide_inspector(rig: Rig, qtbot: QtBot) -> None:
    press(rig, qtbot, Qt.Key.Key_I, CONTROL)
    assert not rig.controller.settings.inspector_visible


def show_instruments(rig: Rig, qtbot: QtBot) -> None:
    press(rig, qtbot, Qt.Key.Key_I, CONTROL | SHIFT)
    assert rig.controller.settings.all_instruments


def choose_theme(rig: Rig, _qtbot: QtBot) -> None:
    rig.window.action_set.run("view.theme_light")
    assert rig.controller.settings.theme is ThemeChoice.LIGHT


def zoom(rig: Rig, _qtbot: QtBot) -> None:
    rig.window.action_set.run("view.zoom_in")
    assert rig.controller.settings.zoom == 110


def enlarge_text(rig: Rig, _qtbot: QtBot) -> None:
    rig.window.action_set.run("view.larger_text")
    assert rig.controller.settings.font_px


def collapse_folder(rig: Rig, _qtbot: QtBot) -> None:
    rig.window.conversations.view.collapsed.emit("Work", True)
    assert rig.controller.settings.collapsed_folders == ("Work",)


def end_tour(rig: Rig, qtbot: QtBot) -> None:
    rig.window.help.start_tour()
    tour = rig.window.help.introduction
    assert tour is not None
    qtbot.keyClick(tour, Qt.Key.Key_Escape)
    assert rig.controller.settings.tour_seen


def apply_settings(rig: Rig, qtbot: QtBot) -> None:
    page = rig.window.rooms.show_settings()
    top_k = page.field("sampling", "top_k")
    assert isinstance(top_k, QSpinBox)
    top_k.setValue(7)
    qtbot.mouseClick(page.bar.apply, Qt.MouseButton.LeftButton)
    rig.window.rooms.show_chats()
    assert rig.controller.settings.sampling.top_k == 7


def save_preset(rig: Rig, _qtbot: QtBot) -> None:
    page = rig.window.rooms.show_settings()
    page.presets.save("Mine")
    rig.window.rooms.show_chats()
    assert [preset.name for preset in rig.controller.settings.presets] == ["Mine"]


def move_window(rig: Rig, qtbot: QtBot) -> None:
    before = rig.controller.settings.window
    rig.window.resize(rig.window.width() - 40, rig.window.height() - 40)
    qtbot.waitUntil(lambda: rig.controller.settings.window not in (before, WindowPlace()))


ACTIONS = (
    hide_inspector,  # first: the screen of these tests is too narrow for both
    hide_sidebar,
    show_instruments,
    choose_theme,
    zoom,
    enlarge_text,
    collapse_folder,
    end_tour,
    apply_settings,
    save_preset,
    move_window,
)


def test_nothing_remembered_is_lost_by_a_change_and_a_restart(
    rig: Rig, make_rig: Callable[..., Rig], qtbot: QtBot
) -> None:
    is_remembered(rig.controller.settings)
    for act in ACTIONS:
        act(rig, qtbot)
        is_remembered(rig.controller.settings)
        assert load_settings(paths.settings_file()) == (rig.controller.settings, ""), act.__name__
    last = rig.controller.settings
    rig.window.close()
    assert rig.controller.settings.model_copy(update={"window": last.window, "chat": last.chat}) == last
    again = make_rig(settings=load_settings(paths.settings_file())[0])
    is_remembered(again.controller.settings)
    assert again.controller.settings == rig.controller.settings
    model = again.window.conversations.view.model()
    assert isinstance(model, ConversationModel)
    assert model.collapsed == {"Work"}
    assert again.window.theme.colours is rig.window.theme.colours


def test_what_is_remembered_later_costs_the_window_nothing(rig: Rig, qtbot: QtBot) -> None:
    """The other way round: the controller remembers while the window shows changes of its own."""
    hide_inspector(rig, qtbot)
    hide_sidebar(rig, qtbot)
    choose_theme(rig, qtbot)
    page = rig.window.rooms.show_settings()
    top_k = page.field("sampling", "top_k")
    assert isinstance(top_k, QSpinBox)
    top_k.setValue(7)
    other = paths.data_dir() / "models" / "other.gguf"
    rig.worker.give(ModelLoaded(replace(MODEL, source=LocalFile(other))))
    qtbot.waitUntil(lambda: len(rig.controller.settings.models) == 3)
    assert top_k.value() == 7, "what is edited stays"
    qtbot.mouseClick(page.bar.apply, Qt.MouseButton.LeftButton)
    saved, _ = load_settings(paths.settings_file())
    assert (Path(saved.model).name, len(saved.models)) == ("other.gguf", 3)
    assert (saved.sidebar_visible, saved.theme, saved.sampling.top_k) == (False, ThemeChoice.LIGHT, 7)


def test_settings_that_cannot_be_saved_are_reported(rig: Rig, qtbot: QtBot) -> None:
    paths.settings_file().unlink()
    paths.settings_file().mkdir()
    try:
        hide_inspector(rig, qtbot)
        assert "cannot be saved" in rig.window.chat.banner.sentence
    finally:
        paths.settings_file().rmdir()
