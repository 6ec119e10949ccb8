"""What the site of the documents has from outside docs: the changelog, how to contribute, icon, fonts and style.

Links of pages lead to files of the checkout, so that a forge shows them as they are. In the site a link to a page leads
there; one to any other file outside docs becomes its text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FONTS = ("Inter-Regular", "Inter-SemiBold", "JetBrainsMono-Regular")
ADDED = {
    "CHANGELOG.md": ROOT / "CHANGELOG.md",
    "CONTRIBUTING.md": ROOT / "CONTRIBUTING.md",
    "kvdesk.svg": ROOT / "resources/kvdesk.svg",
    "site.css": HERE / "site.css",
    **{f"fonts/{font}.ttf": ROOT / f"resources/fonts/{font}.ttf" for font in FONTS},
}
CHINESE = "zh/"
_WIDE = r"[\u2e80-\u9fff\u3000-\u303f\uff00-\uffef“”…]"
BROKEN = re.compile(rf"(?ms)(^ *```.*?^ *```)|(?<={_WIDE})\n *(?={_WIDE})")
"""A line that ends within a Chinese sentence, where a browser would show a blank; or a block of code, which stays."""
LINK = re.compile(r"(?<!!)\[([^]]*)\]\(([^):#]+)((?:#[^)]*)?)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, source in ADDED.items():
        files.append(File.generated(config, name, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_others: object) -> str:
    """Links as the site has them."""
    source = page.file.src_uri
    folder = "docs/" + posixpath.dirname(source) if source not in ADDED else ""

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found.groups()
        path = posixpath.normpath(posixpath.join(folder, target)).removeprefix("docs/")
        if files.get_file_from_path(path) is None:
            return text
        return f"[{text}]({posixpath.relpath(path, posixpath.dirname(source) or '.')}{anchor})"

    return LINK.sub(link, BROKEN.sub(r"\1", markdown) if source.startswith(CHINESE) else markdown)


def on_post_page(output: str, page: Page, **_others: object) -> str:
    """The language of a page, for fonts and screen readers."""
    language = "zh-CN" if page.file.src_uri.startswith(CHINESE) else "en"
    return output.replace('<html lang="en"', f'<html lang="{language}"', 1)
