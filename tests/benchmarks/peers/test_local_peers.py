"""kvdesk and `Llama` as peers, on the embedded model: chats, stopping, two at once, a restart."""

import re
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from kvdesk.settings import ContextSettings
from tests.benchmarks.peers.kvdesk_itself import Kvdesk
from tests.benchmarks.peers.llama_class import LlamaPeer
from tests.benchmarks.peers.peer import PeerFailed, Reading, answer

SETTINGS = ContextSettings(n_ctx=512, n_seq_max=4)


@pytest.fixture(scope="module")
def kvdesk(model_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kvdesk]:
    with closing(Kvdesk(model_file, SETTINGS, tmp_path_factory.mktemp("states"))) as made:
        yield made


@pytest.fixture(scope="module")
def llama(model_file: Path) -> Iterator[LlamaPeer]:
    with closing(LlamaPeer(model_file, SETTINGS)) as made:
        yield made


def test_both_say_the_same(kvdesk: Kvdesk, llama: LlamaPeer) -> None:
    for text in ("Name a bird.", "And a fish?"):
        ours, theirs = answer(kvdesk, "same", text, 4), answer(llama, "same", text, 4)
        assert ours.text.strip() == theirs.text.strip()
        assert 1 < ours.n_tokens == theirs.n_tokens <= 4
        assert ours.n_read is not None
        assert re.match(r"had attention over \d+ cells for a chat of \d+ tokens", ours.how)
        assert theirs.how.startswith("wrote with ")


def test_a_second_turn_computes_only_what_is_new(kvdesk: Kvdesk) -> None:
    first, second = (answer(kvdesk, "turns", text, 4) for text in ("Name a tree. " * 10, "And a leaf?"))
    assert first.n_read is not None
    assert second.n_read is not None
    assert second.n_read < 20 < first.n_read


def test_a_chat_goes_on_behind_an_answer_that_was_cut_off(kvdesk: Kvdesk, llama: LlamaPeer) -> None:
    for peer in (kvdesk, llama):
        first = answer(peer, "cut", "Tell a long story of a whale.", 200, most_s=0.1)
        assert first.cut
        n_story = first.n_tokens
        second = answer(peer, "cut", "And then?", 4)
        assert second.text
        assert peer is llama or (second.n_read is not None and second.n_read < 20 < kvdesk.n_prompt - n_story)


def test_two_chats_at_once(kvdesk: Kvdesk) -> None:
    with Reading(kvdesk, "story", "Tell a long story of a whale.", 200) as story:
        story.wait_for(3)
        answer(kvdesk, "beside", "Name a bird.", 2)
        assert not story.over()
    assert story.over()
    assert story.answer.problem is None


def test_a_prompt_that_is_too_long_is_one_sentence(kvdesk: Kvdesk, llama: LlamaPeer) -> None:
    for peer in (kvdesk, llama):
        with pytest.raises(PeerFailed, match=r"\.$") as failed:
            answer(peer, "long", "word " * 600, 2)
        assert not failed.value.gone
        answer(peer, "after it", "Name a bird.", 2)


def test_a_chat_goes_on_after_a_restart(model_file: Path, tmp_path: Path) -> None:
    """In peers of their own: a restart makes new threads."""
    for make in (partial(Kvdesk, folder=tmp_path), LlamaPeer):
        with closing(make(model_file, SETTINGS)) as peer:
            answer(peer, "kept", "Name a tree. " * 10, 2)
            peer.restart()
            done = answer(peer, "kept", "And a leaf?", 2)
            assert done.text
            assert make is LlamaPeer or (done.n_read is not None and done.n_read < 20)


def test_a_file_that_is_no_model_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "none.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(PeerFailed, match=r"none\.gguf"):
        Kvdesk(file, SETTINGS, tmp_path)
