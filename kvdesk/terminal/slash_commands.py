"""What can be typed instead of a message: each is a line of `COMMANDS`."""

from collections.abc import Callable
from typing import Final

from kvdesk.conversations.porting import export
from kvdesk.errors import UserError
from kvdesk.paths import expanded
from kvdesk.protocol.chat import TurnEnded
from kvdesk.terminal import cell_blocks
from kvdesk.terminal.dialogue import Dialogue
from kvdesk.terminal.screen import Screen
from kvdesk.translation import marked, tr
from kvdesk.ui.parameters.words import LEVEL_NAMES
from kvdesk.values import dataclass, replace
from kvdesk.viewmodel.cells.readout import reasons


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """`run` gets the dialogue, the screen and what was typed behind the name; it returns the answer it waited for.

    usage  name and argument as one types them; meaning: for /help
    """

    usage: str
    meaning: str
    run: Callable[[Dialogue, Screen, str], TurnEnded | None]

    @property
    def name(self) -> str:
        return self.usage.split()[0]


class Leave(Exception):
    """The user leaves the chat."""


def run(typed: str, dialogue: Dialogue, screen: Screen) -> TurnEnded | None:
    """Carry out a line that begins with a slash; the answer, if it asked for one. Raises UserError, Leave."""
    name, _, argument = typed.strip().partition(" ")
    found = next((command for command in COMMANDS if command.name == name), None)
    if found is None:
        raise UserError(tr("{name} is not a command. /help lists the commands.").format(name=name))
    return found.run(dialogue, screen, argument.strip())


def _why(dialogue: Dialogue, screen: Screen, _argument: str) -> None:
    stats = next((message.stats for message in reversed(dialogue.messages) if message.stats is not None), None)
    if stats is None:
        raise UserError(tr("There is no answer yet."))
    screen.say(reasons(stats) or tr("Nothing is known about this answer."))


def _map(dialogue: Dialogue, screen: Screen, _argument: str) -> None:
    view, columns = dialogue.view(), screen.columns
    for line in cell_blocks.lines(dialogue.store, view, coloured=screen.draws_blocks, columns=columns):
        screen.say_fragments(line)


def _edit(dialogue: Dialogue, screen: Screen, argument: str) -> TurnEnded | None:
    question = dialogue.question
    if question is None:
        raise UserError(tr("Nothing was asked yet."))
    text = argument or screen.ask(question.text)
    if not text.strip() or text == question.text:
        screen.say(tr("The question stays as it is."))
        return None
    return screen.answering(dialogue, lambda: dialogue.edit(text))


def _again(dialogue: Dialogue, screen: Screen, _argument: str) -> TurnEnded:
    return screen.answering(dialogue, dialogue.ask_again)


def _think(dialogue: Dialogue, screen: Screen, argument: str) -> None:
    levels = dialogue.levels[1:]
    if not levels:
        raise UserError(tr("The chat template of this model has no switch for thinking."))
    now = dialogue.conversation.thinking
    if argument:
        if argument not in levels:
            raise UserError(tr("/think takes one of {levels}.").format(levels=", ".join(levels)))
        now = replace(now, level=argument)
        dialogue.think(now)
    screen.say(tr("Thinking: {level}").format(level=tr(LEVEL_NAMES[now.level])))


def _save(dialogue: Dialogue, screen: Screen, argument: str) -> None:
    if not argument:
        raise UserError(tr("/save needs a file name."))
    path = expanded(argument)
    form = export.format_named(path)
    messages = dialogue.service.all_messages(dialogue.chat) or ()
    if not messages:
        raise UserError(tr("Nothing was asked yet."))
    n = export.write(path, form, [replace(dialogue.conversation, messages=messages)])
    screen.say(export.written_sentence(n, path))


def _help(_dialogue: Dialogue, screen: Screen, _argument: str) -> None:
    width = max(len(command.usage) for command in COMMANDS)
    for command in COMMANDS:
        screen.say(f"{command.usage:{width}}  {tr(command.meaning)}")
    screen.say(tr("Alt+Enter begins a new line, and so does \\ at the end of a line. Ctrl+C stops an answer."))


def _quit(_dialogue: Dialogue, _screen: Screen, _argument: str) -> None:
    raise Leave


COMMANDS: Final = (
    SlashCommand("/why", marked("why the last answer began when it did, what was reused, and what drafts gave"), _why),
    SlashCommand("/map", marked("the cells of the KV cache"), _map),
    SlashCommand("/edit [TEXT]", marked("the last question in other words, in a new branch"), _edit),
    SlashCommand("/again", marked("another answer to the last question, in a new branch"), _again),
    SlashCommand("/think [LEVEL]", marked("whether the model reasons first, from the next answer on"), _think),
    SlashCommand("/save FILE", marked("this chat as .json, .md or .html"), _save),
    SlashCommand("/help", marked("this list"), _help),
    SlashCommand("/quit", marked("leave; so does Ctrl+D"), _quit),
)
