"""A child process: what goes up and down, its limits, its last words, and its end, whoever wants it."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

import kvdesk
from kvdesk import translation
from kvdesk.children.process import LAST_WORDS, Child, ChildStopped, Reason, crash_name, without_launcher
from tests.children.fake import fake_child

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals")
linux = pytest.mark.skipif(sys.platform != "linux", reason="a limit of Linux")
SLEEPS = "import subprocess, sys, time; sleeper = [sys.executable, '-Sc', 'import time; time.sleep(99)']\n"
ENDLESS = "import threading; threading.Event().wait()"
PARENT = """
import sys
from kvdesk.children.process import Child
child = Child(COMMAND)
child.receive()
print(child.pid, flush=True)
sys.stdin.read()
"""
WORK = {
    "computes": "while True: pass",
    "is in C and lets no thread run": "9 ** 999_999_999",
    "is in C": "import ctypes; ctypes.CDLL(None).pause()",
    "waits for a lock": "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
}


def gone(pid: int) -> bool:
    """Whether it ends, which takes a moment. A zombie waits for init alone."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
            process.wait(timeout=0.02)
        except psutil.TimeoutExpired:
            continue
        except psutil.NoSuchProcess:
            return True
    return False


# --- messages -------------------------------------------------------------------------------------------------------


def test_values_go_both_ways_whatever_their_size() -> None:
    with Child(fake_child("while True: say(parent.receive_value())")) as child:
        values: list[object] = [[], {"a": None}, "x" * 3_000_000, 7]
        for value in values:
            child.send_value(value)
            assert child.receive_value(60) == value
        assert not child.has_message


def test_what_a_child_prints_is_no_message() -> None:
    called: list[int] = []
    code = "import os; print('hello', flush=True); os.write(1, b' there'); say(1); say(2)"
    with Child(fake_child(code), on_message=lambda: called.append(1)) as child:
        assert list(child.values()) == [1, 2]
        assert len(called) in (2, 3), "for each message, and just after the end"
        assert child.last_words == "hello\n there"
        assert child.ending() == "Its exit code is 0.\nhello\n there"


def test_other_programs_send_bytes_or_are_ignored() -> None:
    command = [sys.executable, "-Sc", "print('x' * 200_000)"]
    with Child(command, stdout="bytes") as child, Child(command, stdout="ignored") as ignored:
        assert b"".join(child.messages()).strip() == b"x" * 200_000
        assert child.wait(60) == ignored.wait(60) == 0


def test_a_child_that_reads_nothing_holds_nobody_up() -> None:
    with Child(fake_child("say(0); import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")) as child:
        child.receive(60)
        start = time.monotonic()
        for _ in range(9):
            child.send(b"x" * 1_000_000)
        assert time.monotonic() - start < 5


def test_a_child_that_says_more_than_is_taken_waits() -> None:
    code = "n = 0\nwhile True: say('x' * 100_000); n += 1; print(n, flush=True)"
    with Child(fake_child(code)) as child:
        assert child.receive_value(60)
        assert child.wait(0.2) is None
        assert int((child.last_words.split() or "0")[-1]) < 100


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (fake_child("say('x' * 2000)"), "more than 1,000"),
        ([sys.executable, "-Sc", "print('hello ' * 100)"], "more than 1,000"),
        (fake_child("parent.send(b'{'); say(1)"), "Expecting property name"),
    ],
)
def test_what_is_no_message_ends_the_child(command: list[str], said: str) -> None:
    with Child(command, max_message_bytes=1000) as child:
        with pytest.raises(ChildStopped) as stopped:
            child.receive_value(60)
        assert stopped.value.reason == "ended"
        assert said in stopped.value.detail
        assert child.wait() is not None


def test_a_value_of_another_type_ends_the_child() -> None:
    with Child(fake_child("say('five'); parent.receive()")) as child:
        with pytest.raises(ChildStopped) as stopped:
            child.receive_value(60, kind=int)
        assert stopped.value.reason == "ended"
        assert "Expected `int`, got `str`" in stopped.value.detail
        assert child.wait() is not None


def test_a_child_speaks_the_language_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "_language", "de")
    with Child(fake_child(f"import os; say(os.environ[{translation.VARIABLE!r}])")) as child:
        assert child.receive_value(60) == "de"


def test_a_child_that_cannot_be_started() -> None:
    with pytest.raises(OSError, match="none/such"):
        Child(["/none/such"])


def test_a_child_is_no_child_of_a_launcher() -> None:
    venv, base = r"C:\kvdesk\.venv\Scripts\python.exe", r"C:\Python313\python.exe"
    command = [venv, "-m", "kvdesk", "--attachment"]
    variables = {"__PYVENV_LAUNCHER__": venv}
    assert without_launcher(command, venv, base) == ([base, "-m", "kvdesk", "--attachment"], variables)
    assert without_launcher(command, venv, venv) == (command, {})
    assert without_launcher(["llama-server.exe"], venv, base) == (["llama-server.exe"], {})


# --- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise SystemExit(3)", "ended"),
        (ENDLESS, "time"),
        ("x = b'x' * 200_000_000\n" + ENDLESS, "memory"),
        (ENDLESS, "cancelled"),
    ],
)
def test_one_that_takes_too_much_is_killed(code: str, reason: Reason) -> None:
    with Child(fake_child("print('last', flush=True); say(0)\n" + code), memory=150_000_000) as child:
        child.receive(60)
        with pytest.raises(ChildStopped, match="last") as stopped:
            child.receive(0.3 if reason == "time" else 60, (lambda: True) if reason == "cancelled" else None)
        assert stopped.value.reason == reason
        assert child.wait() is not None


@linux
def test_a_child_limits_itself() -> None:
    code = "limit(1 << 30, written=1000)\ntry: bytearray(2 << 30)\nexcept MemoryError: say('no memory')\n"
    with Child(fake_child(code)) as child:
        assert child.receive_value(60) == "no memory"
    with Child(fake_child("limit(1 << 30, cpu_s=1)\nwhile True: pass")) as child:
        with pytest.raises(ChildStopped, match="ended it"):
            child.receive(60)
        assert child.wait() in (-signal.SIGXCPU, -signal.SIGKILL)


@linux
def test_a_child_keeps_the_tighter_limits_of_the_system() -> None:
    """Nobody but root may raise them: an attempt would end the child."""
    code = """
import resource
raised, own = [], resource.setrlimit

def setrlimit(which, pair):
    if pair[1] > resource.getrlimit(which)[1] >= 0:
        raised.append(which)
    own(which, pair)

resource.setrlimit = setrlimit
own(resource.RLIMIT_AS, (1 << 30, 1 << 30))
own(resource.RLIMIT_FSIZE, (500, 1000))
limit(2 << 30, cpu_s=60, written=2000)
say([raised, *(resource.getrlimit(n) for n in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE))])
"""
    with Child(fake_child(code)) as child:
        assert child.receive_value(60) == [[], [1 << 30] * 2, [60] * 2, [500] * 2]


@posix
def test_a_child_in_the_background_leaves_the_processor_to_others() -> None:
    with Child(fake_child(ENDLESS), background=True) as child:
        assert psutil.Process(child.pid).nice() == min(19, psutil.Process().nice() + 5)


# --- last words -----------------------------------------------------------------------------------------------------


def test_a_child_that_floods_standard_error_goes_on_and_keeps_its_last_words() -> None:
    code = "import sys; sys.stderr.write('x' * 20_000_000 + 'the end'); sys.stderr.flush(); say('here'); sys.exit(4)"
    with Child(fake_child(code)) as child:
        assert child.receive_value(60) == "here"
        child.wait(None)
        assert len(child.last_words) == LAST_WORDS
        assert child.last_words.endswith("xthe end")


@posix
def test_how_a_child_ended_is_told() -> None:
    with Child(fake_child("import os; os.abort()")) as child:
        assert list(child.values()) == []
        assert child.ending().startswith("SIGABRT ended it.\nFatal Python error: Aborted")
        assert crash_name(child.wait() or 0) == "SIGABRT"
    assert [*map(crash_name, (0, 3, -11, -99, 0xC0000005))] == ["", "", "SIGSEGV", "signal 99", "0xC0000005"]


# --- the end --------------------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize(
    ("code", "grace_s", "how"),
    [
        ("", 9.0, 0),
        ("signal.signal(signal.SIGTERM, lambda *_: os._exit(7))\nsay(0)\nwhile True: time.sleep(9)", 0.3, 7),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsay(0)\nwhile True: time.sleep(9)", 0.3, -signal.SIGKILL),
        ("say(0)\nwhile True: time.sleep(9)", 0.0, -signal.SIGKILL),
    ],
    ids=["by itself", "asked", "deaf", "at once"],
)
def test_a_child_is_asked_before_it_is_killed(code: str, grace_s: float, how: int) -> None:
    child = Child(fake_child("import os, signal, time\n" + code))
    if code:
        child.receive(60)
    child.close(grace_s)
    assert child.wait() == how
    assert not psutil.pid_exists(child.pid)
    child.close()
    child.kill()


@posix
@pytest.mark.parametrize("last", ["time.sleep(99)", "sys.exit()"])
def test_the_children_of_a_child_end_with_it(last: str) -> None:
    with Child(fake_child(SLEEPS + "say(subprocess.Popen(sleeper).pid)\n" + last)) as child:
        pid = child.receive_value(60)
        assert psutil.pid_exists(pid)
        if "exit" in last:
            child.wait(None)
    assert gone(pid)


@pytest.mark.parametrize("work", WORK)
def test_a_child_ends_with_its_parent(work: str) -> None:
    """A parent that is killed closes no pipe by itself: the system does."""
    if sys.platform == "win32" and "pause" in WORK[work]:
        pytest.skip("pause() is of POSIX")
    code = PARENT.replace("COMMAND", repr(fake_child("say(0)\n" + WORK[work])))
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    pid = int(parent.stdout.readline())
    assert psutil.pid_exists(pid)
    parent.kill()
    parent.communicate()
    assert gone(pid)


def test_a_child_outlives_the_thread_that_started_it() -> None:
    """Linux ends it with the thread that made the process."""
    started: list[Child] = []
    thread = threading.Thread(target=lambda: started.append(Child(fake_child("say(parent.receive_value())"))))
    thread.start()
    thread.join()
    with started[0] as child:
        child.send_value("still here")
        assert child.receive_value(60) == "still here"


def test_a_child_inherits_no_files() -> None:
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    with Child(
        fake_child(f"import os\ntry: os.fstat({write_end}); say('open')\nexcept OSError: say('closed')")
    ) as child:
        said = child.receive_value(60)
    os.close(read_end)
    os.close(write_end)
    assert said == "closed"


def test_nobody_else_starts_processes() -> None:
    """But for `ldd`, which is no kvdesk, a program that gets the terminal, and a tool server behind its child."""
    root = Path(kvdesk.__file__).parent
    starts = re.compile(rb"^ *(import subprocess|from PySide6.QtCore import .*QProcess)", re.MULTILINE)
    found = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if starts.search(path.read_bytes())}
    assert found == {"children/process.py", "children/foreground.py", "app/display.py", "tools/server_child.py"}
