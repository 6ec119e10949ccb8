"""What programs get that a packaged kvdesk starts."""

import pytest

from kvdesk.children.environment import give_back

BUNDLE = "/opt/kvdesk/_internal"
OWN = {
    "LD_LIBRARY_PATH": f"{BUNDLE}",
    "QT_PLUGIN_PATH": f"{BUNDLE}/PySide6/Qt/plugins",
    "OPENSSL_MODULES": f"{BUNDLE}/ossl-modules",
    "_PYI_ARCHIVE_FILE": "/opt/kvdesk/kvdesk",
    "_PYI_PARENT_PROCESS_LEVEL": "1",
}


@pytest.mark.parametrize("given", [{}, {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"}, {"LD_LIBRARY_PATH": ""}])
def test_other_programs_get_the_environment_that_kvdesk_was_given(given: dict[str, str]) -> None:
    before = {"PATH": "/usr/bin", "HOME": "/home/me"} | given
    search = given.get("LD_LIBRARY_PATH")
    ours = OWN if search is None else OWN | {"LD_LIBRARY_PATH": f"{BUNDLE}:{search}", "LD_LIBRARY_PATH_ORIG": search}
    now = before | ours
    give_back(now, BUNDLE)
    assert now == before
