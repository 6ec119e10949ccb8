"""Texts of what can be downloaded and of what is on its way."""

import pytest

from kvdesk.library.download_queue import Download, State
from kvdesk.library.hub import RemoteFile, RemoteModel, Repo
from kvdesk.library.recommended import recommended
from kvdesk.viewmodel.downloads import (
    best_offer,
    cells_of,
    offer_facts,
    offers_of,
    progress_text,
    recommended_offers,
    repo_remark,
)
from kvdesk.viewmodel.models import Machine


def offer(size: int, n_files: int = 1):  # type: ignore[no-untyped-def]
    files = tuple(RemoteFile(f"m-Q4_K_M-0000{n}-of-00002.gguf", size // n_files, "") for n in range(1, n_files + 1))
    return offers_of((RemoteModel("a/b", "main", files),))[0]


@pytest.mark.parametrize(
    ("size", "fits", "speed"), [(10**9, "yes", "≈ 20 tok/s"), (8 * 10**9, "no", "≈ 2.5 tok/s")], ids=["small", "large"]
)
def test_an_offer_says_whether_it_fits_and_how_fast_it_should_be(size: int, fits: str, speed: str) -> None:
    cells = [
        cell.text for cell in cells_of(offer(size), Machine(20e9, measured=True, available=8 * 10**9, layer_s=0.0))
    ]
    assert cells[1] == "Q4_K_M"
    assert cells[3:5] == [fits, speed]


def test_before_the_machine_is_measured_nothing_is_claimed() -> None:
    assert [cell.text for cell in cells_of(offer(10**9, 2), None)][2:] == ["1.00 GB", "–", "–", "2 files"]


@pytest.mark.parametrize(
    ("download", "text"),
    [
        (Download("k", "t", State.RUNNING, 10**8, 5 * 10**8, 2e7), "100 MB of 500 MB · 20.0 MB/s · 20 s left"),
        (Download("k", "t", State.RUNNING, 0, 10**10, 2e6), "0 MB of 10.00 GB · 2.0 MB/s · 83 min left"),
        (Download("k", "t", State.PAUSED, 10**8, 5 * 10**8), "paused · 100 MB of 500 MB"),
        (Download("k", "t", State.WAITING, 0, 5 * 10**8), "waiting · 0 MB of 500 MB"),
        (Download("k", "t", State.DONE, 5 * 10**8, 5 * 10**8), "downloaded · 500 MB"),
        (Download("k", "t", State.FAILED, 1, 5 * 10**8, remark="The disk is full."), "The disk is full."),
    ],
)
def test_progress(download: Download, text: str) -> None:
    assert progress_text(download) == text


def test_a_repository_that_wants_terms_accepted_says_so() -> None:
    assert repo_remark(Repo("a/b", 1200, "gemma", gated=True)).endswith("terms to accept, token needed")
    assert repo_remark(Repo("a/b", 1200, "", gated=False)) == "1,200 downloads a month"


@pytest.mark.parametrize(
    ("gb_s", "free_gb", "chinese", "name"),
    [
        (20.0, 8.0, False, "Llama-3.2-3B-Instruct-Q4_K_M"),
        (20.0, 1.5, False, "gemma-3-1b-it-Q4_K_M"),
        (20.0, 1.5, True, "Qwen3-0.6B-Q8_0"),
        (100.0, 16.0, False, "Qwen3-8B-Q4_K_M"),
        (100.0, 4.0, False, "Qwen3-4B-Q4_K_M"),
        (2.0, 8.0, False, "smollm2-360m-instruct-q8_0"),
        (2.0, 8.0, True, "Qwen3-0.6B-Q8_0"),
        (20.0, 0.4, False, None),
    ],
)
def test_the_largest_that_fits_and_is_fast_enough_is_offered(
    gb_s: float, free_gb: float, chinese: bool, name: str | None
) -> None:
    machine = Machine(gb_s * 1e9, measured=True, available=int(free_gb * 1e9))
    offers = recommended_offers(recommended())
    found = best_offer(offers, machine, chinese=chinese)
    assert (found.title if found else None) == name
    if found is not None and gb_s > 2:
        assert found.tok_s(machine) >= 8


def test_an_offer_says_size_licence_and_speed() -> None:
    machine = Machine(20e9, measured=True, available=8 * 10**9)
    offer = best_offer(recommended_offers(recommended()), machine)
    assert offer is not None
    assert offer_facts(offer, machine) == "2.02 GB  ·  llama3.2  ·  ≈ 9.6 tok/s expected here"
