"""Why the first token came when it did: the sentence begins with the time and names only what was measured."""

from functools import partial

import pytest

from kvdesk.policies.first_token import Delay, first_token_reason

SLOW = partial(Delay, 8.49, 259, 30.4)


@pytest.mark.parametrize(
    ("delay", "sentence"),
    [
        (
            SLOW(usual_tok_s=150, others=1.72, n_processors=2),
            (
                "First token after 8.5 s: 259 tokens read at 30 tok/s, usually 150 on this computer: "
                "other programs used 1.7 of 2 processors."
            ),
        ),
        (
            SLOW(usual_tok_s=150, others=0.1, n_processors=2),
            "First token after 8.5 s: 259 tokens read at 30 tok/s, usually 150 on this computer.",
        ),
        (
            SLOW(usual_tok_s=31, others=1.72, n_processors=2),
            "First token after 8.5 s: 259 tokens read at 30 tok/s, as usual on this computer.",
        ),
        (
            SLOW(others=1.72, n_processors=2),
            "First token after 8.5 s: 259 tokens read at 30 tok/s; meanwhile other programs used 1.7 of 2 processors.",
        ),
        (SLOW(), "First token after 8.5 s: 259 tokens read at 30 tok/s."),
        (
            SLOW(usual_tok_s=150, beside=True, n_faults=12_000),
            (
                "First token after 8.5 s: 259 tokens read at 30 tok/s, usually 150 on this computer: "
                "other answers were computed at the same time and 12,000 pages of memory were read from the disk."
            ),
        ),
        (
            Delay(8.0, 300, 150, 150, queue_s=6.0),
            (
                "First token after 8.0 s: 6.0 s in the queue behind another answer, "
                "300 tokens read at 150 tok/s, as usual on this computer."
            ),
        ),
        (
            Delay(8.0, 3, 20, load_s=6.0, saved="disk", restore_s=1.25),
            (
                "First token after 8.0 s: 6.0 s while the model was loaded, "
                "1.2 s to read its saved state from the disk, 3 tokens read."
            ),
        ),
        (Delay(0.05, 1, 20, saved="memory", restore_s=0.04), "First token after 0.05 s: 1 token read."),
        (
            Delay(0.5, 1, 20, saved="memory", restore_s=0.4, wait_s=0.02),
            "First token after 0.50 s: 0.40 s to bring back its saved state, 1 token read.",
        ),
        (
            Delay(3.0, 9, 9.4, wait_s=1.0, prompt_s=1.0),
            (
                "First token after 3.0 s: 1.0 s until other work had ended, "
                "1.0 s for the chat template and the tokens, 9 tokens read at 9.4 tok/s."
            ),
        ),
        (Delay(0.0, 259, 30), ""),
    ],
)
def test_the_time_comes_first_then_what_took_it(delay: Delay, sentence: str) -> None:
    assert first_token_reason(delay) == sentence
