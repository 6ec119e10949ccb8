"""The documents that exist in Chinese too: what the Chinese one lacks of the English one.

Compares structure only: headings, commands, pictures, rows of tables. Must never know: what a sentence means.
"""

from __future__ import annotations

import re

from setup import ROOT

_PAGES = (
    *("install", "first-ten-minutes", "reading-the-map", "user-guide", "troubleshooting", "faq", "kv-cache"),
    *("tools", "serving", "agents", "connecting", "exports", "keyboard", "commands", "settings-reference"),
    *("debug-another-cache", "watch", "doctor", "proxy", "slot-files", "verify-engine", "testing-agents"),
    *("attention", "release-0.2.0"),
)
PAIRS = {
    "README.md": "docs/zh/README.md",
    "docs/README.md": "docs/zh/start.md",
    **{f"docs/{name}.md": f"docs/zh/{name}.md" for name in _PAGES},
    **{
        f"docs/{folder}/{page.name}": f"docs/zh/{folder}/{page.name}"
        for folder in ("guide", "questions")
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    },
}
"""Each English document, and its Chinese one."""


def behind() -> list[str]:
    """A sentence for each difference of a Chinese document from its English one."""
    return [
        f"{chinese} is behind {english}: {difference}"
        for english, chinese in PAIRS.items()
        for difference in (
            differences(_text(english), _text(chinese)) if (ROOT / chinese).exists() else ["it does not exist"]
        )
    ]


def differences(english: str, chinese: str) -> list[str]:
    """What is not the same in both texts."""
    found = []
    if _levels(english) != _levels(chinese):
        found.append(f"its {len(_levels(chinese))} headings are not the {len(_levels(english))} of the English")
    found += [f"it lacks `{line}`" for line in sorted(_commands(english) - _commands(chinese))]
    found += [f"it still has `{line}`" for line in sorted(_commands(chinese) - _commands(english))]
    if _pictures(english) != _pictures(chinese):
        found.append(f"its pictures are {_pictures(chinese)}, not {_pictures(english)}")
    if _rows(english) != _rows(chinese):
        found.append(f"its tables have {_rows(chinese)} rows, not {_rows(english)}")
    return found


def code(text: str) -> list[str]:
    """Everything set as code: spans, and the lines of blocks without their comments."""
    blocks = re.findall(r"(?ms)^```\w*\n(.*?)^```", text)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return lines + re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```", "", text))


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _levels(text: str) -> list[int]:
    """Of its headings, in their order."""
    without_code = re.sub(r"(?ms)^(`{3,4})\w*\n.*?^\1", "", text)
    return [len(marks) for marks in re.findall(r"(?m)^(#+) ", without_code)]


def _commands(text: str) -> set[str]:
    return {line for line in code(text) if re.match(r"(kvdesk|make|sudo|sh|py) ", line)}


def _pictures(text: str) -> list[str]:
    return re.findall(r"images/(?:zh-)?([\w-]+)\.(?:png|webp)", text)


def _rows(text: str) -> int:
    return len(re.findall(r"(?m)^\|", text))
