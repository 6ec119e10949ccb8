"""A child process ends with its parent, however that ends and whatever the child is doing."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

PARENT = """
import subprocess, sys
from kvdesk.library.child import start_child
child = start_child([sys.executable, "-c", CHILD], subprocess.PIPE, subprocess.DEVNULL)
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.read()
"""
CHILD = """
from kvdesk.library.child import read_parent
read_parent()
print("ready", flush=True)
WORK
"""
WORK = {
    "computes": "while True: pass",
    "is in C": "import ctypes; ctypes.CDLL(None).pause()",
    "reads a lock": "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
}


@pytest.mark.skipif(sys.platform == "win32", reason="pause() is of POSIX")
@pytest.mark.parametrize("work", WORK)
def test_a_child_ends_with_its_parent(work: str) -> None:
    code = PARENT.replace("CHILD", repr(CHILD.replace("WORK", WORK[work])))
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    assert child.is_running()
    parent.kill()
    parent.communicate()
    try:
        child.wait(timeout=10)
    except psutil.NoSuchProcess:
        pass
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
