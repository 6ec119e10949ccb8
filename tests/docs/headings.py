"""The headings of a page in Markdown, with the anchors that GitHub gives them."""

import re


def anchor(heading: str) -> str:
    """That of a heading without its marks."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def sections(page: str) -> dict[str, str]:
    """The text below each heading, up to the next one, by anchor."""
    parts = re.split(r"(?m)^#+ (.+)\n?", re.sub(r"(?ms)^(`{3,}).*?^\1", "", page))[1:]
    return {anchor(heading): text for heading, text in zip(parts[::2], parts[1::2], strict=True)}
