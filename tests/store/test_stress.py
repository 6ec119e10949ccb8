"""Many deaths, one file: the database survives every one of them."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import apsw
import pytest

from kvdesk.chat import ConversationId
from kvdesk.store import Store
from kvdesk.store.search import teach
from tests.store.test_writer import STREAM, child

pytestmark = [
    pytest.mark.stress,
    pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a POSIX matter"),
]


def test_a_hundred_kills_at_any_moment_never_damage_the_file(tmp_path: Path) -> None:
    path = tmp_path / "kvdesk.sqlite3"
    moments = random.Random(0)
    for _ in range(100):
        with child(STREAM, path) as process:
            assert process.stdout
            for _ in range(moments.randint(1, 200)):
                process.stdout.readline()
            process.kill()
        store = Store(path)
        assert all(m.state != "streaming" for m in store.all_messages(ConversationId("c")))
        store.close()
        connection = apsw.Connection(str(path))
        teach(connection)
        assert connection.pragma("integrity_check") == "ok"
        connection.execute("INSERT INTO message_index (message_index, rank) VALUES ('integrity-check', 1)")
        connection.close()
