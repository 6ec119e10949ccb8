"""The terminal: what is typed, with history and several lines, and what is written."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from prompt_toolkit import PromptSession, print_formatted_text
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth, Output, create_output

from kvdesk.printable import PICTURES
from kvdesk.protocol.chat import TurnEnded
from kvdesk.terminal.cell_blocks import Fragments
from kvdesk.terminal.dialogue import Dialogue, cost_line
from kvdesk.terminal.wrapping import Wrapping

_DIM: Final = "fg:ansibrightblack"
_PROMPT: Final = "› "
_IN_ASCII: Final = {
    "›": ">",
    "·": "-",
    "…": "...",
    "–": "-",
    "−": "-",
    "≥": ">=",
    "“": '"',
    "”": '"',
    "’": "'",
    "█": "#",
}
"""What kvdesk itself writes and a code page may lack."""
_BLOCKS: Final = "█▀▄"


class Screen:
    """Owns the terminal. `keys` and `output`: others than the terminal's own, for tests.

    names  completed by Tab
    """

    def __init__(self, names: Sequence[str] = (), keys: Input | None = None, output: Output | None = None) -> None:
        self._output = output or create_output()
        self._history = InMemoryHistory()
        self._status: Callable[[], str] = str
        self._session: PromptSession[str] = PromptSession(
            history=self._history,
            multiline=True,
            key_bindings=_bindings(),
            completer=WordCompleter(list(names), sentence=True),
            complete_while_typing=False,
            prompt_continuation="  ",
            bottom_toolbar=lambda: self._fitting(self._status()),
            input=keys,
            output=self._output,
        )
        self._wrapping = Wrapping()

    @property
    def draws_blocks(self) -> bool:
        """Whether it has colours, and blocks that are one column wide: code pages of more bytes draw them in two."""
        if self._depth is ColorDepth.DEPTH_1_BIT:
            return False
        encoding = self._output.encoding()
        return self._has(_BLOCKS) and ("utf" in encoding.lower() or len(_BLOCKS.encode(encoding)) == len(_BLOCKS))

    def show_below(self, status: Callable[[], str]) -> None:
        """One line below what is typed, from now on."""
        self._status = status

    def remember(self, text: str) -> None:
        """The arrow keys bring it back."""
        self._history.append_string(text)

    def ask(self, text: str = "") -> str:
        """What a user types; it begins with `text`. Raises EOFError (Ctrl+D), KeyboardInterrupt (Ctrl+C)."""
        return self._session.prompt(self._fitting(_PROMPT), default=text)

    def write(self, text: str) -> None:
        """A piece of an answer."""
        self._output.write(self._wrapping.feed(self._fitting(text.translate(PICTURES)), self.columns))
        self._output.flush()

    def say(self, text: str, style: str = "") -> None:
        """Lines of kvdesk's own, below what is written already."""
        whole = Wrapping()
        shown = whole.feed(self._fitting(text.translate(PICTURES)), self.columns)
        self.say_fragments([(style, shown + whole.end(self.columns))])

    def say_fragments(self, line: Fragments) -> None:
        """One line in styles, below what is written already. It is not wrapped."""
        self._output.write(self._wrapping.end(self.columns))
        if self._wrapping.column:
            self.write("\n")
        shown = FormattedText([(style, self._fitting(text)) for style, text in line])
        print_formatted_text(shown, output=self._output, color_depth=self._depth)

    def _fitting(self, text: str) -> str:
        """With other characters for those that the terminal's code page lacks."""
        return text if self._has(text) else "".join(c if self._has(c) else _IN_ASCII.get(c, "?") for c in text)

    def _has(self, text: str) -> bool:
        try:
            text.encode(self._output.encoding())
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    @property
    def _depth(self) -> ColorDepth:
        """Of colours. prompt_toolkit does not read COLORTERM, by which terminals report 24 bits."""
        depth = self._output.get_default_color_depth()
        is_chosen = ColorDepth.from_env() is not None
        has_more = os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit")
        return ColorDepth.DEPTH_24_BIT if has_more and not is_chosen and depth is ColorDepth.DEPTH_8_BIT else depth

    @property
    def columns(self) -> int:
        """Of the terminal, now."""
        return self._output.get_size().columns

    def answering(self, dialogue: Dialogue, ask: Callable[[], TurnEnded]) -> TurnEnded:
        """Wait for an answer, which Ctrl+C stops; then show what it cost. Raises UserError."""
        with dialogue.stopped_by_interrupt():
            ended = ask()
        self.say(cost_line(ended), _DIM)
        self.say("")
        return ended

    @contextmanager
    def not_echoed(self) -> Iterator[None]:
        """Keys that are typed meanwhile appear when the next message is typed, not inside an answer."""
        if sys.platform == "win32":  # its console shows keys only while a program reads them
            yield
            return
        import termios

        try:
            keys = self._session.input.fileno()
            before = termios.tcgetattr(keys)
        except (NotImplementedError, OSError, termios.error):  # no terminal
            yield
            return
        quiet = [*before]
        quiet[3] &= ~termios.ECHO
        termios.tcsetattr(keys, termios.TCSADRAIN, quiet)
        try:
            yield
        finally:
            termios.tcsetattr(keys, termios.TCSADRAIN, before)


def _bindings() -> KeyBindings:
    """Enter sends; Alt+Enter, and Enter behind a backslash, begin a new line."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\":
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
