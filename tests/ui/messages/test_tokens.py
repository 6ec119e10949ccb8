"""Answers coloured by surprise; one token looked at with what else was likely, and another one taken instead."""

from math import exp

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QTextEdit, QToolTip
from pytestqt.qtbot import QtBot

from kvdesk.message import Message, MessageId
from kvdesk.protocol.cache import MessageSpan, MessageSpans
from kvdesk.protocol.chat import ModelLoaded, TokenLogprobs, TurnPreview
from kvdesk.protocol.logprobs import pack, unknown
from kvdesk.settings import ThemeChoice
from kvdesk.ui.markdown.code_block import CodeBlock
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.messages.message_widget import MessageWidget
from kvdesk.ui.messages.token_card import TokenCard, price
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from kvdesk.viewmodel.chat.token_surprise import LEVELS, colours_of, level_of, percent, shown, words
from tests.protocol.logprobs import prob
from tests.ui.recording import Record
from tests.ui.samples import MODEL, ONE, STATS, message, show_messages, update_message

QUESTION = message("q", "user", "Why?")


def one(p: float, piece: str, *others: str, hidden: bool = False) -> TokenLogprobs:
    """A token of this probability, and others that were half as likely."""
    chosen = prob(hash(piece) % 1000, p, piece)
    top = [chosen, *(prob(1000 + i, p / 2, other, hidden=hidden) for i, other in enumerate(others))]
    return TokenLogprobs(chosen, tuple(top), 1)


def answer(*tokens: TokenLogprobs, text: str = "") -> Message:
    text = text or b"".join(token.chosen.piece for token in tokens).decode()
    ids = tuple(token.chosen.token for token in tokens)
    return replace(message("a", "assistant", text, stats=STATS), tokens=ids, probabilities=pack(tokens))


SAID = (one(0.9, "The"), one(0.3, " \U0001f30a", " sea"), one(0.05, " is", " was"), one(0.001, " **blue**", " grey"))


def show(window: MainWindow, shown: Message, *, on: bool = True) -> MessageWidget:
    window.store.settings.change(token_probabilities=on)
    window.store.apply(ModelLoaded(MODEL))
    show_messages(window, ONE, (QUESTION, shown))
    return window.chat.view.widgets[-1]


def coloured(view: ProseView | CodeBlock) -> dict[str, str]:
    """What has a colour behind it, and which."""
    edit = view if isinstance(view, ProseView) else view._view
    found: list[QTextEdit.ExtraSelection] = edit.extraSelections()
    return {mark.cursor.selectedText(): mark.format.background().color().name() for mark in found}


def prose(widget: MessageWidget) -> ProseView:
    return widget.findChildren(ProseView)[0]


def card_of(widget: MessageWidget) -> TokenCard:
    assert widget.token_card is not None
    return widget.token_card


def at(view: ProseView, character: int) -> QPoint:
    """A point in the left half of a character that is shown."""
    cursor = view.textCursor()
    cursor.setPosition(character)
    return view.cursorRect(cursor).center() + QPoint(3, 0)


def test_the_less_likely_a_token_was_the_stronger_its_colour(window: MainWindow) -> None:
    widget = show(window, answer(*SAID))
    colours = colours_of(dark=True)
    assert coloured(prose(widget)) == {" \U0001f30a": colours[1], " is": colours[2], " blue": colours[3]}
    assert window.chat.surprise.isVisible()
    assert "< 1 %" in window.chat.surprise.accessibleName()
    assert window.chat.surprise.minimumWidth() == 1, "a narrow pane stays as narrow"


@pytest.mark.parametrize("in_cells", [True, False])
def test_colours_have_their_legend_beside_the_page_of_attention(window: MainWindow, in_cells: bool) -> None:
    """Words in cells have the colours of attention, those of a chat that is not in the cache keep these."""
    widget = show(window, answer(*SAID))
    spans = (MessageSpan(MessageId("a"), 0, 8, 3, (3, 5, 8)), MessageSpan(MessageId("q"), 0, 3, 1, ()))
    if in_cells:
        window.store.apply(MessageSpans(ONE, 0, spans))
    window.kit.actions.run("view.attention")
    assert bool(coloured(prose(widget))) == window.chat.surprise.isVisible() == (not in_cells)
    window.store.apply(MessageSpans(ONE, 0, spans[1:]))
    assert not coloured(prose(widget)), "its tokens are not known"
    assert not window.chat.surprise.isVisible()


def test_what_was_not_kept_or_is_off_has_no_colour(window: MainWindow) -> None:
    assert not coloured(prose(show(window, replace(answer(*SAID), probabilities=b""))))
    assert not window.chat.surprise.isVisible()
    assert not coloured(prose(show(window, answer(*SAID), on=False)))
    assert not window.chat.surprise.isVisible()
    window.kit.actions.run("view.probabilities")
    assert coloured(prose(window.chat.view.widgets[-1]))
    window.kit.actions.run("view.probabilities")
    assert not coloured(prose(window.chat.view.widgets[-1]))
    begun = unknown(3, "Once upon a")
    assert coloured(prose(show(window, answer(*begun, one(0.001, " time"))))) == {" time": colours_of(dark=True)[3]}


def test_colours_follow_the_theme_and_programs_and_reasoning_have_them(window: MainWindow) -> None:
    pieces = ("<think>", "Hm", "</think>\n\n", "Yes:\n\n```python\n", "x = ", "41", "\n```\n\nDone")
    widget = show(window, answer(*(one(0.001 if piece in ("41", "Hm", "Done") else 1.0, piece) for piece in pieces)))
    code = widget.findChildren(CodeBlock)[0]
    assert coloured(code) == {"41": colours_of(dark=True)[3]}
    window.store.settings.change(theme=ThemeChoice.LIGHT)
    assert coloured(code) == {"41": colours_of(dark=False)[3]}
    said = [view for view in widget.findChildren(ProseView) if "Done" in view.toPlainText()]
    assert not coloured(said[0]), "the token begins in the program"
    (thinking,) = widget._body.findChildren(type(widget._body._shown[0][1]))
    thinking._fold.button.setChecked(True)
    inner = thinking.findChildren(ProseView)[0]
    assert coloured(inner) == {"Hm": colours_of(dark=False)[3]}


def test_a_click_shows_what_else_was_likely_and_keys_go_on(
    window: MainWindow, qtbot: QtBot, record: Record, said: list[tuple[str, bool]]
) -> None:
    asked = record(window.commands.conversations.turns.preview_token)
    widget = show(window, answer(*SAID))
    view = prose(widget)
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at(view, view.toPlainText().index("is") + 1))
    card = card_of(widget)
    assert card.at == 2
    assert card._words.text() == "“␣is”: 5 %, the likeliest token here; surprise 4.3 bits"
    assert card.accessibleName() == f"Token 3 of 4. {card._words.text()}"
    assert said[-1][0] == card.accessibleName()
    assert asked == [(ONE, "a", 2)]
    assert card.hasFocus()
    qtbot.keyClick(card, Qt.Key.Key_Right)
    assert card.at == 3
    qtbot.keyClick(card, Qt.Key.Key_Right)
    assert card.at == 3, "it is the last one"
    qtbot.keyClick(card, Qt.Key.Key_Left)
    qtbot.keyClick(card, Qt.Key.Key_Left)
    assert card.at == 1
    window.kit.actions.run("chat.escape")
    assert widget.token_card is None
    assert widget.isAncestorOf(window.focusWidget()), "the keyboard stays with the message"


def test_another_one_is_taken_and_its_price_is_said_before(window: MainWindow, record: Record) -> None:
    taken = record(window.commands.conversations.turns.take_token)
    widget = show(window, answer(*SAID))
    widget.show_token(2)
    card = card_of(widget)
    window.store.apply(TurnPreview(ONE, 118, 1, 9.0, "", replaced=QUESTION.id))
    assert card.price == "", "another message's"
    window.store.apply(TurnPreview(ONE, 118, 1, 9.0, "", replaced=widget.message.id))
    assert card.price == "Another one costs 1 token: the 118 before it are in the cache."
    (button,) = card.buttons
    assert button.accessibleName() == "Take “␣was” (2.5 %) instead"
    assert button.accessibleDescription() == card.price
    button.click()
    assert taken == [(ONE, "a", 2, 1000)]
    assert widget.token_card is None


def test_a_token_without_text_cannot_be_taken_and_nothing_while_an_answer_is_written(window: MainWindow) -> None:
    widget = show(window, answer(one(0.5, "Yes", "<|im_end|>", hidden=True), one(0.5, "!", "?")))
    widget.show_token(0)
    assert card_of(widget).buttons == []
    window.store.answering["b"] = ONE  # type: ignore[index]
    widget.show_token(1)
    (button,) = card_of(widget).buttons
    assert not button.isEnabled()
    assert button.toolTip() == "An answer is being written; stop it first."


def test_the_menu_and_the_palette_lead_to_the_tokens(window: MainWindow) -> None:
    widget = show(window, answer(*SAID), on=False)
    menu = window.chat.view.menu(widget.message.id)
    (look,) = [action for action in menu.actions() if action.text() == "Look at its tokens"]
    look.trigger()
    assert card_of(widget).at == 0
    widget.close_token()
    window.kit.actions.run("chat.tokens")
    assert card_of(widget).at == 0
    update_message(window, replace(widget.message, probabilities=b""))
    assert widget.token_card is None
    assert "has token probabilities" in window.kit.actions["chat.tokens"].refusal()


def test_hovering_a_token_tells_its_numbers(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    shown_tips: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _pos, text, *_: shown_tips.append(text))
    view = prose(show(window, answer(*SAID)))
    place = at(view, view.toPlainText().index("is") + 1)
    event = QHelpEvent(QEvent.Type.ToolTip, place, view.viewport().mapToGlobal(place))
    view.marks.eventFilter(view.viewport(), event)
    assert shown_tips == ["“␣is”: 5 %, the likeliest token here; surprise 4.3 bits\n␣was  2.5 %"]
    beside = QPoint(view.viewport().width() - 2, place.y())
    assert not view.marks.eventFilter(view.viewport(), QHelpEvent(QEvent.Type.ToolTip, beside, beside))


def test_what_is_damaged_on_the_disk_is_not_looked_at(window: MainWindow) -> None:
    widget = show(window, replace(answer(*SAID), probabilities=b"damaged"))
    widget.show_token(0)
    assert widget.token_card is None
    assert not coloured(prose(widget))


def test_a_click_on_a_link_follows_it_and_opens_no_token(window: MainWindow, qtbot: QtBot) -> None:
    widget = show(window, answer(one(0.9, "See "), one(0.9, "[here](https://example.org)"), one(0.9, " now")))
    view = prose(widget)
    view.anchorClicked.disconnect()
    followed: list[object] = []
    view.anchorClicked.connect(followed.append)
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at(view, 5))
    assert len(followed) == 1
    assert widget.token_card is None


# --- words ------------------------------------------------------------------------------------------------------------


def test_levels_begin_where_the_legend_says() -> None:
    for level, limit in enumerate(LEVELS, start=1):
        assert level_of(one(limit * 1.0001, "a")) == level - 1
        assert level_of(one(limit * 0.99, "a")) == level
    assert level_of(unknown(1, "a")[0]) == 0


def test_texts_can_be_read_on_every_colour() -> None:
    from kvdesk.ui.widgets.style.colours import DARK, LIGHT

    for theme in (DARK, LIGHT):
        for colour in colours_of(dark=theme.dark)[1:]:
            assert contrast(theme.text, colour) >= 4.5


def contrast(a: str, b: str) -> float:
    """WCAG 2: of two colours #rrggbb."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("p", "said"), [(1.0, "100 %"), (0.99987, "99.99 %"), (0.5, "50 %"), (0.1234, "12.3 %"), (0.00001234, "0.0012 %")]
)
def test_percents_tell_0_and_1_apart(p: float, said: str) -> None:
    assert percent(prob(1, p)) == said


def test_blanks_of_a_token_can_be_seen() -> None:
    assert [shown(prob(1, 0.5, text)) for text in (" a", "  ", "b \n", "\t")] == ["␣a", "␣␣", "b ↵", "⇥"]


def test_what_is_not_the_likeliest_and_what_was_not_kept_are_said() -> None:
    rare = replace(one(0.01, "x"), rank=1234)
    assert words(rare) == "“x”: 1 %, number 1,234 of the likeliest; surprise 6.6 bits"
    assert words(unknown(1, "x")[0]).startswith("Its probability is not known")
    assert exp(rare.chosen.logprob) == pytest.approx(0.01, rel=1e-6)


def test_a_dearer_price_is_said_with_its_time() -> None:
    dear = TurnPreview(ONE, 40, 9, 2400.0, "")
    assert price(dear) == "Another one costs 9 tokens: 40 of those before it can be reused, about 2.4 s."
    assert price(replace(dear, refused="The context is full.")) == "The context is full."
