"""`kvdesk export`: chats to a file. JSON has everything and can be imported; Markdown and HTML are for reading."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from kvdesk import paths
from kvdesk.chat import Conversation
from kvdesk.cli.chats_there import chats_there, named
from kvdesk.cli.parser import Parser
from kvdesk.conversations.porting import export
from kvdesk.errors import UserError
from kvdesk.printable import PICTURES
from kvdesk.quantities import day_text
from kvdesk.store.store import Store
from kvdesk.translation import tr
from kvdesk.values import replace


def main(argv: Sequence[str]) -> int:
    """Exit code 0; UserError for what cannot be exported, or while a window has the chats open."""
    parser = Parser(
        "export", tr("Chats to a file. JSON has everything and can be imported; Markdown and HTML are for reading.")
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help=tr("ends in .json, .md or .html"))
    parser.add_argument(
        "--chat", action="append", metavar="ID", help=tr("only this one, by its id or whole title; may be repeated")
    )
    parser.flag("--list", tr("list the chats instead: id, day, title"))
    args = parser.parse_args(argv)
    if args.file is None and not args.list:
        parser.error("FILE is missing")
    if not paths.database_file().exists():
        raise UserError(tr("There are no chats yet."))
    with chats_there() as store:
        wanted = _wanted(store.conversations(), args.chat)
        if args.list:
            for conversation in wanted:
                print(
                    f"{conversation.id}  {day_text(conversation.updated_ms)}  {conversation.title.translate(PICTURES)}"
                )
            return 0
        form = export.format_named(args.file)
        n = export.write(args.file, form, _whole(store, wanted))
    print(export.written_sentence(n, args.file))
    return 0


def _wanted(there: Sequence[Conversation], names: Sequence[str] | None) -> list[Conversation]:
    """Those with one of these ids or titles; all if none is named. Raises UserError for a name that no chat has."""
    if names is None:
        return list(there)
    found: dict[str, Conversation] = {}
    for name in names:
        found |= {conversation.id: conversation for conversation in named(there, name)}
    return list(found.values())


def _whole(store: Store, wanted: Sequence[Conversation]) -> Iterator[Conversation]:
    for conversation in wanted:
        yield replace(conversation, messages=store.all_messages(conversation.id))
