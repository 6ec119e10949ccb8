"""What llama-server tells of itself and its model, and kvdesk too."""

from __future__ import annotations

import httpx2 as httpx

from tests.server.conftest import SETTINGS


def test_props_say_what_is_served(http: httpx.Client) -> None:
    props = http.get("/props").json()
    assert props["default_generation_settings"]["n_ctx"] == SETTINGS.n_ctx
    assert props["default_generation_settings"]["params"]["temperature"] == 0.0
    assert props["default_generation_settings"]["params"]["n_predict"] == -1
    assert props["total_slots"] == SETTINGS.n_seq_max
    assert "<|im_start|>" in props["chat_template"]
    assert props["eos_token"] == "<|im_end|>"
    assert props["model_path"].endswith(".gguf")
    assert "/" not in props["model_path"]
    assert http.get("/v1/models").json()["data"][0]["id"] == props["model_alias"]
