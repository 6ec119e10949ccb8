"""The transfer of a model from the hub to the disk. Ended at any time, by a kill too, it goes on where it was.

Bytes go into `<name>.part`; beside it `<first name>.part.json` says what they will be. A file gets its final name when
all files of the model are whole and have the hub's SHA-256. One process writes to a folder at a time.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from kvdesk import paths
from kvdesk.errors import Stopped, UserError
from kvdesk.library.hub import Hub, HubError, HubUnreachable, RemoteFile, RemoteModel
from kvdesk.translation import tr
from kvdesk.values import dataclass, field, replace
from kvdesk.whole_file import write_whole

if TYPE_CHECKING:
    from httpx2 import Response

SPARE_BYTES: Final = 64 << 20
"""Of the disk that a download leaves free."""
WAITS_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Before each attempt after one that brought nothing; then the download ends, and can be resumed."""
READ_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 1 << 50
"""Of a file: far above any model."""
_MOST_RECORD: Final = 1 << 24
"""Bytes of what `.part.json` holds: a model has 1000 files at most."""
_NAME = re.compile(r"[^\x00-\x1f<>:\"|?*\\]{1,200}")
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")

Report = Callable[[int, str], None]
"""Called with the bytes that are on the disk, of all files, and a remark ("" for none)."""


class _Changed(Exception):
    """The hub has another file under this name than the one that was begun."""


@dataclass(slots=True)
class _Record:
    """What `.part.json` holds. etags: of the server that sent the bytes, by file, for If-Range; whole: the files of
    which the SHA-256 was right.
    """

    model: RemoteModel
    etags: dict[str, str] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)


class Transfer:
    """One model. `run` may be called again after it raised.

    folder: of all models; the files go into `<repo owner>/<repo name>/` below it. stop: set from another thread.
    """

    def __init__(self, hub: Hub, model: RemoteModel, stop: Event, report: Report, folder: Path | None = None) -> None:
        self._hub, self._stop, self._report = hub, stop, report
        self._folder = folder_of(model, folder)
        self._record = _read_record(self._record_path(model)) or _Record(model)
        if self._record.model != model:  # chosen again on the hub: bytes of another file are of no use
            same = {file.name for file in model.files if file in self._record.model.files}
            for file in model.files:
                if file.name not in same:
                    self._part(file).unlink(missing_ok=True)
            etags = {name: etag for name, etag in self._record.etags.items() if name in same}
            self._record = _Record(model, etags, self._record.whole & same)

    def run(self) -> Path:
        """Transfer what is missing. Returns the first file.

        Raises Stopped, HubError, and UserError of the disk; what was transferred stays, but for a wrong hash.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for index in range(len(self._files)):
                if not self._is_there(self._files[index]):
                    self._complete(index)
            return self._publish()
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                said = tr("The disk is full: make room, then resume. What was downloaded is kept.")
                raise UserError(said, str(error)) from error
            why = error.strerror or type(error).__name__
            raise UserError(tr("The download cannot be written: {why}.").format(why=why), str(error)) from error

    # --- one file -----------------------------------------------------------------------------------------------------

    def _complete(self, index: int) -> None:
        """Attempts until the file is whole. The count of attempts begins again with each that brought bytes."""
        failed = 0
        while True:
            before = self._size(self._files[index])
            try:
                return self._attempt(index)
            except _Changed:
                failed += 1
                if failed > len(WAITS_S):
                    raise HubError(tr("The file on the hub changes while it is downloaded.")) from None
                self._begin_again(index)
            except HubUnreachable as error:
                failed = 0 if self._size(self._files[index]) > before else failed
                if failed == len(WAITS_S):
                    said = tr("{why} What was downloaded is kept: resume later.").format(why=error)
                    raise HubUnreachable(said, error.detail) from error
                wait = min(max(WAITS_S[failed], error.wait_s), 60.0)
                failed += 1
                self._report(self.done_bytes, tr("{why} Trying again in {s} s.").format(why=error, s=f"{wait:.0f}"))
                if self._stop.wait(wait):
                    raise Stopped from None

    def _begin_again(self, index: int) -> None:
        """With the file that the hub has now."""
        old = self._files[index]
        self._part(old).unlink(missing_ok=True)
        self._record.etags.pop(old.name, None)
        self._record.whole.discard(old.name)
        model = self._record.model
        now = self._hub.file(model.repo, model.revision, old.name)
        files = (*model.files[:index], now, *model.files[index + 1 :])
        self._record.model = replace(model, files=files)
        self._report(self.done_bytes, tr("The file on the hub has changed: the download begins again."))

    def _attempt(self, index: int) -> None:
        model, file = self._record.model, self._files[index]
        now = self._hub.file(model.repo, model.revision, file.name)
        if not file.sha256:
            file = replace(file, sha256=now.sha256)
            self._record.model = model = replace(model, files=(*model.files[:index], file, *model.files[index + 1 :]))
        if not file.sha256:
            raise HubError(tr("The hub has no SHA-256 of {file}, so it could not be checked.").format(file=file.name))
        if now.size != file.size or now.sha256 not in ("", file.sha256):
            raise _Changed
        self._check_room()
        part = self._part(file)
        part.parent.mkdir(parents=True, exist_ok=True)
        if part.exists():
            paths.refuse_other_than_a_file(part)
        self._write_record()
        with part.open("ab", buffering=0) as out:
            if os.fstat(out.fileno()).st_size > file.size:
                out.truncate(0)
            digest = self._digest(part, os.fstat(out.fileno()).st_size)
            if os.fstat(out.fileno()).st_size < file.size:
                digest = self._receive(file, out, digest)
            os.fsync(out.fileno())
        if digest.hexdigest() != file.sha256:
            part.unlink()
            self._record.etags.pop(file.name, None)
            said = tr("{file} does not match the SHA-256 of the hub, and was deleted. Download it again.")
            raise HubError(said.format(file=file.name.rsplit("/", 1)[-1]))
        self._record.whole.add(file.name)
        self._write_record()

    def _receive(self, file: RemoteFile, out: Any, digest: Any) -> Any:
        """The bytes after those that are there. Returns the digest of all."""
        start = os.fstat(out.fileno()).st_size
        headers = {}
        if start:
            headers["Range"] = f"bytes={start}-"
            if etag := self._record.etags.get(file.name):
                headers["If-Range"] = etag
        model = self._record.model
        with self._hub.stream(self._hub.url(model.repo, model.revision, file.name), headers) as response:
            if not _goes_on(response, file, start):
                out.truncate(0)
                start, digest = 0, hashlib.sha256()
                self._report(self.done_bytes, tr("The server began again with the first byte."))
            etag = response.headers.get("ETag", "")
            if etag.startswith('"') and etag != self._record.etags.get(file.name):  # a weak one is not for ranges
                self._record.etags[file.name] = etag
                self._write_record()
            for chunk in response.iter_raw():
                if start + len(chunk) > file.size:
                    raise _Changed
                _write(out, chunk)
                digest.update(chunk)
                start += len(chunk)
                self._report(self.done_bytes, "")
                if self._stop.is_set():
                    raise Stopped
        if start < file.size:
            raise HubUnreachable(tr("The connection was lost."))
        return digest

    def _digest(self, part: Path, size: int) -> Any:
        """Of the bytes that are there."""
        digest = hashlib.sha256()
        if not size:
            return digest
        self._report(self.done_bytes, tr("Reading the existing part…"))
        with part.open("rb") as file:
            while chunk := file.read(READ_BYTES):
                digest.update(chunk)
                if self._stop.is_set():
                    raise Stopped
        return digest

    # --- all files ----------------------------------------------------------------------------------------------------

    @property
    def done_bytes(self) -> int:
        """Of all files, on the disk."""
        return sum(self._size(file) for file in self._files)

    @property
    def model(self) -> RemoteModel:
        """As the hub has it now: it may have changed since the beginning."""
        return self._record.model

    @property
    def _files(self) -> tuple[RemoteFile, ...]:
        return self._record.model.files

    def _check_room(self) -> None:
        missing = self._record.model.size_bytes - self.done_bytes
        free = shutil.disk_usage(self._folder).free
        if missing + SPARE_BYTES > free:
            said = tr("{missing} MB are still to come, and {free} MB are free on the disk: make room, then resume.")
            raise UserError(said.format(missing=f"{missing / 1e6:,.0f}", free=f"{free / 1e6:,.0f}"))

    def _publish(self) -> Path:
        """Final names, that of the first file last: by it a split model is found."""
        for file in reversed(self._files):
            if (part := self._part(file)).exists():
                part.replace(self._final(file))
        self._record_path(self._record.model).unlink(missing_ok=True)
        self._report(self.done_bytes, "")
        return self._final(self._files[0])

    def _is_there(self, file: RemoteFile) -> bool:
        """Under its final name, or whole and waiting for the other files."""
        if file.name in self._record.whole and self._size(file) == file.size:
            return True
        final = self._final(file)
        if self._part(file).exists() or paths.size_of(final) != file.size:
            return False
        return bool(self._digest(final, file.size).hexdigest() == file.sha256)

    def _size(self, file: RemoteFile) -> int:
        part = self._part(file)
        return paths.size_of(part) if part.exists() else paths.size_of(self._final(file))

    def _final(self, file: RemoteFile) -> Path:
        return self._folder.joinpath(*file.name.split("/"))

    def _part(self, file: RemoteFile) -> Path:
        path = self._final(file)
        return path.with_name(f"{path.name}.part")

    def _record_path(self, model: RemoteModel) -> Path:
        path = self._final(model.files[0])
        return path.with_name(f"{path.name}.part.json")

    def _write_record(self) -> None:
        """As a whole or not at all."""
        model, record = self._record.model, self._record
        files = [
            {
                "name": file.name,
                "url": self._hub.url(model.repo, model.revision, file.name),
                "size": file.size,
                "sha256": file.sha256,
                "etag": record.etags.get(file.name, ""),
                "whole": file.name in record.whole,
            }
            for file in model.files
        ]
        path = self._record_path(model)
        content = {"repo": model.repo, "revision": model.revision, "files": files}
        write_whole(path, json.dumps(content, indent=1).encode())


def discard(model: RemoteModel, folder: Path | None = None) -> None:
    """Cancelled: remove what was transferred, and folders that are empty then. What is whole stays.

    Raises OSError.
    """
    top = folder_of(model, folder)
    for n, file in enumerate(model.files):
        path = top.joinpath(*file.name.split("/"))
        path.with_name(f"{path.name}.part").unlink(missing_ok=True)
        if not n:
            path.with_name(f"{path.name}.part.json").unlink(missing_ok=True)
    emptied = top.joinpath(*model.files[0].name.split("/")).parent
    with suppress(OSError):  # not empty
        while emptied != top.parent.parent:
            emptied.rmdir()
            emptied = emptied.parent


def folder_of(model: RemoteModel, folder: Path | None = None) -> Path:
    """Where its files go.

    Raises HubError for names that would lead elsewhere.
    """
    for name in (model.repo, *(file.name for file in model.files)):
        if not all(_NAME.fullmatch(part) and part.strip(". ") for part in name.split("/")):
            raise HubError(tr("{name} is no name for a file here.").format(name=repr(name)))
    return (folder or paths.models_dir()).joinpath(*model.repo.split("/"))


def unfinished(folder: Path | None = None) -> Iterator[tuple[RemoteModel, int]]:
    """Downloads that were begun and not finished, and the bytes that are there."""
    top = folder or paths.models_dir()
    for path in sorted(top.glob("*/*/**/*.part.json")):
        record = _read_record(path)
        if record is None:
            continue
        with suppress(HubError):
            here = folder_of(record.model, top)
            names = [here.joinpath(*file.name.split("/")) for file in record.model.files]
            if path.name == f"{names[0].name}.part.json":
                yield (
                    record.model,
                    sum(paths.size_of(name.with_name(f"{name.name}.part")) or paths.size_of(name) for name in names),
                )


def _read_record(path: Path) -> _Record | None:
    """None if there is none, or none that can be used."""
    try:
        content = json.loads(paths.read_regular(path, _MOST_RECORD))
        files = [(RemoteFile(str(f["name"]), int(f["size"]), str(f["sha256"])), f) for f in content["files"]]
        if not all(0 <= file.size <= _MOST_BYTES for file, _ in files):
            return None
        model = RemoteModel(str(content["repo"]), str(content["revision"]), tuple(file for file, _ in files))
        etags = {file.name: str(f["etag"]) for file, f in files if f.get("etag")}
        return _Record(model, etags, {file.name for file, f in files if f.get("whole") is True}) if files else None
    except (OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _goes_on(response: Response, file: RemoteFile, start: int) -> bool:
    """Whether the answer begins at `start`; False if it begins with the first byte instead: the server knows no
    ranges. Raises _Changed if it is of another file.
    """
    match response.status_code:
        case 206:
            sent = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if sent is None or int(sent[1]) != start or int(sent[2]) != file.size:
                raise _Changed
            return True
        case 200:
            length = response.headers.get("Content-Length", "")
            if length.isdigit() and int(length) != file.size:
                raise _Changed
            return not start
        case _:
            raise _Changed


def _write(out: Any, chunk: bytes) -> None:
    """All of it: an unbuffered file may take a part."""
    view = memoryview(chunk)
    while view:
        view = view[out.write(view) :]
