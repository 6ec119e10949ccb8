"""The plug-in in a pytest of its own: an agent that fails and is fixed, and what needs no engine in a core install."""

import sys
import textwrap
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.testing.core import CORE

pytest_plugins = "pytester"

AGENT = """
    from datetime import datetime, timedelta

    def requests(system):
        messages, sent, now = [], [], datetime(2026, 5, 12, 9, 59, 58)
        for question in ("Is the lamp lit?", "And the horn?", "Who keeps it?"):
            now += timedelta(seconds=1)
            messages = [*messages, {"role": "user", "content": question}]
            sent.append({"messages": [{"role": "system", "content": system(now)}, *messages]})
            messages = [*messages, {"role": "assistant", "content": "I go and look. " * 3}]
        return sent

    KEEPER = "You keep a lighthouse. " + "Say what you see, and when you saw it. " * 6

    def dated(now):
        return f"It is {now}. {KEEPER}"

    def plain(now):
        return KEEPER
"""
TEXTS = """
    import pytest
    from agent import dated, plain, requests

    @pytest.mark.parametrize("system", [dated, plain])
    def test_texts(kv_cache, system):
        kv_cache.assert_prefix_stable(requests(system))

    def test_tokens(kv_cache):
        kv_cache.assert_prefix_stable([[1, 2, 3], [1, 2, 4]])
"""
REPLAYED = """
    import os
    import pytest
    from agent import dated, plain, requests

    @pytest.mark.parametrize("system", [dated, plain])
    def test_replay(kv_cache, system):
        replay = kv_cache.replay(requests(system), os.environ["MODEL"])
        replay.assert_reused(2, at_least=0.95)
        replay.assert_budget("keeper")
"""


@pytest.fixture
def agent(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(agent=textwrap.dedent(AGENT))
    return pytester


def test_an_agent_with_a_date_fails_and_passes_when_fixed(
    agent: pytest.Pytester, talking_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL", str(talking_file))
    agent.makepyfile(test_replay=textwrap.dedent(REPLAYED))
    agent.makefile(".toml", **{"kv-budget": "[keeper]\nleast_share = 1.0\nmost_read = 200\n"})
    result = agent.runpytest_subprocess("-p", "kvdesk.testing.plugin", "-vv")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*test_replay[[]plain] PASSED*",
            "E*Turn 2 reused *% of what it could (* of * tokens), not 95%.",
            "E*The first token that differs is number * of the prompt:",
            "E*turn 1: '09:59:59. You keep a*'",
            "E*turn 2: '10:00:00. You keep a*'",
            "test_replay.py:8: CacheMiss",
        ]
    )


def test_texts_are_checked_without_qt_and_engine(agent: pytest.Pytester) -> None:
    agent.makepyfile(test_texts=textwrap.dedent(TEXTS))
    run = "pytest.main(['-p', 'kvdesk.testing.plugin', '-vv'])"
    code = f"{CORE}\nimport time\nimport pytest\n{run}\nprint(time.process_time())"
    result = agent.run(sys.executable, "-c", code)
    assert result.parseoutcomes() == {"passed": 1, "failed": 2}
    result.stdout.fnmatch_lines(
        [
            "*test_texts[[]plain] PASSED*",
            "E*Request 2 does not begin with request 1: *",
            "E*Usual cause: the system prompt contains the date or the time.",
            "E*token 2 of 3 is the first that differs.",
        ]
    )
    assert float(result.outlines[-1]) < 2


def test_a_replay_without_the_engine_says_what_to_install(agent: pytest.Pytester) -> None:
    code = f"{CORE}\nfrom kvdesk.testing import KvCache\nKvCache().replay([[1], [1, 2]])"
    result = agent.run(sys.executable, "-c", code)
    result.stderr.fnmatch_lines(
        ["*UserError: A replay needs the engine (* is missing): pip install 'kvdesk[[]engine]'."]
    )


def test_the_import_is_quick(agent: pytest.Pytester) -> None:
    code = "import time\nstart = time.process_time()\nimport kvdesk.testing\nprint(time.process_time() - start)"
    result = agent.run(sys.executable, "-c", f"import pytest\n{code}")
    assert float(result.outlines[-1]) < 0.3
