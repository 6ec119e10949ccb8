"""The window does not wait for what it does not show at first."""

import subprocess
import sys

LATE = (
    *("kvdesk.ui.timeline.page", "kvdesk.ui.blocks.page", "kvdesk.ui.cache.instruments", "kvdesk.ui.shell.log_panel"),
    *("kvdesk.conversations.porting.export", "kvdesk.conversations.porting.formats"),
    *("kvdesk.conversations.markdown_file", "kvdesk.conversations.left_open"),
    *("pyqtgraph", "ziamath", "pypdfium2", "llama_cpp", "huggingface_hub", "httpx2", "asyncio"),
    *("pygments", "markdown_it", "jinja2", "kvdesk.experiments.benchmarks", "kvdesk.library"),
    *("kvdesk.ui.settings.page", "kvdesk.ui.parameters.panel", "kvdesk.ui.shell.command_palette"),
    *("kvdesk.ui.shell.about_dialog", "kvdesk.ui.shell.report_dialog", "kvdesk.ui.shell.introduction"),
    *("kvdesk.ui.shell.explained_dialog", "kvdesk.viewmodel.explained"),
    *("kvdesk.app.models.installed", "kvdesk.app.report.problem_report", "kvdesk.app.slices.laboratory"),
)


def test_what_is_opened_later_is_imported_later() -> None:
    code = f"import sys, kvdesk.app.application; print([name for name in {LATE!r} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_qt_reads_the_source_of_no_module_and_compiles_no_writer_of_type_stubs() -> None:
    code = (
        "import builtins, sys; from kvdesk.__main__ import _STUB_WRITER, _import_qt; _import_qt();"
        "writer = sys.modules['shibokensupport.signature.loader'].pyi_generator;"
        "print(builtins.__import__.__name__, writer is sys.modules[_STUB_WRITER], hasattr(writer, '__file__'))\n"
        "from PySide6.QtCore import QObject\n"
        "try: QObject(1, 2)\n"
        "except TypeError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("__import__ True False\n"), said.stdout
    assert "QObject" in said.stdout, "a wrong call is still explained"
