"""What the main window says a person wants: signals for the controller, which answers with the window's methods."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMainWindow


class WindowSignals(QMainWindow):
    """The signals of the main window. An empty conversation_id means that none is selected: make one."""

    # --- chat ---------------------------------------------------------------------------------------------------------

    message_sent = Signal(str, str)
    """(conversation_id, text): a person sent a message."""
    stop_requested = Signal(str)
    """(conversation_id): Stop or Esc while an answer is being written."""
    regenerate_requested = Signal(str, int)
    """(conversation_id, n): make the last answer again, n times at once, as branches."""
    starter_requested = Signal(str)
    """(name): a card of the empty chat: ask its questions."""
    draft_changed = Signal(str, str, str)
    """(conversation_id, text, message_id): what is being typed, after a pause, and the message whose place it would
    take ("": none); answered by TurnPreview.
    """
    draft_typed = Signal(str, str)
    """(conversation_id, text): what is typed and not sent, told soon enough to outlive a crash."""
    message_edited = Signal(str, str, str)
    """(conversation_id, message_id, text): send it in other words, as a branch beside the first."""
    continue_requested = Signal(str, str)
    """(conversation_id, message_id): go on with this answer where it ended; "": with the last one."""
    answer_edited = Signal(str, str, str, bool)
    """(conversation_id, message_id, text, go_on): the model's answer in other words, as a branch; and continue it."""
    message_pinned = Signal(str, str, bool)
    """(conversation_id, message_id, pinned)"""
    message_deleted = Signal(str, str, bool)
    """(conversation_id, message_id, with_pair): this message alone, or the question with all versions of its answer."""
    message_undeleted = Signal(str)
    """(conversation_id): bring back what was deleted last."""
    branch_requested = Signal(str, str)
    """(conversation_id, message_id): show the branch that goes through this message."""
    overflow_chosen = Signal(str, object)
    """(conversation_id, Overflow): what happens when the context of the conversation is full."""
    parameters_changed = Signal(str, object)
    """(conversation_id, Parameters): system prompt, sampling and template from its next answer on."""
    prompt_preview_requested = Signal(str, object, int)
    """(conversation_id, Parameters, number): how would its prompt be with these? Answered by PromptPreview."""

    # --- conversations ------------------------------------------------------------------------------------------------

    new_chat_requested = Signal()
    conversation_selected = Signal(str)
    """(conversation_id): answer with `show_conversations` and `show_messages`."""
    conversation_renamed = Signal(str, str)
    """(conversation_id, title)"""
    conversation_deleted = Signal(str)
    """(conversation_id)"""
    search_requested = Signal(str)
    """(text): a person types into the search field; `conversations.show_found` shows what was found."""
    chats_save_requested = Signal(str, object)
    """(path, conversation_ids): write these there, a tuple, in the format that the ending of the file names."""
    import_requested = Signal(str)
    """(path): from the file dialog, or dropped on the window: ask what of its chats is to be added."""
    state_open_requested = Signal(str)
    """(path): from the file dialog, or dropped on the window: show this saved KV cache."""
    unsaved_save_requested = Signal(str)
    """(path): write the messages that the disk does not take to this file too."""

    # --- cache --------------------------------------------------------------------------------------------------------

    forget_requested = Signal(str)
    """(conversation_id): remove its cells, keep its text."""
    command_requested = Signal(object)
    """(command): one of `kvdesk.protocol.operations`, sent to the worker as it is: Operate, PreviewCompaction,
    PreviewContext, VerifyConversation, TakeRecording.
    """
    cancel_requested = Signal()
    """End what `Working` reports."""
    fork_requested = Signal(str, str, int, int)
    """(conversation_id, message_id, p0, p1): a new conversation with the messages up to this one ("": all) that shares
    the cells of positions [p0, p1); -1: from the start, to the end.
    """
    rebuild_requested = Signal(object, str)
    """(ContextSettings, keep): make a new context with these settings, to be remembered once it could be made; answered
    by ContextReady(rebuilt=True) or CommandFailed. keep: what becomes of the conversations ("nothing", "tokens",
    "state": RebuildContext).
    """
    audit_requested = Signal()
    """Compare every cell with the engine; the next CacheView says how it ended."""
    report_requested = Signal(str)
    """(path): write the report of the last mismatch there."""
    journal_save_requested = Signal(str, object)
    """(path, Recording): write it there as JSON lines."""
    inspector_watched = Signal(bool)
    """(watched): whether the cache is being looked at: snapshots are made only then. Sent when it changes, and once
    after the window is first shown.
    """

    # --- model, window ------------------------------------------------------------------------------------------------

    model_open_requested = Signal(str)
    """(path): from the file dialog, or a .gguf dropped on the window."""
    offer_requested = Signal(object)
    """(Offer): download the model that the empty chat offers."""
    reconnect_requested = Signal()
    """Connect again to the server that was connected last."""
    embedded_model_requested = Signal()
    """The way back to the model that comes with kvdesk."""
    about_requested = Signal()
    """Answer with `help.show_about`."""
    problem_report_requested = Signal(str, object)
    """(path, ReportChoice): write a report of a problem there."""
    closing = Signal()
    """The window is being closed; nothing is sent after it."""
