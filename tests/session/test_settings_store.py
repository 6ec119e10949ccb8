"""One owner: a change touches the fields it names, is saved at once, and is heard."""

from functools import partial
from pathlib import Path
from threading import Barrier, Thread

import pytest

from kvdesk.errors import KvdeskError, StoreError
from kvdesk.session import SettingsStore, Store
from kvdesk.settings import KnownServer, Settings, ThemeChoice
from kvdesk.store.settings_file import load_settings, save_changes

SERVER = KnownServer(url="http://big", name="bigbox")


def test_a_change_touches_its_fields_alone_and_is_heard_with_their_names() -> None:
    saved: list[tuple[Settings, Settings]] = []
    store = SettingsStore(Settings(servers=(SERVER,)), lambda before, now: saved.append((before, now)))
    heard: list[frozenset[str]] = []
    store.listen(heard.append)
    store.change(theme=ThemeChoice.DARK, zoom=100)
    expected = Settings(servers=(SERVER,), theme=ThemeChoice.DARK)
    assert store.current == expected
    assert heard == [frozenset({"theme"})], "the zoom was 100 before"
    assert saved == [(Settings(servers=(SERVER,)), expected)]
    store.change(theme=ThemeChoice.DARK)
    assert (len(heard), len(saved)) == (1, 1), "nothing differs"


def test_a_listener_may_change_more_and_may_stop_listening() -> None:
    store = Store().settings
    heard: list[frozenset[str]] = []

    def on_changed(changed: frozenset[str]) -> None:
        heard.append(changed)
        store.change(zoom=150)

    end = store.listen(on_changed)
    store.change(tour_seen=True)
    assert heard == [frozenset({"tour_seen"}), frozenset({"zoom"})]
    assert (store.current.tour_seen, store.current.zoom) == (True, 150)
    end()
    store.change(zoom=50)
    assert len(heard) == 2


def test_a_misspelled_field_is_refused() -> None:
    store = Store().settings
    with pytest.raises(TypeError, match="colour"):
        store.change(colour="red")
    assert store.current == Settings()


def test_what_cannot_be_saved_counts_all_the_same_and_is_reported() -> None:
    def fail(_before: Settings, _now: Settings) -> None:
        raise StoreError("The settings cannot be saved (disk full).")

    complaints: list[KvdeskError] = []
    store = SettingsStore(Settings(), fail, complaints.append)
    heard: list[frozenset[str]] = []
    store.listen(heard.append)
    store.change(zoom=150)
    assert [str(error) for error in complaints] == ["The settings cannot be saved (disk full)."]
    assert (store.current.zoom, heard) == (150, [frozenset({"zoom"})])


def test_what_was_not_saved_is_saved_with_the_next_change() -> None:
    saved: list[tuple[Settings, Settings]] = []
    errors: list[Exception] = [StoreError("The disk is full."), OverflowError("too large")]

    def save(before: Settings, now: Settings) -> None:
        if errors:
            raise errors.pop(0)
        saved.append((before, now))

    complaints: list[KvdeskError] = []
    store = SettingsStore(Settings(), save, complaints.append)
    heard: list[frozenset[str]] = []
    store.listen(heard.append)
    store.change(zoom=150)
    store.change(tour_seen=True)
    store.change(zoom=125)
    assert [str(error) for error in complaints] == [
        "The disk is full.", "Something unexpected went wrong: too large"
    ]  # fmt: skip
    assert saved == [(Settings(), Settings(zoom=125, tour_seen=True))]
    assert heard == [{"zoom"}, {"tour_seen"}, {"zoom"}]


def test_two_stores_that_write_the_same_file_lose_nothing_of_one_another(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    first, second = (SettingsStore(Settings(), partial(save_changes, path=path)) for _ in range(2))
    together = Barrier(2)

    def write(store: SettingsStore, field: str) -> None:
        together.wait()
        for n in range(1, 41):
            store.change(**{field: f"{n}"})

    threads = [Thread(target=write, args=args) for args in ((first, "model"), (second, "server"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first.change(servers=(SERVER,))
    settings, complaint = load_settings(path)
    assert (settings, complaint) == (Settings(model="40", server="40", servers=(SERVER,)), "")
