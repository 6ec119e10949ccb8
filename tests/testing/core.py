"""Code that makes of a Python what a core install is."""

CORE = """
import sys

KNOWN = {*sys.stdlib_module_names, "kvdesk", "msgspec", "numpy", "platformdirs", "typing_extensions", "wcwidth"}
KNOWN |= {"agent", "test_texts", "pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments"}

class Core:
    @staticmethod
    def find_spec(name, *rest):
        if name.partition(".")[0] not in KNOWN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Core)
"""
"""A core install: everything but kvdesk, what it needs, and pytest is missing."""
