"""Texts of what can be downloaded and of what is on its way."""

from __future__ import annotations

import pytest

from kvdesk.library.download_queue import Download, State
from kvdesk.library.hub import RemoteFile, RemoteModel, Repo
from kvdesk.viewmodel.downloads import cells_of, offers_of, progress_text, repo_remark
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
