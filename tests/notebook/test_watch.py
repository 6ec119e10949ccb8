"""The cache of a `llama_cpp.Llama` followed by its calls, and proved with the engine's state, in every memory class."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kvdesk
from kvdesk.backends.local.llama.binding import llama_class
from kvdesk.cache.journal.file import load_journal
from kvdesk.errors import UserError
from tests.backends.local.ids import CLASSES
from tests.backends.local.tiny_models import written

PROMPT = list(range(5, 45))


@pytest.fixture
def llama(tiny_folder: Path) -> Iterator[Any]:
    yield from made(written(tiny_folder, "attention"))


def made(file: Path) -> Iterator[Any]:
    one = {"n_threads": 1, "n_threads_batch": 1}
    found = llama_class()(str(file), n_ctx=256, n_batch=16, n_ubatch=8, verbose=False, **one)
    yield found
    found.close()


@pytest.mark.parametrize("name", CLASSES)
def test_every_call_is_followed(name: str, tiny_folder: Path) -> None:
    for llama in made(written(tiny_folder, name)):
        with kvdesk.watch(llama) as cache:
            llama.eval(PROMPT)
            assert cache.verify().state == "verified", cache.verify().detail
            state = llama.save_state()
            llama.eval(PROMPT[:3])
            assert cache.snapshot.verification.state == "mirrored"
            assert cache.mirror.seq_pos_max(0) == len(PROMPT) + 2
            llama.load_state(state)
            assert cache.mirror.seq_pos_max(0) == len(PROMPT) - 1
            llama.reset()
            llama.eval([9, *PROMPT])
            assert cache.verify().state == "verified", cache.verify().detail
        names = [event.name for event in cache.events]
        assert names.count("decode") == 7
        assert {"seq_rm", "state_set_data"} <= set(names)


def test_sequences_are_followed(llama: Any) -> None:
    with kvdesk.watch(llama) as cache:
        llama.eval(PROMPT)
        llama._ctx.kv_cache_seq_rm(0, 10, 20)
        llama._ctx.kv_cache_seq_shift(0, 20, -1, -10)
        llama._ctx.kv_cache_seq_cp(0, 0, -1, -1)
        llama._ctx.kv_cache_seq_keep(0)
        assert cache.verify().state == "verified", cache.verify().detail
        assert cache.mirror.seq_pos_max(0) == len(PROMPT) - 11
        llama._ctx.kv_cache_clear()
        assert cache.mirror.seq_pos_max(0) == -1


def test_what_did_not_fit_is_followed(llama: Any) -> None:
    with kvdesk.watch(llama) as cache:
        with pytest.raises(RuntimeError, match="returned 1"):
            llama.eval(PROMPT * 7)
        assert cache.verify().state == "verified", cache.verify().detail


def test_the_object_gets_its_methods_back(llama: Any) -> None:
    before = set(vars(llama)), set(vars(llama._ctx))
    with kvdesk.watch(llama) as cache, pytest.raises(UserError, match="is watched already"), kvdesk.watch(llama):
        pass
    assert (set(vars(llama)), set(vars(llama._ctx))) == before
    n = len(cache.events)
    llama.eval(PROMPT)
    assert len(cache.events) == n


def test_a_cache_that_is_in_use_is_refused(llama: Any) -> None:
    llama.eval(PROMPT)
    with pytest.raises(UserError, match="is in use already"), kvdesk.watch(llama):
        pass


def test_what_is_no_llama_gets_a_sentence() -> None:
    with pytest.raises(UserError, match=r"follows a llama_cpp\.Llama, and this is a str"):
        kvdesk.watch("model.gguf")


def test_a_terminal_shows_numbers(llama: Any) -> None:
    with kvdesk.watch(llama) as cache:
        llama.eval(PROMPT)
    first, second = repr(cache).splitlines()
    assert first.endswith("positions verified")
    assert second == "kv, stream 0: 40 of 256 cells used, 0 shared, largest free run 216"


def test_a_call_behind_its_back_is_a_mismatch(llama: Any) -> None:
    with kvdesk.watch(llama) as cache:
        llama.eval(PROMPT)
        type(llama._ctx).kv_cache_clear(llama._ctx)
        llama.eval(PROMPT[:2])
        found = cache.snapshot.verification
        assert found.state == "mismatch"
        assert "sequence 0" in found.detail
        assert "not followed after operation" in cache._repr_html_()


def test_a_journal_can_be_replayed(llama: Any, tmp_path: Path) -> None:
    with kvdesk.watch(llama) as cache:
        llama.eval(PROMPT)
    cache.save(tmp_path / "cells.jsonl")
    header, recording = load_journal(tmp_path / "cells.jsonl")
    assert header.model == Path(llama.model_path).name
    assert recording.state_at(recording.last)[0].streams[0].used == len(PROMPT)
