"""For the tests of agents: does each request continue the one before, and what of it does a cache have to read again?

    kv_cache   what a test calls: `assert_prefix_stable`, `replay`     plugin   the fixture of pytest with that name
      prompts  a request as named parts, in the order of the prompt    stable   the first part that differs, in words
      replay   what a cache reused, turn by turn, and budgets of it    engine   the engine that finds it out

Texts and tokens are compared without an engine, without Qt and without a model: that needs `pip install kvdesk` alone.
"""

from kvdesk.testing.kv_cache import KvCache
from kvdesk.testing.stable import CacheMiss

__all__ = ["CacheMiss", "KvCache"]
