"""All tuned numbers are in one table: no policy has another."""

import re

from kvdesk.policies.tuned import TABLE
from tests.places import ROOT

MOST = 25
ENGINES = {  # no choice: they follow from llama.cpp, from the system or from the table
    "ROWS", "_SPAN", "_SPLIT", "_APART_S", "_IDLE", "_PROC_STAT",
}  # fmt: skip


def test_no_policy_has_a_number_of_its_own() -> None:
    assert len(TABLE) <= MOST
    rooms = ("kvdesk/policies", "kvdesk/backends/local/scheduler")
    files = [file for room in rooms for file in (ROOT / room).rglob("*.py") if file.name != "tuned.py"]
    named = re.compile(r"(?m)^([A-Z_]+)\b[^=\n]*= [^\n]*\d")
    found = {name for file in files for name in named.findall(file.read_text(encoding="utf-8"))}
    assert found - ENGINES == {
        "AIM", "LARGE_BATCH", "LEAST", "STALE_S", "_CLEARLY", "_QUARTER",  # derived
        "TELL_S",  # how often the window hears
        "MOST_CHARACTERS", "MOST_PREVIEWED", "MOST_SHOWN", "_COUNTED", "_CUT", "_IN_ANSWER", "FEW_ALIKE",  # of texts
        "_N", "PORTION", "SIZES",  # of guesses: which hold is counted, what a batch costs is measured
        "_NOTHING",
    }  # fmt: skip
