"""What Ollama's clients ask."""

from __future__ import annotations

import httpx2 as httpx

from kvdesk import __version__


def test_the_open_model_is_listed_and_shown(http: httpx.Client) -> None:
    assert http.get("/api/version").json() == {"version": __version__}
    (one,) = http.get("/api/tags").json()["models"]
    assert one["name"] == one["model"] == http.get("/v1/models").json()["data"][0]["id"]
    assert one["size"] > 0
    shown = http.post("/api/show", json={"model": one["name"]}).json()
    assert shown["details"] == one["details"]
    assert (one["details"]["format"], one["details"]["family"]) == ("gguf", "llama")
    assert shown["model_info"]["llama.context_length"] > 0
    assert "<|im_start|>" in shown["template"]
    assert {"completion", "tools"} <= set(shown["capabilities"])
    assert http.post("/api/show", content=b"no").status_code == 400
