"""A pytest plugin for llama.cpp's own tests of its server (`tools/server/tests`): they ask `kvdesk serve` instead.

Only their fixture is adapted: how a server starts, and what follows from the embedded model answering in place of
stories260K (its texts and counts of tokens), and tiny models in place of those that are downloaded. A test that cannot
apply is left out, with the reason (`NOT_APPLYING`).
"""

import importlib
import os
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any, Final

import gguf
import pytest

from kvdesk import paths
from tests.backends.local.talking import write_talking
from tests.places import ROOT
from tests.server.encoder import write_encoder

NOT_APPLYING: Final = {
    "test_server_multiple_addresses": "kvdesk serve listens at one address",
    "test_server_slots": "/slots cannot be switched off",
    "test_load_split_model": "downloads a model",
    "test_no_ui": "kvdesk serve has no pages",
    "test_server_model_aliases_and_tags": "tags and several names are for llama-server's router",
    "test_chat_completion_cached_tokens": "counts of stories260K's tokens",
    "test_chat_template": "needs --chat-template and the prompt in the answer (__verbose)",
    "test_chat_template_assistant_prefill": "needs --chat-template-file and __verbose",
    "test_chat_template_continue_final_message_vllm_compat": "needs --chat-template-file and __verbose",
    "test_apply_chat_template": "needs --chat-template",
    **dict.fromkeys(
        ("test_completion_unified[256-4-n_predict_vals1", "test_completion_unified[256-4-n_predict_vals2"),
        "an answer that finds no cell free ends with the tokens it has",
    ),
    "test_completion_response_fields": "the embedded model's vocabulary adds no BOS",
    "test_completion_stream_with_openai_library_stops": "downloads a model",
    "test_nocache_long_input_prompt": "counts of stories260K's tokens",
    "test_completion_prompt_cache": "counts of stories260K's tokens",
    "test_with_qwen_model": "downloads a model",
    "test_slot_restore_legacy_token_list": "counts of stories260K's tokens",
    **dict.fromkeys(
        (
            *("test_slot_save_restore_text_only_on_multimodal", "test_slot_save_restore_with_image"),
            *("test_slot_save_restore_with_two_images", "test_slot_save_restore_with_image_across_restart"),
            *(
                "test_slot_save_restore_image_payload_larger_than_context",
                "test_slot_restore_media_file_without_mmproj",
            ),
        ),
        "downloads a model that sees pictures",
    ),
    **dict.fromkeys(
        (
            "test_reasoning[deepseek-ai-DeepSeek-R1-Distill-Qwen-32B-on",
            "test_reasoning[deepseek-ai-DeepSeek-R1-Distill-Qwen-32B-auto",
            "test_reasoning[Qwen-QwQ-32B-auto",
            "test_reasoning[CohereForAI-c4ai-command-r7b-12-2024-tool_use-auto",
        ),
        "llama-server gives every template enable_thinking, kvdesk only where a request says so",
    ),
    "test_date_inside_prompt": "kvdesk gives templates strftime_now, as transformers does, and no date of its own",
    "test_embedding_mixed_input[-": "the tiny encoder has no token for an empty text",
    "test_embedding_pooling_none": "counts of BERT's tokens",
    "test_embedding_usage_multiple": "counts of BERT's tokens",
    "test_rerank": "random weights rank by chance",
    "test_rerank_tei_format": "random weights rank by chance",
    "test_tokenize_with_bos": "the embedded model's vocabulary adds no BOS",
    "test_verbose_debug": "the prompt in the answer (__verbose)",
    "test_anthropic_empty_messages": "messages are needed, as Anthropic has it",
    "test_anthropic_tool_result_with_image": "a picture is refused with 400, and in other words",
    "test_anthropic_vision_format_accepted": "a picture is refused with 400, and in other words",
    "test_anthropic_vision_base64_with_multimodal_model": "downloads a model",
    "test_access_static_assets_without_api_key": "kvdesk serve has no pages",
    "test_cors_options[web.mydomain.fr-Access-Control-Allow-Headers": "allows the headers that a page asks for",
    "test_cors_origins_localhost_rejects": "a page that may not ask gets 403, and no such header either",
    "test_cors_origins_defaults_to_localhost_with_tools_enabled": "kvdesk serve has no tools",
    "test_cors_proxy_only_forwards_explicit_proxy_headers": "kvdesk serve forwards no requests",
    "test_local_media_file": "a picture is refused",
    "test_metrics_disabled": "/metrics cannot be switched off",
    "test_metrics_prometheus_format": "n_tokens_max is a gauge, and drafts are counted by tokens only",
    "test_metrics_prompt_processed_and_cached": "a prompt of 9 tokens is too short to share cells",
    "test_metrics_embedding_prompt_is_counted": "another process makes embeddings, and /metrics is the engine's",
    "test_responses_stream_with_llama_telemetry": "an answer that is cut off ends as incomplete, as OpenAI has it",
    "test_ctx_shift_disabled_long_prompt": "counts of stories260K's tokens",
    "test_ctx_shift_enabled": "a full context ends the answer",
    "test_ctx_shift_disabled_short_prompt[-1-248": "counts of stories260K's tokens",
}
"""Tests that ask for what kvdesk serve does not have, by name: each with the reason."""
_PARTS: Final = tuple(name for name in NOT_APPLYING if "[" in name)
"""Of some tests only a part does not apply: how its name begins."""
_TEMPLATES: Final = "needs --chat-template"
_TINY: Final = ("::test_completion[Write", "::test_completion_stream[Write", "test_ctx_shift")
"""Tests whose answers are longer than those of the embedded model."""
_FRESH: Final = "test_metrics"
"""Tests of counters need a server that nobody has asked."""
_TEXTS: Final = (
    *("content", "couldn't", "Suddenly", "blue", "Aside", "Whillicter", "John"),
    *("going", "princesses", "Ann|", "Dad|", "Whiskers", "Jack"),
)
"""By these a pattern is known that stories260K's text matches; any text does here."""
_BEGINS_S: Final = 120.0
_SERVE: Final = """
import sys
from kvdesk.server import service
service.FINGERPRINT = f"b-{service.FINGERPRINT}"  # the suite asks for llama.cpp's form of it
from kvdesk.__main__ import main
sys.exit(main(["serve", *sys.argv[1:]]))
"""
_left_out: list[str] = []
_MADE: Final = Path(os.environ.get("KVDESK_HOME") or tempfile.mkdtemp(prefix="kvdesk-suite-"))
"""Where tiny models are written."""
_INSPECT_KEY: Final = "sk-suite-inspect-key"
_COUNTS: Final = ("n_saved", "n_restored", "prompt_n")
_running: dict[tuple[str, ...], Any] = {}
"""The server of the last test by its options: the next one with the same options asks it too."""


class _Counted(int):
    """A count of stories260K's tokens: any other model has another."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and other > 0

    __hash__ = int.__hash__


def pytest_report_collectionfinish() -> list[str]:
    """What was left out, and why."""
    return _left_out


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not apply, and take counts of tokens as those of another model."""
    left_out = []
    for item in items:
        params: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
        name = item.name.partition("[")[0]
        name = next((start for start in _PARTS if item.name.startswith(start)), name)
        if name in NOT_APPLYING or params.get("chat_template") is not None:
            left_out.append(item)
            _left_out.append(f"not applying: {item.name}: {NOT_APPLYING.get(name, _TEMPLATES)}")
        names = ("n_prompt", "batch_count", "n_tokens")
        params.update({name: _Counted(params[name]) for name in names if name in params})
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _start(server: Any, timeout_seconds: float = _BEGINS_S) -> None:
    """Start `kvdesk serve` with the settings that a test gave its server, and wait until it answers."""
    options = {
        "--host": server.server_host,
        "--port": server.server_port,
        "--alias": server.model_alias,
        "--temperature": server.temperature,
        "--seed": server.seed,
        "--n-ctx": server.n_ctx,
        "--n-batch": server.n_batch,
        "--n-ubatch": server.n_ubatch or server.n_batch,
        "--n-seq-max": server.n_slots,
        "--max-tokens": server.n_predict if server.n_predict != -1 else None,
        "--api-key": server.api_key,
        "--model": _model(server),
        "--slot-save-path": server.slot_save_path,
        "--inspect-key": _INSPECT_KEY if server.slot_save_path else None,
        "--pooling": server.pooling,
        "--embedding-model": _encoder(gguf.PoolingType.MEAN) if server.server_embeddings else None,
        "--reranking-model": _encoder(gguf.PoolingType.RANK) if server.server_reranking else None,
        "--reasoning-budget": 0 if server.reasoning == "off" else None,
        "--allow-origin": server.cors_origins or "*",
    }
    given = tuple(str(part) for pair in options.items() if pair[1] is not None for part in pair)
    given += () if server.kv_unified else ("--streams",)
    if given in _running and _FRESH not in _test():
        server.process = _running[given]
        return
    _end()
    server.process = _running[given] = subprocess.Popen([sys.executable, "-c", _SERVE, *given], cwd=ROOT)
    over = time.monotonic() + max(timeout_seconds, _BEGINS_S)
    while server.process.poll() is None and time.monotonic() < over:
        try:
            if server.make_request("GET", "/health").status_code in (200, 401):
                return
        except OSError:  # of requests: it does not listen yet
            time.sleep(0.05)
    raise TimeoutError("kvdesk serve did not start")


def _model(server: Any) -> str | None:
    """The file of a model: with tokens to fill a text in, with a chat template, or where answers must be as long as was
    asked for, a tiny one with random weights.
    """
    template = server.chat_template_file
    needs_tiny = server.kv_unified or server.slot_save_path or "infill" in str(server.model_hf_repo)
    needs_tiny = needs_tiny or any(name in _test() for name in _TINY)
    if template is None and not needs_tiny:
        return os.environ.get("KVDESK_LLAMA_MODEL")
    made = _MADE / f"{Path(template or 'talking').stem}.gguf"
    if not made.exists():
        embedded = paths.embedded_model()
        assert embedded is not None, "the embedded model belongs to the set-up"
        write_talking(made, embedded, template=Path(template).read_text("utf-8") if template else None)
    return str(made)


def _test() -> str:
    """The test that runs."""
    return os.environ.get("PYTEST_CURRENT_TEST", "")


def _encoder(pooling: gguf.PoolingType) -> Path:
    made = _MADE / f"{pooling.name}.gguf"
    return made if made.exists() else write_encoder(made, pooling)


def _end() -> None:
    while _running:
        _, process = _running.popitem()
        process.kill()
        process.wait()


def pytest_sessionfinish() -> None:
    """The last server ends."""
    _end()


def _adapt() -> None:
    """Before the suite's conftest is imported. `wget` is only for downloads."""
    sys.path.insert(0, str(Path.cwd()))
    sys.modules.setdefault("wget", types.ModuleType("wget"))
    utils: Any = importlib.import_module("utils")
    utils.ServerProcess.start = _start
    ask = utils.ServerProcess.make_request

    def with_key(server: Any, *arguments: Any, **named: Any) -> Any:
        if server.slot_save_path:
            named.setdefault("headers", {"Authorization": f"Bearer {_INSPECT_KEY}"})
        answer = ask(server, *arguments, **named)
        if server.slot_save_path and isinstance(answer.body, dict):
            for counts in (answer.body, answer.body.get("timings", {})):
                counts.update({name: _Counted(counts[name]) for name in _COUNTS if name in counts})
        return answer

    utils.ServerProcess.make_request = with_key
    utils.ServerProcess.stop = lambda _server: None
    utils.ServerPreset.load_all = staticmethod(lambda: None)
    matches = utils.match_regex
    utils.match_regex = lambda regex, text: (any(one in regex for one in _TEXTS) and bool(text)) or matches(regex, text)


_adapt()
