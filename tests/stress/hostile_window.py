"""A child: opens the window with a file, closes it when the model is there or was refused. Prints which, as JSON."""

import json
import sys

from PySide6.QtCore import QTimer

from kvdesk import paths
from kvdesk.app import application
from tests.stress.home_window import note, seen


def main(file: str) -> int:
    with application.owned_process():
        parts = application.build(file)
        parts.window.store.listen(note)
        parts.window.show()
        timer = QTimer(parts.window, interval=20)
        timer.timeout.connect(lambda: parts.window.close() if seen else None)
        timer.start()
        code = parts.qt.exec()
        parts.controller.shut_down()
    unexpected = "unexpected" in (paths.log_dir() / "kvdesk.log").read_text("utf-8")
    print(json.dumps({"seen": seen, "unexpected": unexpected}))  # noqa: T201 - to the test
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
