"""A second start hands its file to the window that is open."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Client
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.app import application, single_instance
from kvdesk.app.single_instance import SecondStarts, address_in, hand_over
from kvdesk.errors import StoreInUseError, UserError
from kvdesk.ui.shell.main_window import MainWindow
from tests.ui.recording import Recorder, record

SERVER = """
import sys
from multiprocessing.connection import Listener
with Listener(sys.argv[1]):
    print("ready", flush=True)
    sys.stdin.read()
"""


pytestmark = pytest.mark.usefixtures("qapp")


@pytest.fixture
def starts(tmp_path: Path) -> Iterator[SecondStarts]:
    listening = SecondStarts(tmp_path)
    yield listening
    listening.close()


def start(folder: Path, file: str | None, qtbot: QtBot) -> bool:
    """A second start, while this process lives on."""
    answers: list[bool] = []
    other = threading.Thread(target=lambda: answers.append(hand_over(folder, file)))
    other.start()
    qtbot.waitUntil(lambda: not other.is_alive())
    other.join()
    return answers[0]


def test_the_first_start_finds_no_window(tmp_path: Path) -> None:
    assert not hand_over(tmp_path, None)


def test_a_further_start_is_heard_with_its_file(starts: SecondStarts, tmp_path: Path, qtbot: QtBot) -> None:
    heard: list[str] = []
    starts.happened.connect(heard.append)
    strange = str(tmp_path / "ä b.gguf")
    assert start(tmp_path, None, qtbot)
    assert start(tmp_path, "a.gguf", qtbot)
    assert start(tmp_path, strange, qtbot)
    assert heard == ["", str(Path("a.gguf").absolute()), strange]


def test_after_the_end_the_next_start_is_the_first(tmp_path: Path) -> None:
    first = SecondStarts(tmp_path)
    first.close()
    first.close()
    assert not hand_over(tmp_path, None)
    second = SecondStarts(tmp_path)
    second.close()


@pytest.mark.usefixtures("starts")
def test_two_folders_are_two_windows(tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "other").mkdir()
    assert not start(tmp_path / "other", None, qtbot)


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe goes with its process")
def test_what_a_killed_window_left_behind_is_no_window(tmp_path: Path, qtbot: QtBot) -> None:
    address = address_in(tmp_path)
    assert address
    server = subprocess.Popen([sys.executable, "-c", SERVER, address], stdin=-1, stdout=-1)
    assert server.stdout
    assert server.stdin
    server.stdout.readline()
    server.kill()
    server.wait()
    server.stdout.close()
    server.stdin.close()
    assert Path(address).exists()
    assert not hand_over(tmp_path, None)
    listening = SecondStarts(tmp_path)
    assert start(tmp_path, None, qtbot)
    listening.close()


@pytest.mark.skipif(sys.platform == "win32", reason="the socket of a Unix")
@pytest.mark.usefixtures("starts")
def test_others_that_connect_and_say_nothing_do_no_harm(tmp_path: Path, qtbot: QtBot) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(address_in(tmp_path)))
        stranger.sendall(b"\0\0\0\5hello")
    assert start(tmp_path, None, qtbot)
    assert Path(str(address_in(tmp_path))).stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("starts")
def test_a_window_that_hangs_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody runs the event loop here while the second start waits."""
    monkeypatch.setattr(single_instance, "ANSWER_S", 0.05)
    with pytest.raises(UserError, match="open already, but its window does not answer"):
        hand_over(tmp_path, None)


def fill(address: str) -> list[socket.socket]:
    """Connect until no more can wait."""
    waiting: list[socket.socket] = []
    while True:
        waiting.append(socket.socket(socket.AF_UNIX))
        waiting[-1].setblocking(False)
        try:
            waiting[-1].connect(address)
        except BlockingIOError:
            return waiting


@pytest.mark.skipif(sys.platform != "linux", reason="others refuse at once")
def test_a_window_that_was_stopped_is_said_however_many_starts_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    monkeypatch.setattr(single_instance, "ANSWER_S", 0.05)
    address, said = str(address_in(tmp_path)), list[str]()

    def start() -> None:
        with pytest.raises(UserError) as caught:
            hand_over(tmp_path, None)
        said.append(str(caught.value))

    with socket.socket(socket.AF_UNIX) as window:
        window.bind(address)
        window.listen(0)
        waiting = fill(address)
        threading.Thread(target=start, daemon=True).start()
        qtbot.waitUntil(lambda: bool(said))
        for one in waiting:
            one.close()
    assert said == ["kvdesk is open already, but its window does not answer."]


@pytest.mark.skipif(sys.platform != "linux", reason="others refuse at once")
def test_a_window_at_which_too_many_starts_wait_closes(tmp_path: Path, qtbot: QtBot) -> None:
    """Nobody runs the event loop: the first start is not answered, and the others wait."""
    listening = SecondStarts(tmp_path)
    address = str(address_in(tmp_path))
    served = threading.Event()
    listening._told.connect(lambda _file: served.set(), Qt.ConnectionType.DirectConnection)
    with Client(address) as first:
        first.send_bytes(single_instance._OPEN)
        assert served.wait(10)
        waiting = fill(address)
        closing = threading.Thread(target=listening.close, daemon=True)
        closing.start()
        qtbot.waitUntil(lambda: not closing.is_alive(), timeout=10_000)
        for one in waiting:
            one.close()


def test_a_path_too_long_for_a_socket_is_left_alone(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    if sys.platform != "win32":
        assert address_in(deep) is None
    SecondStarts(deep).close()
    assert not hand_over(deep, None)


def test_the_window_comes_up_and_opens_the_file(qapp: object, qtbot: QtBot) -> None:
    window = MainWindow(qapp, commands=Recorder())  # type: ignore[arg-type]
    qtbot.addWidget(window)
    opened = record(window.commands.open_model)
    window.showMinimized()
    application._show_again(window, "")
    assert not window.windowState() & Qt.WindowState.WindowMinimized
    assert opened == []
    application._show_again(window, "/a.gguf")
    assert opened == [(Path("/a.gguf"),)]


def test_a_second_start_ends_before_it_builds_anything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str | None] = []

    def hand_over(_folder: Path, file: str | None) -> bool:
        asked.append(file)
        return True

    monkeypatch.setattr(application, "hand_over", hand_over)
    monkeypatch.setattr("kvdesk.paths.make_private", lambda: None)
    monkeypatch.setattr(application, "build", lambda _file: pytest.fail("a second window is built"))
    assert application.run("a.gguf") == 0
    assert asked == ["a.gguf"]
    assert "is open already" in capsys.readouterr().err


def test_a_start_at_the_same_moment_waits_until_the_other_one_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listens = iter([False, False, True])
    monkeypatch.setattr(application, "hand_over", lambda _folder, _file: next(listens))
    monkeypatch.setattr("kvdesk.app.application.time.sleep", lambda _: None)

    def build(_: str | None) -> None:
        raise StoreInUseError("The conversations are open in another kvdesk.")

    monkeypatch.setattr(application, "build", build)
    assert application._build_or_hand_over(tmp_path, None) is None
    monkeypatch.setattr(application, "hand_over", lambda _folder, _file: False)
    monkeypatch.setattr(application, "ANSWER_S", 0.0)
    with pytest.raises(UserError, match="open in another"):
        application._build_or_hand_over(tmp_path, None)


def test_a_signal_closes_the_window_by_the_event_loop(qapp: object, qtbot: QtBot) -> None:
    """Python runs a signal's handler in the middle of anything."""
    window = MainWindow(qapp)  # type: ignore[arg-type]
    qtbot.addWidget(window)
    window.show()
    application._Closer(window).asked.emit()
    assert window.isVisible()
    qtbot.waitUntil(lambda: not window.isVisible())
