"""Two servers beside each other: every row is measured on both, and what is behind is said."""

import pytest

from tests.benchmarks.peers.rows import Measured
from tests.benchmarks.peers.server_app import running
from tests.benchmarks.peers.table import PRIMARY, Line
from tests.benchmarks.peers.two_servers import ROWS, failed, main


def test_every_row_is_measured_on_both(capsys: pytest.CaptureFixture[str]) -> None:
    with running() as one, running() as other:
        assert main([one.url, other.url, "--rounds", "1"]) in (0, 1)
    out = capsys.readouterr().out
    assert all(f"\n{row.title} " in out for row in ROWS)
    assert "–" not in out


def test_addresses_or_a_program_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["http://127.0.0.1:9"])
    assert "two addresses, or --llama-server FILE" in capsys.readouterr().err


def test_a_server_that_cannot_be_asked_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with running() as one:
        assert main([one.url, "http://127.0.0.1:9"]) == 2
    assert "Nothing answers" in capsys.readouterr().err


def test_what_is_wholly_below_the_bar_fails() -> None:
    lines = []
    for name, speeds in (("behind", (90, 91, 92)), ("near", (90, 99, 110)), ("unknown", ())):
        line = Line(0, name)
        for i, speed in enumerate(speeds):
            line.add(PRIMARY, i, Measured(name, speed, "tok/s"))
            line.add("other", i, Measured(name, 100, "tok/s"))
        lines.append(line)
    assert failed(lines, "other") == ["behind", "unknown"]
