"""Errors nobody raised on purpose, such as a full disk, cost the command they happen in and nothing else."""

import errno
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from kvdesk.backends.local import loaded_model
from kvdesk.backends.local.llama import open_model as open_model_module
from kvdesk.backends.local.llama.memory.mirrored_memory import MirroredMemory
from kvdesk.backends.local.scheduler.overflow_manager import OverflowManager
from kvdesk.errors import UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.protocol.cache import Forget, RebuildContext, VerifyConversation
from kvdesk.protocol.chat import LoadModel
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.model import Endpoint, LocalFile
from kvdesk.settings import Sampling
from tests.backends.local.conftest import SMALL, opened_with

SHORT = Sampling(temperature=0.0, max_tokens=4)
FULL = "No space left on device: /full."


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/full")


@pytest.mark.parametrize(("module", "where"), [(open_model_module, "run_preflight"), (loaded_model, "fingerprint")])
def test_a_load_that_fails_by_a_full_disk_leaves_the_model_that_is_open(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch, module: ModuleType, where: str
) -> None:
    """Before the old context is closed, and after."""
    chat, before = HeadlessChat(headless), session_of(headless)
    chat.answer("Hello", SHORT)
    with monkeypatch.context() as patch:
        patch.setattr(module, where, full_disk)
        with pytest.raises(UserError, match=FULL) as error:
            headless.do(LoadModel(LocalFile(before.loaded.header.path), before.runtime.context.settings))
    assert "full_disk" in error.value.detail
    assert session_of(headless) is before
    assert chat.answer("And again", SHORT).state == "complete"


def test_an_answer_that_cannot_begin_fails_by_itself(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, other = HeadlessChat(headless), HeadlessChat(headless)
    with monkeypatch.context() as patch:
        patch.setattr(OverflowManager, "fit", full_disk)
        with pytest.raises(UserError, match=FULL):
            chat.answer("Hello", SHORT)
    assert other.answer("Hello", SHORT).state == "complete"


def test_after_an_error_in_mid_operation_sequences_hold_what_the_map_says(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, session = HeadlessChat(headless), session_of(headless)
    chat.answer("Hello", SHORT)
    seq_rm = MirroredMemory.seq_rm

    def removes_and_fails(memory: MirroredMemory, seq_id: int, p0: int, p1: int) -> bool:
        seq_rm(memory, seq_id, p0, p1)
        raise ValueError("injected")

    with monkeypatch.context() as patch:
        patch.setattr(MirroredMemory, "seq_rm", removes_and_fails)
        with pytest.raises(UserError, match="Something unexpected went wrong: injected"):
            headless.do(Forget(chat.id))
    assert session.runtime.cache_manager.pool.get(chat.id).tokens == []
    assert chat.answer("And again", SHORT).state == "complete"
    assert session.runtime.context.memory.verification.state == "verified"


def test_a_job_that_fails_ends_by_itself(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = HeadlessChat(headless)
    chat.answer("Hello", SHORT)
    fail: Callable[..., None] = full_disk
    with monkeypatch.context() as patch:
        patch.setattr("kvdesk.backends.local.cache_manager.cache.Cache.spare", fail)
        with pytest.raises(UserError, match=FULL):
            headless.do(VerifyConversation(chat.id))
    assert not headless.engine.busy
    assert chat.answer("And again", SHORT).state == "complete"


def test_a_job_whose_end_fails_has_ended(talking_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for headless in opened_with(talking_file, SMALL):
        chat, engine = HeadlessChat(headless), headless.engine
        chat.answer("Tell me of the sea, and of what it brings. " * 8, SHORT)
        headless.events = []
        engine.handle(VerifyConversation(chat.id))
        engine.step()
        with monkeypatch.context() as patch:
            patch.setattr(MirroredMemory, "seq_rm", full_disk)
            engine.request_cancel()
            engine.step()
        assert not engine.busy
        (failed,) = [event.sentence for event in headless.events if isinstance(event, CommandFailed)]
        assert FULL in failed
        assert chat.answer("And again", SHORT).state == "complete"


def test_another_model_ends_what_was_being_read_into_the_old_context(talking_file: Path) -> None:
    with closing(HeadlessEngine()) as headless:
        headless.do(LoadModel(LocalFile(talking_file), SMALL))
        chat = HeadlessChat(headless)
        chat.answer("Hello", SHORT)
        headless.engine.handle(RebuildContext(SMALL, "tokens"))
        assert headless.engine.busy, "the conversation is to be read again"
        headless.engine.handle(LoadModel(LocalFile(talking_file), SMALL))
        assert not headless.engine.busy, "its context is gone"
        assert chat.answer("And again", SHORT).state == "complete"


def test_the_address_of_a_server_is_refused_and_the_open_model_stays(headless: HeadlessEngine) -> None:
    before = session_of(headless)
    with pytest.raises(UserError, match=r"http://localhost:8080/v1 is the address of a server"):
        headless.do(LoadModel(Endpoint("http://localhost:8080/v1", "tiny"), SMALL))
    assert session_of(headless) is before
