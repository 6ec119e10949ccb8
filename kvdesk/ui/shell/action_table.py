"""The table of all actions of the window.

To add one: a line `Action("group.name", tr("Do something"), what_does_it, "Ctrl+Shift+X", refusal=why_not)` in the
function of its group below. Keys, command palette, list of shortcuts and menus follow. `what_does_it` takes nothing: a
method of `Verbs` or `WindowSettings`, of a part of the window, or a command. For the main menu add its id to
`window_help.menu_names`. A widget runs it by its id: `kit.act("group.name")`.
`there(...)` goes from another room to the conversations first. `refusal` gives the sentence why it cannot be done now,
or "". Texts go through `tr`: the table is made with the window, after the language is known.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from kvdesk.message import ConversationId
from kvdesk.protocol.cache import AuditCache
from kvdesk.session.operation_specs import CLEAR, COMPACT, OPERATIONS, UNDO, OperationSpec, alternative
from kvdesk.settings import ThemeChoice
from kvdesk.translation import tr
from kvdesk.ui.chat.parameters_button import KEYS as PARAMETERS_KEYS
from kvdesk.ui.chat_list.chat_files import ask_for_import
from kvdesk.ui.operations.request import ask, why_not_done
from kvdesk.ui.shell.refusals import Refusals
from kvdesk.ui.shell.verbs import Verbs, escape
from kvdesk.ui.shell.window import Window
from kvdesk.ui.shell.window_help import WindowHelp
from kvdesk.ui.shell.window_settings import WindowSettings
from kvdesk.ui.widgets.actions import Action, ActionGroup

There = Callable[[Callable[[], object]], Callable[[], None]]


BUTTONS: Final = {
    "newButton": "chat.new",
    "settingsButton": "settings.open",
    "sidebarButton": "view.sidebar",
    "inspectorButton": "view.inspector",
}
"""Buttons of the window, by object name, that have the name and the keys of an action."""


def window_actions(
    window: Window, verbs: Verbs, settings: WindowSettings, helps: WindowHelp
) -> tuple[ActionGroup, ...]:
    """All actions, in the order in which they are listed."""
    there, why_not = window.rooms.in_chats, Refusals(window)

    def in_chat(act: Callable[[], object]) -> Callable[[], None]:
        """The same, and the chat if the inspector is in its place."""

        def go() -> None:
            window.panes.show_chat()
            act()

        return there(go)

    of_slices = {after: one for part in window.kit.slices for after, one in part.actions(window.rooms).items()}

    def group(title: str, actions: Sequence[Action]) -> ActionGroup:
        behind = ((action, of_slices.get(action.id)) for action in actions)
        return ActionGroup(title, tuple(action for pair in behind for action in pair if action is not None))

    return (
        group(tr("Chat"), _chat(window, verbs, helps, in_chat, why_not)),
        group(tr("Cache"), _cache(window, verbs, settings, there, why_not)),
        group(tr("View"), _view(window, settings, there)),
        group(tr("Application"), _program(window, verbs, helps, why_not)),
    )


def _chat(window: Window, verbs: Verbs, helps: WindowHelp, there: There, why_not: Refusals) -> tuple[Action, ...]:
    chat = window.chat
    return (
        Action("chat.new", tr("New chat"), there(verbs.new_chat), "Ctrl+N"),
        Action("chat.find", tr("Find in this chat"), there(chat.find_text), "Ctrl+F", refusal=why_not.find),
        Action("chat.search", tr("Search the chats"), there(verbs.search), "Ctrl+K"),
        Action("chat.next_hit", tr("Next search result"), there(partial(verbs.step_hit, 1)), "F3"),
        Action("chat.previous_hit", tr("Previous search result"), there(partial(verbs.step_hit, -1)), "Shift+F3"),
        Action("chat.write", tr("Write a message"), there(chat.composer.focus_edit), "Ctrl+L"),
        Action(
            "chat.edit",
            tr("Edit the last question"),
            there(chat.edit_last),
            "Ctrl+E",
            tr("Edit it here, and have that answered in a new branch; this one stays"),
            why_not.edit,
        ),
        Action(
            "chat.regenerate",
            tr("Answer again"),
            there(verbs.regenerate),
            "Ctrl+R",
            tr("The new answer becomes a branch beside the one that is there"),
            why_not.regenerate,
        ),
        Action(
            "chat.regenerate_three",
            tr("Three more answers at once"),
            there(partial(verbs.regenerate, 3)),
            tip=tr("Each answer becomes a branch; the question is prefilled only once"),
            refusal=why_not.regenerate,
        ),
        Action(
            "chat.tools",
            tr("Tools of this chat…"),
            there(window.chat.header.choose_tools),
            tip=tr("Which servers' tools its answers may call, and what they cost in the cache"),
        ),
        Action(
            "chat.parameters",
            tr("Parameters of this chat"),
            there(verbs.toggle_parameters),
            PARAMETERS_KEYS,
            tr("System prompt, sampling and template of this chat, and what changing them costs"),
            why_not.chat,
        ),
        Action(
            "chat.overflow",
            tr("When the context is full…"),
            there(lambda: chat.header.overflow.choose(window.kit.actions.asked_at)),
            tip=tr("Stop, or let the oldest messages of this chat go"),
            refusal=why_not.overflow,
        ),
        Action(
            "chat.continue",
            tr("Continue the answer"),
            there(verbs.go_on),
            "Ctrl+Shift+R",
            tr("Continue where it ended: only new tokens are computed"),
            why_not.go_on,
        ),
        Action(
            "chat.attach",
            tr("Attach files…"),
            there(chat.attachments.choose),
            "Ctrl+Shift+A",
            tr("Text, code, PDF, DOCX and RTF files, as text"),
        ),
        Action("chat.stop", tr("Stop the answer"), verbs.stop, refusal=why_not.stop),
        Action(
            "chat.export",
            tr("Export the chat…"),
            partial(verbs.export, everything=False),
            tip=tr("Saves it as Markdown, HTML, or JSON with everything"),
            refusal=why_not.chat,
        ),
        Action(
            "chat.export_all", tr("Export all chats…"), partial(verbs.export, everything=True), refusal=why_not.chat
        ),
        Action(
            "chat.import",
            tr("Import chats…"),
            partial(ask_for_import, window, window.kit),
            tip=tr("From kvdesk's own JSON, or from ChatGPT, Open WebUI, LM Studio, Jan or llama.cpp's web UI"),
        ),
        Action(
            "chat.branches",
            tr("Show or hide the branches"),
            there(chat.toggle_branches),
            "Ctrl+Shift+B",
            refusal=why_not.branches,
        ),
        Action(
            "chat.tokens",
            tr("Look at the tokens of the last answer"),
            there(chat.view.show_token),
            tip=tr("How likely each was, what else was likely, and going on with another one"),
            refusal=why_not.tokens,
        ),
        Action("chat.compare", tr("Compare the answers side by side"), there(verbs.compare), refusal=why_not.compare),
        *_arrangement(verbs, there, why_not),
        Action(
            "chat.escape",
            tr("Leave what is open, stop the answer, or dismiss the newest notice"),
            partial(_escape, window, helps),
            "Esc",
        ),
    )


def _escape(window: Window, helps: WindowHelp) -> None:
    if not helps.leave_tour():
        escape(window)


def _arrangement(verbs: Verbs, there: There, why_not: Refusals) -> tuple[Action, ...]:
    """The place of the shown chat in the list."""
    return (
        Action("chat.rename", tr("Rename the chat"), there(verbs.rename), refusal=why_not.chat),
        Action("chat.pin", tr("Pin or unpin the chat"), there(verbs.pin), "Ctrl+Shift+T", refusal=why_not.chat),
        Action("chat.move", tr("Move the chat to a folder"), there(verbs.move), "Ctrl+Shift+M", refusal=why_not.chat),
        Action("chat.archive", tr("Archive the chat, or take it out"), there(verbs.archive), refusal=why_not.chat),
        Action("chat.delete", tr("Delete the chat"), there(verbs.delete), refusal=why_not.chat),
        Action(
            "chat.undo",
            tr("Undo the deletion"),
            there(verbs.undo_delete),
            "Ctrl+Z",
            tr("Of messages of this chat until kvdesk is closed, of a chat for a few seconds"),
            why_not.undo_delete,
        ),
    )


def _cache(
    window: Window, verbs: Verbs, settings: WindowSettings, there: There, why_not: Refusals
) -> tuple[Action, ...]:
    cache = window.inspector.cache

    def in_page(act: Callable[[], object]) -> Callable[[], None]:
        """The same, with the page of the cache in sight."""

        def go() -> None:
            settings.show_page("Cache")
            act()

        return there(go)

    return (
        *_operations(window, there, in_page),
        Action("cache.form", tr("Operations by hand"), in_page(lambda: cache.instruments.operations.set_open(True))),
        Action("cache.forget", tr("This chat: forget its cells"), there(verbs.forget), refusal=why_not.forget),
        Action("cache.rebuild", tr("Rebuild the context"), there(verbs.ask_rebuild), refusal=why_not.rebuild),
        Action(
            "cache.audit", tr("Audit the cell map"), lambda: window.commands.submit(AuditCache()), refusal=why_not.audit
        ),
        Action(
            "cache.overlay",
            tr("Show or hide the drawing times of the cell map"),
            window.inspector.cell_map.toggle_overlay,
            "Ctrl+Shift+D",
        ),
    )


def _operations(window: Window, there: There, in_page: There) -> Iterator[Action]:
    """Operations by hand on the conversation that is shown, and on the whole cache."""
    kit, store = window.kit, window.store

    def current(spec: OperationSpec) -> OperationSpec:
        return alternative(spec, store.target_of(store.selected))

    def run_on_shown(spec: OperationSpec) -> None:
        ask(kit, spec, store.selected or ConversationId(""))

    def refusal(spec: OperationSpec) -> str:
        other = tr("This chat is not swapped out.") if current(spec) is not spec else ""
        return other or why_not_done(kit, spec, store.selected or ConversationId(""))

    whole = ((COMPACT, tr("Compact the cache…")), (CLEAR, tr("Clear the cache")), (UNDO, tr("Undo the last operation")))
    own = [(spec, tr("This chat: {operation}").format(operation=tr(spec.menu))) for spec in OPERATIONS if spec.menu]
    for spec, label in (*own, *whole):
        name = spec.label.rstrip("…").lower().replace(" ", "_")
        run = there(partial(run_on_shown, spec))
        if spec is COMPACT:
            run = in_page(window.inspector.cache.answers.open_compaction)
        yield Action(f"cache.{name}", label, run, tip=tr(spec.tip), refusal=partial(refusal, spec))


def _view(window: Window, settings: WindowSettings, there: There) -> tuple[Action, ...]:
    use_theme = window.store.settings.change
    return (
        Action("view.sidebar", tr("Show or hide the chats"), there(settings.toggle_sidebar), "Ctrl+B"),
        Action("view.inspector", tr("Show or hide the cache inspector"), there(settings.toggle_inspector), "Ctrl+I"),
        Action(
            "view.instruments",
            tr("Show more of the inspector, or the map and four numbers"),
            there(settings.toggle_instruments),
            "Ctrl+Shift+I",
        ),
        Action(
            "view.probabilities",
            tr("Token probabilities on or off"),
            settings.toggle_probabilities,
            "Ctrl+Shift+K",
            tr("New answers keep how likely their tokens were, and are coloured by surprise"),
        ),
        *(
            Action(
                f"view.{label.lower()}",
                tr("Show the page {page} of the inspector").format(page=tr(label)),
                there(partial(settings.show_page, label)),
            )
            for label in window.inspector.labels
        ),
        Action("view.zoom_in", tr("Zoom in"), partial(settings.zoom, 1), "Ctrl++; Ctrl+="),
        Action("view.zoom_out", tr("Zoom out"), partial(settings.zoom, -1), "Ctrl+-"),
        Action("view.zoom_reset", tr("Reset the zoom"), partial(settings.zoom, 0), "Ctrl+0"),
        Action("view.larger_text", tr("Larger text"), partial(settings.change_font, 1)),
        Action("view.smaller_text", tr("Smaller text"), partial(settings.change_font, -1)),
        Action("view.default_text", tr("Text in the size of the system"), partial(settings.change_font, 0)),
        Action("view.theme_light", tr("Theme: light"), partial(use_theme, theme=ThemeChoice.LIGHT)),
        Action("view.theme_dark", tr("Theme: dark"), partial(use_theme, theme=ThemeChoice.DARK)),
        Action("view.theme_system", tr("Theme: as the system has it"), partial(use_theme, theme=ThemeChoice.SYSTEM)),
    )


def _program(window: Window, verbs: Verbs, helps: WindowHelp, why_not: Refusals) -> tuple[Action, ...]:
    rooms = window.rooms
    return (
        Action("model.open", tr("Open a model…"), verbs.open_model, "Ctrl+O", refusal=why_not.model),
        Action(
            "state.open",
            tr("Open a saved cache…"),
            verbs.open_state,
            tip=tr("A slot of llama-server, a session of llama.cpp or another saved KV cache: what is in it"),
        ),
        Action(
            "model.list",
            tr("Models on this computer"),
            partial(rooms.toggle, "models"),
            "Ctrl+Shift+O",
            tr("What other applications downloaded, whether it fits, and how fast it should be"),
        ),
        Action("model.get", tr("Get models…"), partial(rooms.show_models, get=True)),
        Action(
            "model.server",
            tr("Connect to a server…"),
            lambda: rooms.show_settings().show_connecting(),
            tip=tr("Chat with a model that llama-server, vLLM, another kvdesk or the like runs"),
            refusal=why_not.model,
        ),
        Action(
            "model.embedded", tr("Open the embedded model"), window.commands.open_embedded, refusal=why_not.embedded
        ),
        Action("model.stop", tr("Stop loading the model"), window.commands.cancel_work, refusal=why_not.stop_loading),
        Action(
            "app.tools",
            tr("Tool servers…"),
            lambda: rooms.show_settings().show_tools(),
            tip=tr("Programs and addresses whose tools a chat may call (MCP), and what they cost in the cache"),
        ),
        Action("settings.open", tr("Settings"), rooms.show_settings, "Ctrl+,"),
        Action("settings.context", tr("Settings of the context"), lambda: rooms.show_settings().show_context()),
        Action("help.palette", tr("Command palette"), helps.open_palette, "Ctrl+Shift+P"),
        Action("help.shortcuts", tr("Shortcuts"), helps.open_shortcuts, "F1"),
        Action(
            "help.explained",
            tr("The KV cache, explained"),
            helps.open_explained,
            tip=tr("What is kept of each token, what it takes and what it saves, in numbers of the model that is open"),
        ),
        Action("help.tour", tr("Tour"), helps.open_tour, tip=tr("Six steps through the window")),
        Action("help.report", tr("Report a problem…"), helps.open_report),
        Action("help.about", tr("About kvdesk"), window.commands.show_about),
        Action("app.quit", tr("Quit"), window.close, "Ctrl+Q", everywhere=True),
    )


def widget_keys() -> tuple[ActionGroup, ...]:
    """Keys that a part of the window has while the focus is there: listed, but not run from the list."""
    return (
        _keys(
            tr("In the message box"),
            tr("This key works in the message box."),
            (tr("Send"), "Enter"),
            (tr("New line"), "Shift+Enter"),
            (tr("Scroll the messages"), "PgUp; PgDown"),
            (tr("What was sent before, while the box is empty"), "Up; Down"),
        ),
        _keys(
            tr("In the list of chats"),
            tr("This key works in the list of chats."),
            (tr("What can be done with the chat"), "Menu; Shift+F10"),
            (tr("Rename the chat"), "F2"),
            (tr("Delete the chat"), "Del"),
            (tr("Collapse the folder, or go to its head"), "Left"),
            (tr("Open the folder"), "Right"),
        ),
        _keys(
            tr("In the cell map"),
            tr("This key works in the cell map."),
            (tr("Move the cursor"), "Left; Right; Up; Down"),
            (tr("Select as the cursor moves"), "Shift+Right"),
            (tr("First cell"), "Home"),
            (tr("Last cell"), "End"),
            (tr("Zoom in"), "+"),
            (tr("Zoom out"), "-"),
            (tr("Show the whole map"), "0"),
        ),
        _keys(
            tr("In the graphs"),
            tr("This key works in the graphs."),
            (tr("Read another time"), "Left; Right"),
            (tr("A shorter time"), "+"),
            (tr("A longer time"), "-"),
        ),
    )


def _keys(title: str, why: str, *rows: tuple[str, str]) -> ActionGroup:
    """Labels and keys that cannot be run, and why."""
    return ActionGroup(title, tuple(Action("", label, lambda: None, keys, refusal=lambda: why) for label, keys in rows))
