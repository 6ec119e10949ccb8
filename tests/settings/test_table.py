"""What every table of settings is made of."""

import subprocess
import sys


def test_no_plug_ins_of_other_packages_are_looked_for() -> None:
    program = "import kvdesk.settings, pydantic.plugin._loader as loader; print(loader._plugins)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "None", "pydantic read the metadata of every package"
