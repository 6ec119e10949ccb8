"""`POST /slots/N`: a sequence goes to a file and back, and is erased."""

import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from kvdesk.cache.state.blob import SEQ_MAGIC, BlobError
from kvdesk.cache.state.sequence_file import read_sequence_file, sequence_file
from kvdesk.host.host import Host
from kvdesk.protocol.cache import AuditCache
from tests.needs import needs_pipes
from tests.server.conftest import INSPECT, Running, served

PROMPT = "A sailor has three dogs and two cats, and every one of them has a name that begins with another letter. "
BLOB = struct.pack("<Ii", SEQ_MAGIC, 3) + b"cells"


@pytest.fixture
def saving(engine: Host, tmp_path: Path) -> Iterator[Running]:
    with served(engine, slot_folder=tmp_path) as found:
        yield found


def complete(http: httpx.Client, prompt: str = PROMPT) -> Any:
    answer = http.post("/completion", json={"prompt": prompt, "n_predict": 4})
    assert answer.status_code == 200, answer.text
    return answer.json()


def erase_all(http: httpx.Client) -> None:
    for one in http.get("/slots").json():
        http.post(f"/slots/{one['id']}?action=erase").raise_for_status()


def test_a_slot_goes_to_a_file_and_back(saving: Running, tmp_path: Path) -> None:
    with saving.http(INSPECT) as http:
        first = complete(http)
        slot = first["id_slot"]
        saved = http.post(f"/slots/{slot}?action=save", json={"filename": "one.bin"}).json()
        assert saved["n_saved"] == first["tokens_cached"]
        status = (tmp_path / "one.bin").stat()
        assert saved["n_written"] == status.st_size
        assert sys.platform == "win32" or status.st_mode & 0o077 == 0, "others could read the prompt"
        erase_all(http)
        assert complete(http)["timings"]["cache_n"] == 0
        erase_all(http)
        restored = http.post("/slots/2?action=restore", json={"filename": "one.bin"}).json()
        assert restored | {"timings": {}} == {
            "id_slot": 2,
            "filename": "one.bin",
            "n_restored": saved["n_saved"],
            "n_read": saved["n_written"],
            "timings": {},
        }
        again = complete(http)
        assert again["timings"]["cache_n"] == first["tokens_evaluated"] - 1
        assert (again["content"], again["id_slot"]) == (first["content"], 2)
    audited = saving.answered(AuditCache())
    assert audited.state == "verified", audited.sentence


def test_a_request_names_its_slot(saving: Running) -> None:
    """A number above the last one wraps around, as in llama-server; what a slot holds is replaced."""
    with saving.http(INSPECT) as http:
        erase_all(http)
        n = len(http.get("/slots").json())

        def asked(slot: int, prompt: str = PROMPT, *, reuse: bool = True) -> tuple[int, int]:
            body = {"prompt": prompt, "n_predict": 4, "id_slot": slot, "cache_prompt": reuse}
            answer = http.post("/completion", json=body).raise_for_status().json()
            return answer["id_slot"], answer["timings"]["cache_n"]

        assert asked(1) == (1, 0)
        for _ in range(2):
            slot, cached = asked(1 + n)
            assert (slot, cached > 0) == (1, True)
        assert asked(1, reuse=False) == (1, 0)
        assert asked(1, "Something else: " + PROMPT)[0] == 1
        assert asked(0)[0] == 0
        assert http.post("/completion", json={"prompt": "x", "id_slot": -2}).status_code == 400
    audited = saving.answered(AuditCache())
    assert audited.state == "verified", audited.sentence


def test_what_cannot_be_done_is_said(saving: Running, tmp_path: Path) -> None:
    with saving.http(INSPECT) as http:
        complete(http)
        names = ("", "..", "../x", "a/b", "a\\b", ".hidden", "con", "nul.bin", "a.", "a\0b", "x" * 300)
        for name in names:
            answer = http.post("/slots/0?action=save", json={"filename": name})
            assert (answer.status_code, answer.json()["error"]["param"]) == (400, "filename"), name
        assert not list(tmp_path.iterdir())
        (tmp_path / "junk.bin").write_bytes(b"junk" * 100)
        (tmp_path / "cells.bin").write_bytes(sequence_file([1, 2, 3], BLOB))
        for body in ({"filename": "none.bin"}, {"filename": "junk.bin"}, {"filename": "cells.bin"}, {}):
            answer = http.post("/slots/0?action=restore", json=body)
            assert answer.status_code == 400, answer.text
            assert answer.json()["error"]["message"]
        slots = ("99", "-1", "one", "9" * 5000)
        for path in ("/slots/0", "/slots/0?action=wash", *(f"/slots/{slot}?action=erase" for slot in slots)):
            assert http.post(path).status_code == 400
        assert complete(http)["content"]
    audited = saving.answered(AuditCache())
    assert audited.state == "verified", audited.sentence


def test_it_needs_the_right_to_inspect_and_a_folder(http: httpx.Client, inspector: httpx.Client) -> None:
    assert http.post("/slots/0?action=erase").status_code == 403
    answer = inspector.post("/slots/0?action=save", json={"filename": "one.bin"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (501, "not_supported")


def test_the_form_of_the_file_is_llama_server_s() -> None:
    data = sequence_file([7, 8], BLOB)
    assert data == struct.pack("<3I6i", 0x67677371, 3, 6, -1, 1, 2, 7, 8, 0) + b"cells"
    assert read_sequence_file(data, 3) == ([7, 8], BLOB)
    plain = struct.pack("<3I2i", 0x67677371, 3, 2, 7, 8) + b"cells"
    assert read_sequence_file(plain, 3) == ([7, 8], BLOB)


@pytest.mark.parametrize(
    "words",
    [(-1,), (-1, 2, 0, 0), (-1, 1, 9, 0), (-1, 1, -5, 0), (-1, 1, 0, 1)],
    ids=["short", "version", "too long", "negative", "pictures"],
)
def test_another_form_is_refused(words: tuple[int, ...]) -> None:
    with pytest.raises(BlobError):
        read_sequence_file(struct.pack(f"<3I{len(words)}i", 0x67677371, 3, len(words), *words), 0)
    with pytest.raises(BlobError):
        read_sequence_file(struct.pack("<3I", 0x67677371, 3, 1 << 30), 0)


@needs_pipes
def test_what_is_no_slot_file_is_not_read(saving: Running, tmp_path: Path) -> None:
    """A pipe that nobody writes to would keep the engine from everyone; a file may be larger than memory."""
    os.mkfifo(tmp_path / "pipe.bin")
    with (tmp_path / "huge.bin").open("wb") as file:
        file.truncate(1 << 42)
    with saving.http(INSPECT) as http:
        for name, why in (("pipe.bin", "it is not a file"), ("huge.bin", "it is too large")):
            answer = http.post("/slots/0?action=restore", json={"filename": name})
            assert answer.status_code == 400
            assert why in answer.text
        complete(http)
