"""The settings as a JSON file. Owns reading what may be broken, writing what must not be.

Only what differs from its default is written, so that a better default reaches everybody who never chose another.
A change is merged into the file: what another program or a newer version wrote there stays.
Version 1 wrote everything: what it saved of `_OLD_DEFAULTS` was nobody's choice. Only here are settings named.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final

from pydantic import ValidationError

from kvdesk.errors import StoreError, explained
from kvdesk.loose_json import json_value
from kvdesk.message import storable
from kvdesk.paths import open_regular
from kvdesk.settings import Settings
from kvdesk.settings.table import Table
from kvdesk.translation import tr
from kvdesk.whole_file import write_whole

_MOST_BYTES = 16 << 20  # far above any file with a few presets
_VERSION = 2
_OLD_DEFAULTS: Final = (("context", "n_ubatch", 32),)
"""Defaults of version 1 that are others now: table, name, value."""
_MEANT_BEFORE: Final = {"all_instruments": True}
"""What version 1 did that had no such setting: who had all instruments keeps them."""
_WRITING: Final = Lock()
LOCK_S: Final = 0.5
"""So long another process may keep the folder locked: one that saves takes the time of a flush to the disk."""


def load_settings(path: Path) -> tuple[Settings, str]:
    """The settings, and a sentence when part of the file could not be used (empty when all is well).

    What is broken or out of range falls back to its default; the file is then kept beside as `<name>.broken`.
    """
    try:
        raw = _read(path)
    except FileNotFoundError:
        return Settings(), ""
    except OSError as error:
        return Settings(), tr("The settings in {name} cannot be read ({strerror}); defaults are used.").format(
            name=path.name, strerror=error.strerror
        )
    found = _parsed(raw)
    if found is None:
        return Settings(), tr("The settings in {name} are damaged; defaults are used.{keep}").format(
            name=path.name, keep=_keep(path, raw)
        )
    _upgrade(found)
    settings, broken = _validated(found)
    if not broken:
        return settings, ""
    names = ", ".join(broken)
    return settings, tr("Some settings in {name} cannot be used and have their defaults: {names}.{keep}").format(
        name=path.name, names=names, keep=_keep(path, raw)
    )


def save_settings(settings: Settings, path: Path) -> None:
    """Replace whatever the file holds. Atomic: after a crash the file is the old one or the new one."""
    with _alone(path.parent):
        _write({"version": _VERSION} | settings.model_dump(exclude_defaults=True), path)


def save_changes(before: Settings, now: Settings, path: Path) -> None:
    """Write what differs between `before` and `now`, atomically. Everything else in the file stays, unless it is
    damaged; one that cannot be read is not replaced. Raises StoreError.
    """
    with _alone(path.parent), explained(tr("The settings cannot be saved ({why})."), StoreError):
        try:
            found = _parsed(_read(path))
        except FileNotFoundError:
            found = None
        if found is None:
            found, before = {"version": _VERSION}, Settings()
        _upgrade(found)
        _validated(found)
        _merge(found, before, now, now.model_dump(exclude_defaults=True))
        _write(found, path)


def _read(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read(_MOST_BYTES + 1)


def _parsed(raw: bytes) -> dict[str, Any] | None:
    """The values of the file; None if it is damaged or too large."""
    found = json_value(raw) if len(raw) <= _MOST_BYTES else None
    return found if isinstance(found, dict) else None


def _write(found: dict[str, Any], path: Path) -> None:
    text = storable(json.dumps(found, ensure_ascii=False, indent=2))
    if len(text) > _MOST_BYTES // 4:  # bytes of a character
        raise StoreError(tr("The settings are too large to be saved: delete a preset."))
    with explained(tr("The settings cannot be saved ({why})."), StoreError):
        write_whole(path, text.encode() + b"\n")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One writer at a time: in this process, and among processes where a folder can be locked.

    Raises StoreError if another process keeps the folder locked.
    """
    with _WRITING:
        locked = -1
        try:
            if sys.platform != "win32":
                with suppress(OSError):  # a disk without locks
                    locked = os.open(folder, os.O_RDONLY)
                    _lock(locked)
            yield
        finally:
            if locked >= 0:
                os.close(locked)


def _lock(folder: int) -> None:
    """Raises StoreError if another process keeps it locked, OSError if it cannot be locked."""
    if sys.platform == "win32":
        return
    import fcntl

    until = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() > until:
                said = tr(
                    "The settings are not saved: another program has locked their folder. The next change saves all."
                )
                raise StoreError(said) from error
        time.sleep(0.01)


def _merge(found: dict[str, Any], before: Table, now: Table, dumped: dict[str, Any]) -> None:
    """Bring the changes of a table into `found`. `dumped`: those values of `now` that are no defaults."""
    for name in type(now).model_fields:
        old, new = getattr(before, name), getattr(now, name)
        if old == new:
            continue
        if isinstance(old, Table) and isinstance(new, Table):
            inner = found.setdefault(name, {})
            _merge(inner, old, new, dumped.get(name, {}))
            if not inner:
                del found[name]
        elif name in dumped:
            found[name] = _with_unknown(new, dumped[name], found.get(name))
        else:
            found.pop(name, None)


def _with_unknown(value: Any, dumped: Any, raw: Any) -> Any:
    """`dumped`, with what this version does not know in `raw`. Tables in a list match by their first field."""
    if isinstance(value, Table) and isinstance(raw, dict):
        fields = type(value).model_fields
        known = {name: _with_unknown(getattr(value, name), inner, raw.get(name)) for name, inner in dumped.items()}
        return {name: kept for name, kept in raw.items() if name not in fields} | known
    if isinstance(value, tuple) and isinstance(raw, list):
        return [_with_unknown(one, inner, _like(one, raw)) for one, inner in zip(value, dumped, strict=True)]
    return dumped


def _like(one: Any, raw: list[Any]) -> Any:
    """The element of `raw` that is the same model, server or preset; None if there is none."""
    if not isinstance(one, Table):
        return None
    key = next(iter(type(one).model_fields))
    return next((found for found in raw if isinstance(found, dict) and found.get(key) == getattr(one, key)), None)


def _upgrade(found: dict[str, Any]) -> None:
    """A file of version 1 as version 2 would have it: without what it holds only because it was the default then.

    *Exact answers* without flash attention was possible before: the model would not open.
    """
    models = found.get("models")
    for of in (found, *(models if isinstance(models, list) else ())):
        context = of.get("context") if isinstance(of, dict) else None
        if isinstance(context, dict) and context.get("exact") is True and context.get("flash_attn") is False:
            del context["flash_attn"]
    version = found.get("version")
    if isinstance(version, int) and version >= _VERSION:
        return
    found["version"] = _VERSION
    for table, name, value in _OLD_DEFAULTS:
        if isinstance(found.get(table), dict) and found[table].get(name) == value:
            del found[table][name]
    for name, value in _MEANT_BEFORE.items():
        found.setdefault(name, value)


def _validated(found: dict[str, Any]) -> tuple[Settings, tuple[str, ...]]:
    """Drop what does not validate until the rest does; answers the names of what was dropped."""
    broken: list[str] = []
    while True:
        try:
            return Settings.model_validate(found), tuple(broken)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            places = dict.fromkeys(_there(found, problem["loc"]) for problem in problems)
            dropped = [
                where for where in places if where and not any(where[:n] in places for n in range(1, len(where)))
            ]
            if not dropped:
                raise AssertionError("a default does not validate") from error
            for where in reversed(dropped):  # what is removed from a list moves nothing that comes before it
                _remove(found, where)
            broken += [".".join(map(str, where)) for where in dropped]


def _there(found: dict[str, Any], where: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """As much of the path `where` as there is: all of it, or that of the nearest thing around it."""
    value: Any = found
    for n, part in enumerate(where):
        inside = isinstance(value, dict) and part in value
        inside = inside or (isinstance(value, list) and isinstance(part, int) and part < len(value))
        if not inside:
            return where[:n]
        value = value[part]
    return where


def _remove(found: dict[str, Any], where: tuple[int | str, ...]) -> None:
    holder: Any = found
    for part in where[:-1]:
        holder = holder[part]
    del holder[where[-1]]


def _keep(path: Path, raw: bytes) -> str:
    """Keep the broken file beside; a sentence when that worked."""
    kept = path.with_name(path.name + ".broken")
    try:
        write_whole(kept, raw)
    except OSError:
        return ""
    return tr(" The file as it was is kept as {name}.").format(name=kept.name)
