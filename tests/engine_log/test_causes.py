"""Every cause of a miss, from the record of one request."""

from typing import Any

import pytest

from kvdesk.cache.reuse.prompt_change import Part, Prompt
from kvdesk.engine_log.causes import explain_request
from kvdesk.engine_log.cures import LOG_BODIES, LOG_TEXT
from kvdesk.engine_log.findings import HITS, Cause, Finding
from kvdesk.engine_log.record import Request, Server, complete

SYSTEM, ASKED, ANSWERED = Part("system", "You are a gardener."), Part("user", "Beans?"), Part("assistant", "In May.")
BEFORE = Prompt((SYSTEM, ASKED))
NEXT = Prompt((SYSTEM, ASKED, ANSWERED, Part("user", "Peas?")))


def explained(server: Server | None = None, **fields: Any) -> Finding:
    """Of a request for 1,000 tokens at a millisecond each, whose slot held 900."""
    known: dict[str, Any] = {
        "n_prompt": 1000,
        "held": 900,
        "same": 900,
        "reused": 900,
        "prompt_ms": 100.0,
        "levels": {4},
    }
    request = Request(0, 7, 1, **(known | fields))
    if request.read < 0 and request.reused >= 0:
        request.read = request.n_prompt - request.reused
        request.prompt_ms = float(request.read)
    return explain_request(request, server or Server(level=4))


def test_hits() -> None:
    assert explained().cause is Cause.CONTINUED
    assert explained(held=0, same=0, reused=0).cause is Cause.NEW
    assert explained(same=1000, held=1100, reused=999).cause is Cause.REGENERATED
    assert explained(same=-1, held=-1, loaded=0.8, reused=800).cause is Cause.LOADED
    assert explained(chunks=300, same=500, held=510, reused=800).cause is Cause.SHIFTED_CHUNKS
    assert all(finding.lost == 0 for finding in (explained(), explained(held=0, same=0, reused=0)))


@pytest.mark.parametrize(
    ("fields", "server", "cause", "lost", "cure"),
    [
        ({"forced": True, "reused": 0}, Server(memory="window"), Cause.WINDOW, 900, "--swa-full"),
        ({"forced": True, "reused": 0, "window": 512}, Server(), Cause.WINDOW, 900, "--swa-full"),
        ({"forced": True, "reused": 0}, Server(memory="recurrent"), Cause.RECURRENT, 900, "--ctx-checkpoints"),
        ({"forced": True, "reused": 0, "window": 0}, Server(), Cause.RECURRENT, 900, "--ctx-checkpoints"),
        ({"forced": True, "reused": 0}, Server(), Cause.FORCED, 900, "--ctx-checkpoints"),
        ({"forced": True, "reused": 0, "reuse_off": 256}, Server(), Cause.FORCED, 900, "no --cache-reuse"),
        ({"forced": True, "reused": 0, "prepared": "restored"}, Server(), Cause.NO_CHECKPOINT_IN_FILE, 900, "restore"),
        ({"forced": True, "reused": 0, "is_first": True}, Server(slots=1), Cause.NO_CHECKPOINT_IN_FILE, 900, "restore"),
        ({"forced": True, "reused": 0, "same": -1, "how": "age"}, Server(memory="window", n_dropped=1), Cause.WINDOW, 0,
         "--swa-full"),
        ({"restored": 300, "reused": 300}, Server(), Cause.CHECKPOINT, 600, "--checkpoint-min-step"),
        ({"forced": True, "reused": 0, "same": 100, "window": 0}, Server(), Cause.DIVERGED, 900, "stable"),
        ({"restored": 90, "reused": 90, "same": 100}, Server(), Cause.DIVERGED, 810, "stable"),
        ({"forced": True, "reused": 0, "same": 300, "window": 0}, Server(), Cause.RECURRENT, 300, "--ctx-checkpoints"),
        ({"reused": 0, "how": "similarity"}, Server(), Cause.NOT_CACHED, 900, '"cache_prompt"'),
        ({"reused": 0, "cache_prompt": False, "levels": {3}}, Server(), Cause.NOT_CACHED, 900, '"cache_prompt"'),
        ({"reused": 0, "levels": {3}}, Server(), Cause.FORCED, 900, "--swa-full"),
        ({"reused": 0, "prepared": "adapters"}, Server(), Cause.ADAPTERS, 900, ""),
        ({"same": 400, "reused": 400, "prepared": "shifted"}, Server(), Cause.AFTER_SHIFT, 500, "no --context-shift"),
        ({"same": 0, "held": 0, "reused": 0, "prepared": "purged"}, Server(), Cause.EVICTED, 0, "--cache-ram"),
        ({"same": 0, "held": 0, "reused": 0, "load_failed": True}, Server(), Cause.EVICTED, 0, "-c N"),
        (
            {"same": 0, "held": 0, "reused": 0, "how": "age", "elsewhere": (2, 80, False), "threshold": 0.1},
            Server(), Cause.LOW_SIMILARITY, 80, "--slot-prompt-similarity",
        ),
        (
            {"same": 100, "held": 100, "reused": 100, "how": "id", "elsewhere": (2, 800, False)},
            Server(), Cause.OTHER_SLOT, 700, '"id_slot"',
        ),
        (
            {"same": 0, "held": 0, "reused": 0, "how": "age", "elsewhere": (2, -1, True)},
            Server(), Cause.BUSY, 0, "-np",
        ),
        (
            {"same": -1, "held": 0, "reused": 0, "how": "id", "prepared": "cleared"},
            Server(), Cause.IDLE, 0, "--no-cache-idle-slots",
        ),
        ({"same": -1, "held": -1, "reused": 0, "how": "age"}, Server(n_dropped=3), Cause.EVICTED, 0, "--cache-ram"),
        ({"error": "request (9 tokens) exceeds the available context size"}, Server(), Cause.TOO_LONG, 0, "-c N"),
        ({"cut_from": 9000}, Server(program="Ollama"), Cause.TRUNCATED, 0, "OLLAMA_CONTEXT_LENGTH"),
        ({"same": 200, "reused": 200}, Server(), Cause.DIVERGED, 700, "stable"),
        ({"same": 700, "reused": 700, "prompt_before": 710}, Server(), Cause.ANSWER, 200, "preserve_thinking"),
        ({"same": 700, "reused": 700, "prompt_before": 690, "thought": True}, Server(), Cause.THINKING, 200, ""),
        ({"same": 700, "reused": 700}, Server(can_preserve=True), Cause.DIVERGED, 200, "preserve_thinking"),
    ],
)  # fmt: skip
def test_misses(fields: dict[str, Any], server: Server, cause: Cause, lost: int, cure: str) -> None:
    finding = explained(server, **fields)
    assert (finding.cause, finding.lost) == (cause, lost)
    assert finding.lost_s == pytest.approx(lost / 1000)
    assert cure in " ".join(cure.name for cure in finding.cures)
    assert finding.sentence
    assert cause not in HITS


@pytest.mark.parametrize(
    ("after", "cause", "cure"),
    [
        (Prompt((Part("developer", SYSTEM.text), *NEXT.parts[1:])), Cause.ROLE, "append only"),
        (Prompt(NEXT.parts, (("read", "{}"),)), Cause.TOOLS, "stable tools"),
        (Prompt((Part("system", "x-anthropic-billing-header: cch=1;"), ASKED)), Cause.ATTRIBUTION, "CLAUDE_CODE"),
        (Prompt((Part("system", "You are a gardener of 2026-11-26."), ASKED)), Cause.EDITED, ""),
        (NEXT, Cause.TEMPLATE, "preserve_thinking"),
    ],
)
def test_texts_name_what_the_client_changed(after: Prompt, cause: Cause, cure: str) -> None:
    finding = explained(same=200, reused=200, before=BEFORE, prompt=after)
    assert finding.cause is cause
    assert cure in " ".join(cure.name for cure in finding.cures)
    assert finding.lost == 700


def test_what_the_engine_lost_besides_a_change_is_a_note() -> None:
    assert any(note.endswith("cut back: 100.") for note in explained(forced=True, reused=0, same=100).notes)


def test_drafts_that_were_seldom_right_are_a_note() -> None:
    assert any("Only 14 % of the drafted tokens" in note for note in explained(accepted=0.14479).notes)
    assert explained(accepted=0.64).notes == explained().notes == ()


def test_text_around_the_difference_names_it_too() -> None:
    def cause(old: str, new: str) -> tuple[Cause, str]:
        finding = explained(same=200, reused=200, old=old, new=new)
        return finding.cause, finding.sentence

    assert cause("on | <think> So", "on | In May.")[0] is Cause.THINKING
    assert cause("billing-header: cch= | 12", "billing-header: cch= | 34")[0] is Cause.ATTRIBUTION
    edited, sentence = cause(
        "<|im_start|>system\nI think it is 14:0 | 3. Go.", "<|im_start|>system\nI think it is 14:0 | 5. Go."
    )
    assert edited is Cause.EDITED
    begin = "The slot has “I think it is 14:03. Go.”, the prompt has “I think it is 14:05. Go.” (token 200). "
    assert sentence == begin + "Usual cause: the system prompt contains the date or the time."
    assert cause("The end of it | .", "The end of it |  all.")[1].startswith("The slot has “The end of it.”")


def test_how_to_log_more() -> None:
    assert explained(same=200, reused=200, levels={3}).more == LOG_TEXT
    assert explained(same=200, reused=200).more == LOG_BODIES
    assert explained(Server(program="Ollama"), same=200, reused=200).more == ""
    assert explained().more == ""
    assert "one more request" in explained(Server(level=5), same=200, reused=200).more


def test_a_refused_request_read_nothing_and_its_client_did_not_go() -> None:
    found = explained(error="request (900 tokens) exceeds the available context size", cancelled=True, reused=-1)
    assert (found.cause, found.lost, found.notes) == (Cause.TOO_LONG, 0, ())


def test_a_busy_slot_may_have_had_what_a_new_one_has_not() -> None:
    new: dict[str, Any] = {
        "how": "age",
        "is_first": True,
        "has_earlier": True,
        "same": -1,
        "held": -1,
        "reused": 0,
        "read": 400,
    }
    found = explained(elsewhere=(1, -1, True), **new)
    assert found.cause is Cause.NEW
    assert found.notes[0].startswith("Slot 1 was busy and may have had its beginning")
    assert explained(**new).notes[0].startswith("No slot begins like it")
    assert explained(**{**new, "has_earlier": False}).notes == ()


def test_notes_say_what_else_happened() -> None:
    finding = explained(shifted=40, created=2, created_mib=10.0, invalidated=1, erased=3, dropped=1, no_room=True)
    text = " ".join(finding.notes)
    for part in (
        "40 tokens",
        "Checkpoints made: 2 (10 MiB)",
        "erased after the difference: 1.",
        "was reached: 3.",
        "for this one: 1.",
        "smaller",
    ):
        assert part in text
    assert explained(truncated=True, cancelled=True).notes == (
        "The context was full: the answer was cut off.",
        "The client disconnected.",
    )


def test_numbers_of_the_default_log_follow_from_one_another() -> None:
    """1,040 tokens in the slot with 41 generated are a prompt of 1,000."""
    request = Request(0, 1, 1, read=400, generated=41, sim=0.7, keep=0.5)
    complete(request, 1040)
    assert (request.n_prompt, request.reused, request.same, request.held) == (1000, 600, 700, 1400)
    assert request.is_rounded
    drafted = Request(0, 1, 1, read=400, generated=41, has_drafts=True)
    complete(drafted, 1040)
    assert (drafted.n_prompt, drafted.is_rounded) == (1000, True)
    shifted = Request(0, 1, 1, read=400, generated=41, shifted=100)
    complete(shifted, 1040)
    assert shifted.n_prompt == -1


@pytest.mark.parametrize(
    ("error", "begin", "cures"),
    [
        ("request (900 tokens) exceeds the available context size (512 tokens)", "The prompt did not fit", ["-c N"]),
        ("input (900 tokens) is larger than the max context size (512 tokens). skipping", "The prompt did", ["-c N"]),
        ("Context size has been exceeded.", "There were no free cells left", ["-c N"]),
        ("input (900 tokens) is too large to process. increase the physical batch size", "Embeddings", ["-ub N, -b N"]),
    ],
)
def test_what_did_not_fit_has_the_cure_that_helps(error: str, begin: str, cures: list[str]) -> None:
    found = explained(Server(slots=4, is_unified=True, level=4), error=error, reused=-1)
    assert found.cause is Cause.TOO_LONG
    assert found.sentence.startswith(begin)
    assert [cure.name for cure in found.cures] == cures
    apart = explained(Server(slots=4, level=4), error=error, reused=-1)
    assert ("--kv-unified" in [cure.name for cure in apart.cures]) == ("-c N" in cures)


def test_embeddings_are_no_misses() -> None:
    for path in ("/v1/embeddings", "/embedding", "/rerank", "/v1/reranking", "/api/embed"):
        found = explained(path=path, reused=0, how="similarity")
        assert (found.cause, found.lost, found.cures) == (Cause.STATELESS, 0, ())
    assert explained(path="/v1/embeddings").cause is Cause.CONTINUED  # an older version compared them


def test_a_slot_that_was_emptied_for_others_may_get_a_saved_prompt() -> None:
    emptied: dict[str, Any] = {"prepared": "purged", "held": -1, "same": -1}
    assert explained(loaded=0.9, reused=900, **emptied).cause is Cause.LOADED
    assert explained(reused=0, **emptied).cause is Cause.EVICTED
