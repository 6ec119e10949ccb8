"""A chat as it is typed in a terminal, with the real engine: tiny model, keys from a pipe, output as plain text."""

import io
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.plain_text import PlainTextOutput
from prompt_toolkit.output.vt100 import Vt100_Output

from kvdesk.errors import UserError
from kvdesk.headless import running
from kvdesk.host.host import Host
from kvdesk.settings import ContextSettings, Sampling, Settings
from kvdesk.terminal import cell_blocks, slash_commands
from kvdesk.terminal.dialogue import Dialogue
from kvdesk.terminal.loop import converse
from kvdesk.terminal.screen import Screen
from tests.backends.local.talking import write_talking

SETTINGS = Settings().model_copy(update={"sampling": Sampling(temperature=0.0, max_tokens=6)})
CTRL_D = "\x04"
THINKING = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
)


@pytest.fixture(scope="module")
def host(talking_file: Path) -> Iterator[Host]:
    with running(talking_file, ContextSettings(n_ctx=512)) as host:
        yield host


@pytest.fixture
def begin(host: Host) -> Iterator[Callable[..., Dialogue]]:
    made: list[Dialogue] = []

    def make(on_text: Callable[[str], None] = lambda _text: None, settings: Settings = SETTINGS) -> Dialogue:
        made.append(Dialogue(host, settings, on_text))
        return made[-1]

    yield make
    for dialogue in made:
        dialogue.close()
        dialogue.service.delete(dialogue.chat)


def typed(dialogue_of: Callable[..., Dialogue], keys: str) -> tuple[Dialogue, str]:
    """The dialogue, and what the terminal showed, after these keys."""
    shown = io.StringIO()
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        screen = Screen(keys=pipe, output=PlainTextOutput(shown))
        dialogue = dialogue_of(screen.write)
        converse(dialogue, screen)
    return dialogue, shown.getvalue()


def test_the_second_turn_reuses_the_first(begin: Callable[..., Dialogue]) -> None:
    dialogue = begin()
    dialogue.ask("Tell me about the sea.")
    ended = dialogue.ask("And the sky?")
    assert ended.stats.reused_tokens > ended.stats.prefilled_tokens
    assert [message.role for message in dialogue.messages] == ["user", "assistant"] * 2


def test_an_edit_is_a_branch_beside_the_question(begin: Callable[..., Dialogue]) -> None:
    dialogue = begin()
    dialogue.ask("Tell me about the sea.")
    dialogue.edit("Tell me about the sky.")
    dialogue.ask_again()
    all_of_it = dialogue.service.all_messages(dialogue.chat) or ()
    assert [message.text for message in all_of_it if message.role == "user"] == [
        "Tell me about the sea.",
        "Tell me about the sky.",
    ]
    assert len(all_of_it) == 5
    assert len(dialogue.messages) == 2


@pytest.mark.parametrize("encoding", ["utf-8", "cp437", "cp850", "cp1252", "cp932", "cp936", "ascii"])
def test_a_chat_in_each_code_page(begin: Callable[..., Dialogue], encoding: str) -> None:
    out = io.BytesIO()
    stream = io.TextIOWrapper(out, encoding, newline="")
    output = Vt100_Output(stream, lambda: Size(40, 100), default_color_depth=ColorDepth.DEPTH_24_BIT)
    with create_pipe_input() as pipe:
        pipe.send_text(f"Grüße an “你好” 😀.\r/map\r/why\r/help\r/nothing\r{CTRL_D}")
        screen = Screen(keys=pipe, output=output)
        dialogue = begin(screen.write)
        converse(dialogue, screen)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.getvalue().decode(encoding))
    assert dialogue.messages[0].text == "Grüße an “你好” 😀.", "the model gets what was typed"
    assert ("▀" in shown or "█" in shown) == (encoding in ("utf-8", "cp437", "cp850"))
    assert "cells a sign" in shown or screen.draws_blocks
    assert "/nothing is not a command." in shown
    own = shown[shown.index("/why") :]
    assert ("?" in own) <= ("😀" not in shown), "only what was typed or answered is lost"
    assert ("0 - prefilled" if encoding in ("ascii", "cp932") else "0 · prefilled") in shown


def test_ctrl_c_stops_an_answer_and_no_more(begin: Callable[..., Dialogue]) -> None:
    pieces: list[str] = []

    def interrupt(text: str) -> None:
        pieces.append(text)
        if len(pieces) == 1:  # of few on a busy machine
            signal.raise_signal(signal.SIGINT)

    long = SETTINGS.model_copy(update={"sampling": Sampling(temperature=0.0, max_tokens=200)})
    dialogue = begin(interrupt, long)
    with dialogue.stopped_by_interrupt():
        ended = dialogue.ask("Tell me everything.")
    assert ended.state == "stopped"
    assert ended.stats.generated_tokens < 200
    assert dialogue.ask("Go on.").state == "complete"  # the next turn is as any other


def test_lines_and_commands_are_typed(begin: Callable[..., Dialogue], tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    keys = f"Tell me\\\rabout it.\r/why\r/map\r/edit Another one.\r/again\r/save {file}\r/nothing\r/help\r{CTRL_D}"
    dialogue, shown = typed(begin, keys)
    assert [m.text for m in dialogue.service.all_messages(dialogue.chat) or () if m.role == "user"] == [
        "Tell me\nabout it.",
        "Another one.",
    ]
    assert "Nothing of this conversation was in the cache" in shown
    used = re.search(r"(\d+) of 512 cells used", shown)
    assert used is not None
    assert int(used[1]) > 0
    assert "/nothing is not a command." in shown
    assert all(command.usage in shown for command in slash_commands.COMMANDS)
    assert len(json.loads(file.read_text("utf-8"))["conversations"][0]["messages"]) == 5


@pytest.mark.parametrize("command", ["/why", "/again", "/edit", "/save x.md"])
def test_before_the_first_question_a_command_says_so(begin: Callable[..., Dialogue], command: str) -> None:
    _, shown = typed(begin, f"{command}\r/quit\r")
    assert "Nothing was asked yet." in shown or "There is no answer yet." in shown


@pytest.mark.parametrize(("argument", "said"), [("", "needs a file name"), ("chat.exe", "must end in one of")])
def test_a_file_that_cannot_be_is_refused(begin: Callable[..., Dialogue], argument: str, said: str) -> None:
    _, shown = typed(begin, f"hi\r/save {argument}\r{CTRL_D}")
    assert said in shown


def test_an_answer_cannot_command_the_terminal() -> None:
    shown = io.StringIO()
    with create_pipe_input() as pipe:
        screen = Screen(keys=pipe, output=PlainTextOutput(shown))
        screen.write("\x1b]0;title\x07 \x9b2J end\n")
        screen.say("\x1b[31mred")
    assert not any(sign in shown.getvalue() for sign in "\x1b\x07\x9b")


def test_without_colours_a_sign_is_many_cells(begin: Callable[..., Dialogue]) -> None:
    class OneBit(PlainTextOutput):
        def get_default_color_depth(self) -> ColorDepth:
            return ColorDepth.DEPTH_1_BIT

    with create_pipe_input() as pipe:
        assert not Screen(keys=pipe, output=OneBit(io.StringIO())).draws_blocks
    dialogue = begin()
    dialogue.ask("Tell me about the sea.")
    view = dialogue.view()
    (numbers,), (signs,), _ = list(cell_blocks.lines(dialogue.store, view, coloured=False))
    assert numbers[1].startswith(f"{view.snapshot.maps[0].streams[0].used} of 512 cells used")
    assert signs[1].startswith("[" + str(view.leases[0].seq_id))
    assert "8 cells a sign" in signs[1]


@pytest.mark.parametrize(
    ("said", "chosen", "sign"), [("truecolor", "", "38;2;"), ("", "", "38;5;"), ("truecolor", "DEPTH_8_BIT", "38;5;")]
)
def test_colours_have_as_many_bits_as_the_terminal_reports(
    begin: Callable[..., Dialogue], monkeypatch: pytest.MonkeyPatch, said: str, chosen: str, sign: str
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", said)
    monkeypatch.setenv("PROMPT_TOOLKIT_COLOR_DEPTH", chosen)
    dialogue = begin()
    dialogue.ask("Tell me about the sea.")
    out = io.BytesIO()
    with create_pipe_input() as pipe:
        stream = io.TextIOWrapper(out, "utf-8", newline="")
        output = Vt100_Output(stream, lambda: Size(40, 100), default_color_depth=ColorDepth.from_env())
        screen = Screen(keys=pipe, output=output)
        for line in cell_blocks.lines(dialogue.store, dialogue.view(), coloured=screen.draws_blocks):
            screen.say_fragments(line)
    shown = out.getvalue().decode()
    assert [one for one in ("38;2;", "38;5;") if one in shown] == [sign]


@pytest.mark.parametrize("columns", [200, 40])
def test_each_used_cell_has_half_a_block(begin: Callable[..., Dialogue], columns: int) -> None:
    dialogue = begin()
    dialogue.ask("Tell me about the sea.")
    view = dialogue.view()
    stream = view.snapshot.maps[0].streams[0]
    drawn = list(cell_blocks.lines(dialogue.store, view, coloured=True, columns=columns))
    assert {sum(len(text) for _, text in line) for line in drawn[1:3]} == {min(columns, 64)}
    own = drawn[-1][0][0]  # the legend's colour of this chat
    halves = 0
    for style, text in (piece for line in drawn[:-1] for piece in line):
        if style == own:
            halves += 2 * text.count("█") + text.count("▀") + text.count("▄")
        elif own.removeprefix("fg:") in style:
            halves += len(text)
    assert halves == stream.used


def test_no_text_is_refused(begin: Callable[..., Dialogue]) -> None:
    with pytest.raises(UserError, match="must have some text"):
        begin().ask("  ")


@pytest.fixture
def thinking_host(model_file: Path, tmp_path: Path) -> Iterator[Host]:
    path = write_talking(tmp_path / "thinking.gguf", model_file, THINKING)
    with running(path, ContextSettings(n_ctx=512)) as host:
        yield host


def test_thinking_is_switched_where_the_template_can(thinking_host: Host, begin: Callable[..., Dialogue]) -> None:
    _, shown = typed(begin, f"/think off\r{CTRL_D}")
    assert "has no switch for thinking" in shown
    keys = f"/think loud\rhi\r/think off\rhi\r/think\r{CTRL_D}"
    dialogue, shown = typed(lambda on_text: Dialogue(thinking_host, SETTINGS, on_text), keys)
    dialogue.close()
    assert "/think takes one of off, on." in shown
    assert "Thinking: off" in shown
    first, second = (m.stats for m in dialogue.messages if m.stats is not None)
    plain = Dialogue(thinking_host, SETTINGS, lambda _text: None)
    for text in ("hi", "hi"):
        ended = plain.ask(text)
    plain.close()
    assert first.prompt_tokens < ended.stats.prompt_tokens < second.prompt_tokens, (
        "an empty block of reasoning is in it"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="a console of Windows shows keys only while they are read")
def test_keys_that_are_typed_meanwhile_are_not_shown_inside_the_answer(begin: Callable[..., Dialogue]) -> None:
    import pty
    import termios

    from prompt_toolkit.input.vt100 import Vt100Input

    main, end = pty.openpty()
    echoes: list[int] = []

    class Echoing(PlainTextOutput):
        def write(self, data: str) -> None:
            echoes.append(termios.tcgetattr(end)[3] & termios.ECHO)
            super().write(data)

    now = termios.tcgetattr(end)  # keys arrive before the first prompt makes the terminal raw
    now[0] &= ~termios.ICRNL
    now[3] &= ~termios.ICANON
    termios.tcsetattr(end, termios.TCSANOW, now)
    with os.fdopen(main, "wb", buffering=0) as typing, os.fdopen(end, encoding="utf-8") as keys:
        screen = Screen(keys=Vt100Input(keys), output=Echoing(io.StringIO()))
        typing.write(f"/why\rTell me about the sea.\r/map\r{CTRL_D}".encode())
        converse(begin(screen.write), screen)
        assert echoes
        assert not any(echoes)
        assert termios.tcgetattr(end)[3] & termios.ECHO
