"""Figures of a server's cache under the names of several versions."""

from contextlib import suppress

import pytest

from kvdesk.backends.openai.server_metrics import read
from kvdesk.protocol.blocks import ServerMetrics

VLLM = """# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
# TYPE vllm:prefix_cache_queries counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 800.0
vllm:prefix_cache_queries_created{engine="0",model_name="m"} 1.7e9
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 600.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
"""
SGLANG = """# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="m"} 0.28
# TYPE sglang:cache_hit_rate gauge
sglang:cache_hit_rate{model_name="m"} 0.5
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m"} 4
"""


def test_vllm_and_sglang_are_read() -> None:
    vllm = read(VLLM)
    assert vllm == ServerMetrics(usage=0.5, queried_tokens=800.0, hit_tokens=600.0, running=3.0)
    assert vllm.share_of_hits == 0.75
    sglang = read(SGLANG)
    assert sglang == ServerMetrics(usage=0.28, hit_rate=0.5, waiting=4.0)
    assert sglang.share_of_hits == 0.5


def test_what_is_not_told_is_not_made_up() -> None:
    assert read("") == ServerMetrics()
    assert read("").share_of_hits is None


def test_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match=r"."):
        read("<html> 1 2 3 {")


def test_numbers_that_no_counter_has_are_left_out() -> None:
    for number in ("NaN", "+Inf", "1" + "0" * 400, "1e999"):
        assert read(f"vllm:kv_cache_usage_perc {number}\nvllm:num_requests_running 2\n") == ServerMetrics(running=2.0)


@pytest.mark.parametrize("text", ['# TYPE   "', "# HELP \t\x0b a", f"a 1 1{'0' * 400}", 'a{ ="b"} 1', "{", "a{"])
def test_other_text_is_an_error_of_one_kind(text: str) -> None:
    with suppress(ValueError):
        read(text)
