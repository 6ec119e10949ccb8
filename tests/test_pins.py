"""The pins that were paid for: what a new version of a dependency must not be allowed to bring back."""

from importlib.metadata import version

from PySide6.QtCore import QObject, Signal

from kvdesk.paths import embedded_model


class _Source(QObject):
    ticked = Signal(int)


def test_fifty_thousand_emits_do_not_kill_the_process() -> None:
    """PySide6 6.12.0 loses a reference to True at every emit: Python 3.11 aborts after about 550."""
    source = _Source()
    seen = 0

    def count(_: int) -> None:
        nonlocal seen
        seen += 1

    source.ticked.connect(count)
    for number in range(50_000):
        source.ticked.emit(number)
    assert seen == 50_000


def test_the_engine_is_the_one_the_mirror_was_written_for() -> None:
    assert version("llama-cpp-python") == "0.3.36"


def test_the_sandbox_is_one_without_the_known_escapes() -> None:
    assert tuple(int(part) for part in version("jinja2").split(".")[:3]) >= (3, 1, 6)


def test_the_embedded_model_is_there() -> None:
    model = embedded_model()
    with model.open("rb") as file:
        assert file.read(4) == b"GGUF"


def test_the_sqlite_in_use_is_not_the_systems() -> None:
    """SQLite 3.7.0 to 3.51.2 can lose a WAL when two connections meet; apsw brings its own."""
    import apsw

    assert tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) > (3, 51, 2)
