"""`/completion`, in llama-server's own form."""

import json
from typing import Any

import httpx2 as httpx
import pytest

from kvdesk.server.errors import ApiError
from kvdesk.server.mixed_prompts import prompts_of
from tests.server.conftest import SETTINGS

PROMPT = "Once upon a time there was a cat who lived in a small house near the sea, and every morning the cat"


def asked(http: httpx.Client, **fields: Any) -> Any:
    answer = http.post("/completion", json={"prompt": PROMPT, "n_predict": 6, "seed": 7, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def streamed(http: httpx.Client, **fields: Any) -> list[dict[str, Any]]:
    answer = http.post("/completion", json={"prompt": PROMPT, "n_predict": 6, "stream": True, **fields})
    assert answer.status_code == 200, answer.text
    assert "[DONE]" not in answer.text
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def test_an_answer_has_llama_server_s_fields(http: httpx.Client) -> None:
    done = asked(http, return_tokens=True)
    assert (done["stop"], done["stop_type"], done["truncated"], done["index"]) == (True, "limit", False, 0)
    assert done["tokens_predicted"] == len(done["tokens"]) == done["timings"]["predicted_n"] == 6
    assert done["tokens_evaluated"] == done["timings"]["prompt_n"] + done["timings"]["cache_n"]
    assert done["tokens_cached"] == done["tokens_evaluated"] + 5
    assert done["prompt"].endswith(PROMPT)
    assert (done["generation_settings"]["seed"], done["generation_settings"]["n_predict"]) == (7, 6)
    assert done["generation_settings"]["mirostat"] == 0
    assert http.post("/detokenize", json={"tokens": done["tokens"]}).json()["content"] == done["content"]
    assert asked(http)["tokens"] == []


def test_a_stream_says_the_same(http: httpx.Client) -> None:
    *parts, last = streamed(http, return_progress=True)
    assert [part["stop"] for part in parts] == [False] * len(parts)
    assert "".join(part["content"] for part in parts) == asked(http)["content"]
    assert sum(len(part["tokens"]) for part in parts) == last["tokens_predicted"] == 6
    assert parts[0]["prompt_progress"]["total"] == last["tokens_evaluated"]
    assert (last["stop"], last["content"], last["stop_type"]) == (True, "", "limit")


def test_the_older_name_of_the_path_has_the_same_form(http: httpx.Client) -> None:
    found = http.post("/completions", json={"prompt": PROMPT, "n_predict": 6, "seed": 7}).json()
    assert found["content"] == asked(http)["content"]
    assert found["generation_settings"] == asked(http)["generation_settings"]


def test_each_part_of_a_stream_has_its_timings(http: httpx.Client) -> None:
    *parts, last = streamed(http, timings_per_token=True, cache_prompt=False)
    counted = [part["timings"]["predicted_n"] for part in parts]
    assert counted == sorted(counted)
    assert (counted[-1], parts[-1]["timings"]["cache_n"]) == (6, 0)
    assert parts[-1]["timings"].keys() == last["timings"].keys()
    assert all(value >= 0 for part in parts for value in part["timings"].values())
    assert "timings" not in streamed(http)[0]
    for path, body in (
        ("/v1/completions", {"prompt": PROMPT}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
        ("/v1/responses", {"input": "Hi", "max_output_tokens": 4}),
    ):
        asks = {"max_tokens": 4, "stream": True, "timings_per_token": True}
        text = http.post(path, json={**body, **asks}).text
        assert text.count('"timings"') >= 3, path
        assert '"timings"' not in text.split("\n\n")[0] or "text_completion" in text, "nothing has happened yet"


def test_no_token_ends_an_answer_that_ignores_ends(http: httpx.Client) -> None:
    done = asked(http, ignore_eos=True, n_predict=40)
    assert (done["tokens_predicted"], done["stop_type"]) == (40, "limit")
    biases = done["generation_settings"]["logit_bias"]
    assert {one["bias"] for one in biases} == {None}, "as JSON has minus infinity"
    eos = http.post("/tokenize", json={"content": http.get("/props").json()["eos_token"]}).json()["tokens"]
    assert eos[0] in [one["token"] for one in biases]
    assert asked(http)["generation_settings"]["logit_bias"] == []


def test_an_answer_that_fills_the_context_is_truncated(http: httpx.Client) -> None:
    done = asked(http, prompt=[5] * (SETTINGS.n_ctx - 20), n_predict=-1, ignore_eos=True)
    assert (done["truncated"], done["stop_type"]) == (True, "limit")
    assert done["tokens_predicted"] >= 20


def test_the_second_time_its_prompt_is_in_the_cache(http: httpx.Client) -> None:
    asked(http)
    again, afresh = asked(http), asked(http, cache_prompt=False)
    assert again["timings"]["cache_n"] == again["tokens_evaluated"] - 1
    assert afresh["timings"]["cache_n"] == 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_only_read_is_in_the_cache(http: httpx.Client, stream: bool) -> None:
    prompt = f"The {'streamed' if stream else 'whole'} tide comes in twice a day, and twice a day it goes out again."
    answer = http.post("/completion", json={"prompt": prompt, "n_predict": 0, "stream": stream})
    (one,) = [json.loads(line.removeprefix("data: ")) for line in answer.text.strip().split("\n\n")]
    assert (one["content"], one["tokens_predicted"], one["stop_type"]) == ("", 0, "limit")
    assert one["timings"]["predicted_n"] == 0
    after = http.post("/completion", json={"prompt": prompt, "n_predict": 1}).json()
    assert after["timings"]["prompt_n"] == 1, "the last token is read again for what follows it"


def test_an_answer_that_takes_too_long_ends_with_its_line(http: httpx.Client) -> None:
    body = {"prompt": "Lines:", "grammar": 'root ::= "line\\n"{400}', "n_predict": 400}
    assert http.post("/completion", json={**body, "n_predict": 20}).json()["tokens_predicted"] == 20
    cut = http.post("/completion", json={**body, "t_max_predict_ms": 1}).json()
    assert (cut["stop_type"], cut["stop"]) == ("limit", True)
    assert cut["tokens_predicted"] < 300
    assert "\n" in cut["content"]


def test_a_stop_string_is_reported(http: httpx.Client) -> None:
    text = asked(http)["content"]
    done = asked(http, stop=[text[2:4], "never written"])
    assert (done["stop_type"], done["stopping_word"]) == ("word", text[2:4])
    assert done["content"] == text[: text.index(text[2:4])]


def test_prompts_in_every_form_are_the_same_prompt(http: httpx.Client) -> None:
    tokens = http.post("/tokenize", json={"content": PROMPT, "add_special": True}).json()["tokens"]
    whole = asked(http, cache_prompt=False)["content"]
    for form in (tokens, {"prompt_string": PROMPT}):
        assert asked(http, prompt=form, cache_prompt=False)["content"] == whole
    several = asked(http, prompt=[tokens, PROMPT])
    assert [one["index"] for one in several] == [0, 1]
    assert [one["tokens_evaluated"] for one in several] == [len(tokens)] * 2
    mixed = asked(http, prompt=[tokens[0], PROMPT, *tokens])
    assert mixed["tokens_evaluated"] == 1 + 2 * len(tokens)


def test_tokens_come_with_their_probabilities(http: httpx.Client) -> None:
    done = asked(http, n_probs=3)
    assert [len(one["top_logprobs"]) for one in done["completion_probabilities"]] == [3] * 6
    *parts, last = streamed(http, n_probs=3)
    assert [len(part["completion_probabilities"]) for part in parts] == [1] * 6
    assert last["tokens_predicted"] == 6


@pytest.mark.parametrize("more", [{}, {"grammar": "root ::= [a-z ]+"}], ids=["plain", "grammar"])
def test_probabilities_after_sampling(http: httpx.Client, more: dict[str, Any]) -> None:
    """As llama-server's: of what samplers left, which is everything, and nothing that is impossible."""
    wanted = {"n_probs": 10, "post_sampling_probs": True, "temperature": 1.0, "top_k": 5, "top_p": 1.0, "min_p": 0.0}
    for one in asked(http, **wanted, **more)["completion_probabilities"]:
        tops = one["top_probs"]
        assert [top["prob"] for top in tops] == sorted((top["prob"] for top in tops), reverse=True)
        assert 1 <= len(tops) <= 5
        assert sum(top["prob"] for top in tops) == pytest.approx(1.0, abs=1e-4)
        assert {"id": one["id"], "prob": one["prob"]} in [{"id": t["id"], "prob": t["prob"]} for t in tops]
        assert "logprob" not in one
    (first, *_) = asked(http, **{**wanted, "temperature": 0.0})["completion_probabilities"]
    assert (first["prob"], [top["prob"] for top in first["top_probs"]]) == (1.0, [1.0])


def test_watching_a_sampler_changes_no_token(http: httpx.Client) -> None:
    wanted = {"n_probs": 3, "temperature": 1.5, "seed": 11, "return_tokens": True}
    before, after = (asked(http, **wanted, post_sampling_probs=post)["tokens"] for post in (False, True))
    assert before == after


def test_only_the_wanted_fields_come(http: httpx.Client) -> None:
    fields = ["content", "generation_settings/n_predict", "nothing/of/it"]
    assert set(asked(http, response_fields=fields)) == set(fields[:2])


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": ""},
        {"prompt": []},
        {"prompt": None},
        {"prompt": [1.5]},
        {"prompt": [-1, 2]},
        {"prompt": [1, [2]]},
        {"prompt": [1 << 30]},
        {"prompt": ["x"] * 65, "n": 2},
        {"prompt": {"prompt_string": "x", "multimodal_data": ["AAAA"]}},
        {"n_probs": -1},
        {"prompt": "x " * 5000},
    ],
)
def test_what_cannot_be_answered_is_refused(http: httpx.Client, fields: dict[str, Any]) -> None:
    answer = http.post("/completion", json={"prompt": PROMPT, "n_predict": 2, **fields})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_a_list_with_a_number_is_one_prompt() -> None:
    assert prompts_of([1, 2, "a", 3], "prompt", 2) == [((1, 2), "a", (3,))]
    assert prompts_of(["a", [1, "b"]], "prompt", 2) == [("a",), ((1,), "b")]
    with pytest.raises(ApiError, match=r"^prompt\.1: "):
        prompts_of(["a", {"content": "b"}], "prompt", 2)
