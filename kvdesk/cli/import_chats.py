"""`kvdesk import`: chats from files or folders of kvdesk, ChatGPT, Open WebUI, LM Studio, Jan or llama.cpp's web UI.

All of their chats are imported, or none. What is here already is left out, and what is damaged.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from kvdesk.cli.chats_there import chats_there
from kvdesk.cli.parser import Parser
from kvdesk.conversations.porting import formats
from kvdesk.conversations.porting.adding import chosen
from kvdesk.conversations.porting.summary import imported_sentence, rows, summary_of
from kvdesk.translation import tr
from kvdesk.viewmodel.palette import N_COLOURS


def main(argv: Sequence[str]) -> int:
    """Exit code 0; UserError for a file that cannot be imported, or while a window has the chats open."""
    parser = Parser(
        "import",
        tr(
            "Imports chats from files of kvdesk, ChatGPT, Open WebUI, LM Studio, Jan or llama.cpp's web UI: all of "
            "their chats, or none. Chats that already exist, and damaged ones, are skipped."
        ),
    )
    help_of_file = tr("a .json, .jsonl or .zip file, or a folder of them")
    parser.add_argument("file", type=Path, nargs="+", metavar="FILE", help=help_of_file)
    parser.flag("--preview", tr("say what is in the file, and import nothing"))
    parser.flag("--copies", tr("import once more what is here already"))
    args = parser.parse_args(argv)
    found = list(formats.read(args.file[0], _show_progress, args.file[1:]))
    with chats_there() as store:
        known = store.conversations()
        summary = summary_of(found, (conversation.id for conversation in known))
        for name, value in rows(summary):
            print(f"{name + ':':12} {value}")
        if args.preview:
            return 0
        conversations = (one.conversation for one in found)
        added = chosen(conversations, known, N_COLOURS, copies=args.copies)
        print(imported_sentence(len(store.add(added))))
        if not args.copies and summary.n_known:
            print(tr("--copies imports once more what is here already."))
    return 0


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done >= total else ""
        sys.stderr.write(f"\r{100 * done // max(total, 1)} %{end}")
