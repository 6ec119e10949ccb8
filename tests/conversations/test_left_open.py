"""What a text of Markdown leaves open is closed behind it, and nothing else is added."""

import random
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kvdesk.conversations.left_open import closed

OPEN = {
    "fence": ("Sure:\n```python\nprint(1)\n# cut off here", "\n```"),
    "long fence": ("`````md\n```\n", "\n`````"),
    "fence in a longer one": ("````md\n```py\nx\n```\nmore", "\n````"),
    "tildes": ("~~~~ sh\n```\n~~~\nls", "\n~~~~"),
    "fence alone": ("```", "\n```"),
    "indented fence": ("  ```\n  x", "\n  ```"),
    "second fence": ("```\na\n```\n\n```b\nc\n", "\n```"),
    "fence that others seem to close": ("```\n> ```\n    ```\n``` x", "\n```"),
    "fence in a list": ("1. Do\n   ```sh\n   ls", "\n   ```"),
    "fence with the mark of a list": ("- ```sh\n  ls", "\n  ```"),
    "fence in a quotation": ("> - ~~~\n>   ls", "\n>   ~~~"),
    "fence with strange ends of lines": ("a\u2028b\x0bc\r\n```\r\nx", "\n```"),
    "formula": ("So\n\n$$\nx^2 +", "\n$$"),
    "formula with empty lines": ("$$\na\n\nb\n\nc", "\n$$"),
    "formula behind its mark": ("So\n$$ x^2 +\ny", "\n$$"),
    "formula in a list": ("- So\n\n  $$\n  x", "\n  $$"),
    "second formula": ("$$a$$\n\n$$\nb\n$$ \n\n$$ c", "\n$$"),
    "LaTeX's mark": ("So\n\\[\nx \\\\ y", "\n\\]"),
    "fold": ("<details>\n<summary>More</summary>\n\nHidden", "\n\n</details>"),
    "title of a fold": ("<details open><summary>More", "\n\n</summary>\n\n</details>"),
    "folds": ("<details>\n\n<DETAILS class='>'>\n\n</details>\n\nx", "\n\n</details>"),
    "fence in a fold": ("<details>\n\n```html\n</details>", "\n```\n\n</details>"),
    "formula in a fold": ("<details>\n\n$$\nx", "\n$$\n\n</details>"),
    "reasoning": ("<think>\nhm\n\nso", "\n\n</think>"),
    "bold": ("Some <b>bold `</b>` text", "\n\n</b>"),
    "table": ("<table>\n<tr><td>x", "\n\n</table>"),
    "comment": ("<!-- unclosed\n\ncomment", "\n-->"),
    "comment in a program": ("<pre><!--\n\n<b>", "\n</pre>\n\n<!-- -->\n\n</pre>"),
    "comment in a block": ("<div><!-- a\n\nb --> </div>", "\n\n<!-- -->\n\n</div>"),
    "tag": ("<details\nopen", ">\n\n</details>"),
    "tag in an address": ("x\n\n<div class='a'><a href=\"https", '">\n\n</a>\n\n</div>'),
    "tag in a program": ("<pre><a", ">\n</pre>\n\n</a>"),
    "script": ("<script>\nif (a < b) '<div>'\n\n</div>", "\n</script>"),
    "program as HTML": ("<pre><code>\nx\n\ny", "\n</pre>\n\n</code>"),
    "instruction": ("<?php\n\necho", "\n?>"),
    "data": ("<![CDATA[\n\nx", "\n]]>"),
}
CLOSED = {
    "nothing": "",
    "prose": "One\n\n- two\n- **three",
    "fences": "```\na\n```\n\n~~~\n```\n~~~",
    "fence in a list that has ended": "- ```\n  x\n\nDone",
    "closed fence in a list": "- ```\n  x\n  ```",
    "fence in a sentence": "Write ``` before and\n``` behind` it",
    "indented code": "Text\n\n    ```\n    x",
    "quoted mark": "The mark `$$` and \\$$, and 5 $$ too",
    "formulas": "$$\na\n$$\n\n$$b$$ and\n\\[c\\]",
    "formula that has ended": "$$ a\n\nProse",
    "formula cut by a fence": "$$\n\n```\nx\n```\n\nProse",
    "marks in code": "```\n$$\n<details>\n```",
    "folds": "<details><summary>a</summary>\n\nb\n\n</details>",
    "types": "A `<details>` in vector<int> and List<String>, \\<b>, a < b > c, <https://example.org>, <br>, <p>",
    "comment": "<!-- <details> -->\n\n<!-- --> text <!-- <b> -->",
    "text in a comment's beginning": "5 <!-- 6",
    "script": "<script>'<div>'</script>\n\nA <style><b></style> b",
    "reasoning": "<think>\nhm\n</think>\n\nSo",
}


@pytest.mark.parametrize(("text", "end"), OPEN.values(), ids=OPEN)
def test_what_is_open_is_closed(text: str, end: str) -> None:
    assert closed(text) == text + end
    assert closed(text + end) == text + end


@pytest.mark.parametrize("text", CLOSED.values(), ids=CLOSED)
def test_what_is_closed_stays(text: str) -> None:
    assert closed(text) == text


class Elements(HTMLParser):
    """Those that are open at the end."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            self.open.remove(tag)


PIECES = st.sampled_from([
    *("\n", "\n\n", " ", "  ", "- ", "> ", "1. ", "a", "`", "``", "```", "````", "~~~", "~~~~", "$$", "\\", "\\[", "|"),
    *("<details>", "</details>", "<b>", "</b>", "<!--", "-->", "<pre>", "</pre>", "# ", "\t", "\r\n", "    "),
])  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join))
def test_a_heading_behind_any_text_is_one(text: str) -> None:
    text = text.strip()
    whole = closed(text)
    assert whole.startswith(text)
    assert closed(whole) == whole
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(f"{whole}\n\n# behind\n")
    assert [(token.type, token.level) for token in tokens[-3:]] == [
        ("heading_open", 0),
        ("inline", 1),
        ("heading_close", 0),
    ]
    assert not {"details", "b", "pre"} & {*Elements(parser.render(whole)).open}


@pytest.mark.parametrize(
    "piece", ["`", "` `` ", "<!--", "<b>", "</b>", "<b '", "$$\n", "\\[", "```\n~~~\n", "<title>", "<script", "- ```\n"]
)
def test_a_long_text_is_read_in_time(piece: str) -> None:
    before = time.process_time()
    closed(f"```\n```\n{piece * (40_000 // len(piece))}")
    assert time.process_time() - before < 2


def test_runs_of_backticks_of_every_length_are_read_in_time() -> None:
    runs = ["`" * n for n in range(1, 600)]
    random.Random(1).shuffle(runs)
    before = time.process_time()
    assert closed(" ".join(runs) + " <b>").endswith("</b>")
    assert time.process_time() - before < 10
