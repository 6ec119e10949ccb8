"""An OpenAI-compatible server as a peer: what it streams is read, and whatever is wrong with it is one sentence."""

from collections.abc import Iterator

import pytest

from tests.backends.openai.scripted_server import ScriptedServer
from tests.benchmarks.peers.peer import PeerFailed, Reading, answer
from tests.benchmarks.peers.rows import ROWS, Texts
from tests.benchmarks.peers.server import ServerPeer
from tests.benchmarks.peers.server_app import running
from tests.places import free_port


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with running() as server:
        yield server


@pytest.fixture(scope="module")
def url(server: ScriptedServer) -> str:
    return server.url


@pytest.fixture
def peer(url: str) -> Iterator[ServerPeer]:
    made = ServerPeer(url, silent_s=0.3)
    made.check()
    yield made
    made.close()


def test_an_answer_is_read_with_its_numbers(peer: ServerPeer, server: ScriptedServer) -> None:
    done = answer(peer, "a", "Hello", 8)
    assert done.text == "The lamp burns."
    assert (len(done.times), done.n_tokens, done.n_read) == (4, 5, 5)
    assert 0 < done.first_s < 5
    assert server.asked[-1]["temperature"] == 0
    assert server.asked[-1]["model"] == "tiny"


def test_a_chat_is_sent_whole_and_forgotten(peer: ServerPeer, server: ScriptedServer) -> None:
    answer(peer, "b", "First", 8)
    answer(peer, "b", "Second", 8)
    assert [m["content"] for m in server.asked[-1]["messages"]] == ["First", "The lamp burns.", "Second"]
    peer.forget("b")
    answer(peer, "b", "Third", 8)
    assert [m["content"] for m in server.asked[-1]["messages"]] == ["Third"]


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_the_address_may_be_given_with_or_without_its_version(url: str, ending: str) -> None:
    assert ServerPeer(url + ending).url == f"{url}/v1"


@pytest.mark.parametrize(
    ("said", "sentence", "gone"),
    [
        ("too long", "answers with error 400: the request exceeds the context.", False),
        ("crash", "answers with an error: out of memory.", False),
        ("garbage", "sent what is no JSON.", False),
        ("no stream", "does not stream its answers.", True),
        ("silent", "said nothing for 0.3 s.", True),
    ],
)
def test_what_goes_wrong_is_one_sentence(peer: ServerPeer, said: str, sentence: str, gone: bool) -> None:
    with pytest.raises(PeerFailed) as failed:
        answer(peer, said, said, 8)
    assert str(failed.value).endswith(sentence)
    assert failed.value.gone is gone


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/nothing", "There is no OpenAI-compatible server at {url}/nothing/v1 (error 404)."),
        ("/text", "{url}/text/v1/models answers otherwise than an OpenAI-compatible server."),
        ("/locked", "{url}/locked/v1 wants a key, and none is sent."),
    ],
)
def test_a_wrong_address_is_one_sentence(url: str, path: str, sentence: str) -> None:
    wrong = ServerPeer(url + path)
    with pytest.raises(PeerFailed) as failed:
        wrong.check()
    assert str(failed.value) == sentence.format(url=url)
    wrong.close()


def test_a_dead_server_is_one_sentence() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    dead = ServerPeer(url)
    with pytest.raises(PeerFailed, match=f"Nothing answers at {url}/v1") as failed:
        dead.check()
    assert failed.value.gone
    dead.close()


@pytest.mark.parametrize("text", ["localhost:8080", "ftp://here", "http://", ""])
def test_what_is_no_address_is_one_sentence(text: str) -> None:
    with pytest.raises(PeerFailed, match="is no address of a server"):
        ServerPeer(text)


def test_of_several_models_one_must_be_named() -> None:
    with running("one", "two") as server:
        url = server.url
        undecided, wrong, right = ServerPeer(url), ServerPeer(url, "three"), ServerPeer(url, "two")
        with pytest.raises(PeerFailed, match=r"has 2 models \(one, two\): name one with --served-model"):
            undecided.check()
        with pytest.raises(PeerFailed, match="has no model three; it has one, two"):
            wrong.check()
        right.check()
        assert right.about == f"two at {url}/v1"
        for peer in (undecided, wrong, right):
            peer.close()


def test_an_answer_that_is_not_wanted_any_more_is_stopped(peer: ServerPeer) -> None:
    with Reading(peer, "c", "endless", 2000) as story:
        story.wait_for(3)
        assert not story.over()
        n = len(story.answer.times)
    assert 3 <= n <= len(story.answer.times) < 2000
    assert story.over()


def test_what_came_of_an_answer_that_was_cut_off_belongs_to_the_chat(peer: ServerPeer, server: ScriptedServer) -> None:
    done = answer(peer, "cut", "endless", 2000, most_s=0.05)
    assert done.cut
    answer(peer, "cut", "Next", 8)
    assert [m["content"] for m in server.asked[-1]["messages"]] == ["endless", done.text, "Next"]


def test_what_fails_in_a_thread_is_raised_by_who_waits(peer: ServerPeer) -> None:
    with Reading(peer, "d", "crash", 8) as story, pytest.raises(PeerFailed, match="out of memory"):
        story.wait_for(1)


def test_a_server_by_its_address_is_not_restarted(peer: ServerPeer) -> None:
    (row,) = [row for row in ROWS if row.id == "restart"]
    with pytest.raises(PeerFailed, match="A server that was given by its address cannot be restarted from here"):
        row.measure(peer, Texts(20.0, 1))
