"""Several downloads: in order, paused, resumed, cancelled, failed, and found again at the next start."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Condition, Event, Thread

import pytest

from kvdesk.library import download, download_queue
from kvdesk.library.download_queue import Download, DownloadQueue, State
from kvdesk.library.hub import Hub, RemoteModel
from kvdesk.library.recommended import recommended
from tests.library.hub_server import PIECE, HubServer

FILES = {f"m{n}/r": {f"m{n}.gguf": random.Random(n).randbytes(40 * PIECE)} for n in (1, 2)}
KEYS = ["m1/r/m1.gguf", "m2/r/m2.gguf"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    monkeypatch.setattr(download, "WAITS_S", (0.0,))
    with HubServer({repo: dict(files) for repo, files in FILES.items()}) as server:
        yield server


class Rig:
    def __init__(self, server: HubServer, folder: Path) -> None:
        self.hub = Hub(server.endpoint)
        self.seen = Condition()
        self.states: dict[str, Download] = {}
        self.order: list[tuple[str, State]] = []
        self.queue = DownloadQueue(lambda: self.hub, self._tell, folder)

    def _tell(self, downloads: tuple[Download, ...]) -> None:
        with self.seen:
            self.states = {one.key: one for one in downloads}
            for one in downloads:
                if (one.key, one.state) not in self.order:
                    self.order.append((one.key, one.state))
            self.seen.notify_all()

    def wait(self, there: Callable[[], bool]) -> None:
        with self.seen:
            assert self.seen.wait_for(there, 20), self.states

    def wait_for(self, key: str, state: State) -> Download:
        self.wait(lambda: key in self.states and self.states[key].state is state)
        return self.states[key]

    def add(self, *repos: str) -> None:
        for repo in repos:
            self.queue.add(self.hub.models(repo)[0])


@pytest.fixture
def rig(server: HubServer, tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(server, tmp_path)
    yield rig
    rig.queue.close()


def test_one_after_the_other(rig: Rig) -> None:
    rig.add("m1/r", "m2/r")
    path = rig.wait_for(KEYS[1], State.DONE).path
    assert path.read_bytes() == FILES["m2/r"]["m2.gguf"]
    assert rig.order.index((KEYS[0], State.DONE)) < rig.order.index((KEYS[1], State.RUNNING))


def test_paused_resumed_and_the_next_goes_on_meanwhile(rig: Rig, server: HubServer, tmp_path: Path) -> None:
    def pause_first(sent: int) -> None:
        if sent == 8 * PIECE and rig.queue.downloads[0].state is State.RUNNING:
            rig.queue.pause(KEYS[0])

    server.on_piece = pause_first
    rig.add("m1/r", "m2/r")
    rig.wait_for(KEYS[1], State.DONE)
    assert rig.states[KEYS[0]].state is State.PAUSED
    assert list((tmp_path / "m1/r").glob("*.gguf")) == []
    server.on_piece = None
    rig.queue.resume(KEYS[0])
    assert rig.wait_for(KEYS[0], State.DONE).done_bytes == 40 * PIECE


def test_the_next_start_finds_what_was_not_finished(rig: Rig, server: HubServer, tmp_path: Path) -> None:
    server.on_piece = lambda sent: rig.queue.pause(KEYS[0]) if sent == 8 * PIECE else None
    rig.add("m1/r")
    rig.wait_for(KEYS[0], State.PAUSED)
    rig.queue.close()
    server.on_piece = None
    again = Rig(server, tmp_path)
    again.queue.restore()
    again.wait_for(KEYS[0], State.PAUSED)
    again.queue.resume(KEYS[0])
    again.wait_for(KEYS[0], State.DONE)
    again.queue.close()


def test_cancelled_leaves_nothing(rig: Rig, server: HubServer, tmp_path: Path) -> None:
    server.on_piece = lambda sent: rig.queue.cancel(KEYS[0]) if sent == 8 * PIECE else None
    rig.add("m1/r", "m2/r")
    rig.wait_for(KEYS[1], State.DONE)
    assert list(rig.states) == KEYS[1:]
    assert not (tmp_path / "m1").exists()


def test_the_disk_is_not_waited_for(
    rig: Rig, server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither looking through all folders nor deleting gigabytes."""
    server.on_piece = lambda sent: rig.queue.pause(KEYS[0]) if sent == 8 * PIECE else None
    rig.add("m1/r")
    rig.wait_for(KEYS[0], State.PAUSED)
    may, begun = Event(), Event()

    def slow(work: Callable[..., object]) -> Callable[..., object]:
        def wait(*args: object) -> object:
            begun.set()
            assert may.wait(20)
            return work(*args)

        return wait

    monkeypatch.setattr(download_queue, "discard", slow(download.discard))
    monkeypatch.setattr(download_queue, "unfinished", slow(download.unfinished))
    asked: list[Thread] = []
    for ask in (rig.queue.restore, partial(rig.queue.cancel, KEYS[0])):
        asked.append(Thread(target=ask))
        asked[-1].start()
        asked[-1].join(10)
        assert begun.wait(10)
    others = [thread.is_alive() for thread in asked]
    may.set()
    assert others == [False, False]
    rig.wait(lambda: not rig.states)
    rig.queue.close()
    assert not (tmp_path / "m1").exists()


def test_cancelled_while_another_one_runs_makes_room_at_once(
    rig: Rig, server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on_piece = lambda sent: rig.queue.pause(KEYS[0]) if sent == 8 * PIECE else None
    rig.add("m1/r")
    rig.wait_for(KEYS[0], State.PAUSED)
    meanwhile: list[State] = []

    def discard(model: RemoteModel, folder: Path | None) -> None:
        meanwhile.extend(one.state for one in rig.queue.downloads)
        download.discard(model, folder)

    monkeypatch.setattr(download_queue, "discard", discard)
    server.on_piece = lambda sent: rig.queue.cancel(KEYS[0]) if sent == 8 * PIECE else None
    rig.add("m2/r")
    rig.wait_for(KEYS[1], State.DONE)
    assert meanwhile == [State.RUNNING]
    assert not (tmp_path / "m1").exists()


def test_a_failure_is_a_sentence_and_can_be_resumed(rig: Rig, server: HubServer) -> None:
    server.claimed["m1.gguf"] = "0" * 64
    rig.add("m1/r")
    assert "does not match the SHA-256" in rig.wait_for(KEYS[0], State.FAILED).remark
    server.claimed.clear()
    rig.add("m1/r")
    rig.wait_for(KEYS[0], State.DONE)


def test_speed_and_time_left() -> None:
    one = Download("k", "t", State.RUNNING, 250, 1000, 50.0)
    assert one.left_s == 15.0
    assert Download("k", "t", State.RUNNING, 250, 1000).left_s is None


def test_the_recommended_ones_are_sorted_by_size_and_complete() -> None:
    models = recommended()
    assert [model.size_mb for model in models] == sorted(model.size_mb for model in models)
    assert all(model.file.endswith(".gguf") and "/" in model.repo and model.licence for model in models)
    assert models[0].size_mb > 300
    assert models[-1].size_mb < 6000
