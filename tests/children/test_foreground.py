"""A program in the foreground: its exit code, its environment, and signals."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kvdesk.children import foreground

posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def run(code: str) -> int:
    return foreground.run([sys.executable, "-c", code], {**os.environ, "GIVEN": "17"})


def test_the_exit_code_and_the_environment_are_passed_on() -> None:
    assert run("import os, sys; sys.exit(int(os.environ['GIVEN']))") == 17


@posix
def test_a_signal_that_ends_it_is_told_as_shells_do() -> None:
    assert run("import os; os.kill(os.getpid(), 9)") == 137


def test_what_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="none"):
        foreground.run([str(tmp_path / "none")], dict(os.environ))


@posix
def test_it_has_the_terminals_group_and_ctrl_c_is_its_own() -> None:
    """The parent survives the Ctrl+C that its child takes, and what it did with signals before is restored."""
    before = signal.getsignal(signal.SIGINT)
    takes = """
import os, signal, sys
assert os.getpgid(0) == os.getpgid(os.getppid())
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "not ignored"
os.kill(os.getppid(), signal.SIGINT)
sys.exit(5)
"""
    assert run(takes) == 5
    assert signal.getsignal(signal.SIGINT) is before


@posix
def test_a_signal_that_was_ignored_is_by_both() -> None:
    """As with nohup, when the terminal is closed."""
    takes = """
import os, signal, sys
assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
os.kill(os.getppid(), signal.SIGHUP)
sys.exit(6)
"""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run(takes) == 6
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@posix
def test_what_ends_the_parent_ends_the_program_first() -> None:
    code = f"""
import sys
from kvdesk.children import foreground
said = "import os, signal, time; print('ready', flush=True); signal.pause()"
print(foreground.run([{sys.executable!r}, "-c", said], {{}}), flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "ready\n"
        parent.send_signal(signal.SIGTERM)
        assert parent.stdout.readline() == "143\n"
        assert parent.wait() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="prctl(2)")
def test_if_the_parent_is_killed_the_program_is_asked_to_end() -> None:
    code = f"""
import os
from kvdesk.children import foreground
said = '''
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("asked")))
print("ready", flush=True)
signal.pause()
'''
foreground.run([{sys.executable!r}, "-c", said], dict(os.environ))
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "ready\n"
        parent.kill()
        assert parent.stdout.read() == "asked\n"


def test_a_program_that_is_read_ends_behind_the_block() -> None:
    code = "import time; print('begun', flush=True); time.sleep(600)"
    with foreground.running([sys.executable, "-c", code], dict(os.environ), piped=True) as process:
        assert process.stdout.readline().strip() == b"begun"
    assert process.poll() is not None
