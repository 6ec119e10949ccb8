"""An attachment in a few words, and a shorter one in its place. Without Qt."""

from collections.abc import Sequence
from functools import lru_cache

from kvdesk.message import Attachment, attachment_as_read
from kvdesk.quantities import seconds_text, tokens_text
from kvdesk.translation import tr
from kvdesk.values import replace


def attachment_facts(attachment: Attachment, n_tokens: int = 0, seconds: float | None = None) -> str:
    """Its size, tokens and seconds to read them, as far as they are known (0, None: not), and how it was read."""
    n_bytes = _size(attachment.text)
    facts = [f"{n_bytes:,} B" if n_bytes < 1000 else f"{n_bytes / 1e3:,.{n_bytes < 10_000:d}f} kB"]
    if n_tokens:
        facts.append(tokens_text(n_tokens))
    if seconds is not None:
        facts.append(seconds_text(seconds))
    if attachment.note:
        facts.append(attachment.note)
    return "  ·  ".join(facts)


@lru_cache(maxsize=8)  # asked for at every key while one types
def _size(text: str) -> int:
    """Bytes as UTF-8."""
    return len(text.encode("utf-8", "replace"))


def shortened(attachments: Sequence[Attachment], n_characters: int) -> tuple[Attachment, ...]:
    """The attachments, of which that many characters as the model reads them are kept: the last ones give way first."""
    kept: list[Attachment] = []
    for attachment in attachments:
        whole = attachment_as_read(attachment)
        if len(whole) <= n_characters:
            kept.append(attachment)
            n_characters -= len(whole)
            continue
        name = tr("{name}, first part").format(name=attachment.name)
        before = attachment_as_read(replace(attachment, name=name, text=""))
        text = attachment.text[: max(0, n_characters - len(before))].rstrip()
        if text:
            kept.append(replace(attachment, name=name, text=text, n_tokens=0))
        n_characters = 0
    return tuple(kept)
