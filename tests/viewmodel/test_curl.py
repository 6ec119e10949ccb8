"""The line is one that a shell takes apart again as it was meant."""

import json
import shlex

from kvdesk.viewmodel.curl import curl_line


def test_a_shell_reads_the_address_the_key_and_the_body() -> None:
    words = shlex.split(curl_line("http://127.0.0.1:8099/v1", "sk-kvdesk-secret", windows=False))
    assert words[:2] == ["curl", "http://127.0.0.1:8099/v1/chat/completions"]
    assert "Authorization: Bearer sk-kvdesk-secret" in words
    assert json.loads(words[-1]) == {"messages": [{"role": "user", "content": "Hello"}]}


def test_cmd_has_no_single_quotes() -> None:
    line = curl_line("http://pc:8099/v1", "sk-1", windows=True)
    assert "'" not in line
    assert json.loads(shlex.split(line)[-1]) == {"messages": [{"role": "user", "content": "Hello"}]}
