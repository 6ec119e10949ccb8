"""The plug-in of pytest: the fixture `kv_cache`. pytest alone imports this module."""

import pytest

from kvdesk.testing.kv_cache import KvCache
from kvdesk.testing.replay import BUDGETS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("kv_budget", "file with the budgets of kv_cache.replay", default=BUDGETS)


@pytest.fixture
def kv_cache(pytestconfig: pytest.Config) -> KvCache:
    """Whether an agent's requests continue each other, and what of them a KV cache reads again."""
    return KvCache(pytestconfig.rootpath / str(pytestconfig.getini("kv_budget")))
