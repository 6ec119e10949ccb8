"""A user's chat in a terminal, from the first message to the last."""

from collections.abc import Callable
from contextlib import closing
from functools import partial

from kvdesk.errors import UserError
from kvdesk.terminal import slash_commands
from kvdesk.terminal.dialogue import Dialogue
from kvdesk.terminal.screen import Screen
from kvdesk.translation import tr


def converse_with(begin: Callable[[Callable[[str], None]], Dialogue]) -> None:
    """In the terminal of this process. `begin` makes the dialogue of that which shows each piece of an answer."""
    screen = Screen([command.name for command in slash_commands.COMMANDS])
    with closing(begin(screen.write)) as dialogue:
        screen.show_below(partial(status, dialogue))
        for message in dialogue.messages:
            screen.say(f"› {message.text}" if message.role == "user" else message.text)
            if message.role == "user":
                screen.remember(message.text)
        converse(dialogue, screen)


def status(dialogue: Dialogue) -> str:
    """One line: the model, its context, and where help is."""
    model, context = dialogue.store.model, dialogue.store.context
    stats = next((message.stats for message in reversed(dialogue.messages) if message.stats is not None), None)
    parts = [model.name if model is not None else ""]
    if context is not None:
        used = f"{stats.cells_used:,}" if stats is not None else "0"
        parts.append(tr("{used} of {n} cells used").format(used=used, n=f"{context.n_ctx:,}"))
    return " · ".join((*filter(None, parts), tr("/help lists the commands")))


def converse(dialogue: Dialogue, screen: Screen) -> None:
    """Until the user leaves. A line that begins with a slash is a command; nothing else is."""
    with screen.not_echoed():
        while _turn(dialogue, screen):
            pass


def _turn(dialogue: Dialogue, screen: Screen) -> bool:
    """What is typed next. False: the user leaves."""
    try:
        typed = screen.ask()
    except KeyboardInterrupt:
        return True
    except EOFError:
        return False
    if not typed.strip():
        return True
    try:
        if typed.startswith("/"):
            slash_commands.run(typed, dialogue, screen)
        else:
            screen.answering(dialogue, partial(dialogue.ask, typed))
    except slash_commands.Leave:
        return False
    except UserError as error:
        screen.say(str(error), "fg:ansired")
    return True
