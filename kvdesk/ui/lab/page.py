"""The page of the laboratory: questions at the left, settings and past results in the middle, the run at the right."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QListWidget, QListWidgetItem, QSplitter, QStackedWidget, QWidget

from kvdesk.protocol.experiment import Request
from kvdesk.translation import tr
from kvdesk.ui.lab.past_list import PastList
from kvdesk.ui.lab.result_view import ResultView
from kvdesk.ui.lab.run_view import RunView
from kvdesk.ui.lab.setup import Setup
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.banner import Banner
from kvdesk.ui.widgets.controls import IconButton, Rule, label, on_ground
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.lab import PastResult, Question

QUESTIONS_PX: Final = 264
QUESTIONS_LEAST_PX: Final = 168
SETUP_PX: Final = 296
RESULT_PX: Final = 480  # the questions leave it to the result, unless someone moves a border


class LabPage(QWidget):
    """Passive: shows what its methods get."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        theme, self._commands = kit.theme, kit.commands
        on_ground(self, "panel")
        self._questions: tuple[Question, ...] = ()
        self._running: Request | None = None
        self._theme = theme
        self.setup = Setup(theme, self._commands)
        self.past = PastList(theme, self._commands)
        self.run = RunView(theme)
        self.result = ResultView(theme, self._commands)
        self.banner = Banner(theme)
        self.list = _QuestionList(theme)
        self.list.currentRowChanged.connect(self._on_question)
        self._title = label("", scale="large", wrap=True)
        self._question, self._supposed = _wrapped(""), _wrapped("secondary")
        self._stack = QStackedWidget()
        self._stack.addWidget(self.result)
        self._stack.addWidget(self.run)
        self.past.chosen.connect(self._on_chosen)
        name, tip, leave = tr("Back to the chats"), tr("Back to the chats (Ctrl+Shift+L)"), kit.act("chat.write")
        back = IconButton(theme, "chevron-left", name, tip, clicked=leave)
        split = self._split = QSplitter(Qt.Orientation.Horizontal, handleWidth=1, childrenCollapsible=False)
        self._left, self._middle = self._make_left(back), self._make_middle()
        for part in (self._left, self._middle, self._make_right()):
            split.addWidget(part)
        split.setStretchFactor(2, 1)
        self._is_moved = False
        split.splitterMoved.connect(lambda: setattr(self, "_is_moved", True))
        theme.follow(self._fit)
        boxes.column(split, on=self, margins=0)

    def _fit(self) -> None:
        self._left.setMinimumWidth(self._theme.px(QUESTIONS_LEAST_PX))
        self._middle.setMinimumWidth(self._theme.px(SETUP_PX))
        self._share()

    def _share(self) -> None:
        """Give the columns their widths, if nobody has."""
        if not self._is_moved:
            least, most, middle, right = map(self._theme.px, (QUESTIONS_LEAST_PX, QUESTIONS_PX, SETUP_PX, RESULT_PX))
            left = min(max(self.width() - middle - right, least), most)
            self._split.setSizes([left, middle, max(0, self.width() - left - middle)])

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share()

    @property
    def question(self) -> Question | None:
        """The one that is chosen."""
        row = self.list.currentRow()
        return self._questions[row] if 0 <= row < len(self._questions) else None

    def show_questions(self, questions: Sequence[Question]) -> None:
        """All there are, the first one chosen."""
        self._questions = tuple(questions)
        self.list.show_questions(questions)
        self.list.setCurrentRow(0)

    def choose(self, experiment_id: str) -> None:
        self.list.setCurrentRow([question.id for question in self._questions].index(experiment_id))

    def show_results(self, experiment_id: str, results: Sequence[PastResult], selected: Path | None = None) -> None:
        """Past results of an experiment, the newest first; ignored where another one is chosen by now."""
        if self.question is not None and self.question.id == experiment_id:
            self.past.show_results(results, selected, self.question.parameters)

    def begin(self, request: Request) -> None:
        """The experiment runs from now on."""
        self._running = request
        self.banner.hide()
        self.run.begin(next((q.stages for q in self._questions if q.id == request.experiment_id), ()))
        self._show_running()

    def end(self, sentence: str = "", detail: str = "") -> None:
        """It runs no more; why, in a sentence, where it came to no result. Below another question with its title."""
        title, here = self._running_title, self._runs_here
        self._running = None
        self.run.end()
        if sentence:
            self.banner.show_error(sentence if here or not title else f"{title}: {sentence}", detail)
        self._show_running()

    def _on_question(self) -> None:
        question = self.question
        if question is None:
            return
        self.banner.hide()  # it is about another one
        self._title.setText(question.title)
        self._question.setText(question.question)
        self._supposed.setText(tr("Supposed: {supposed}").format(supposed=question.supposed))
        self.setup.show_question(question)
        self._show_running()
        self.result.show_words("")
        self._commands.lab.ask_results(question.id)

    def _on_chosen(self, picked: tuple[PastResult, ...]) -> None:
        parameters = self.question.parameters if self.question is not None else ()
        if len(picked) == 2:
            self.result.show_both(*picked, parameters)
        elif picked:
            self.result.show_result(picked[0], parameters)
        else:
            self.result.show_words(
                tr(
                    "The answer appears here: one sentence, then its figures, plots and tables. Run measures it on the "
                    "chosen model and keeps a report with all samples."
                )
            )
        if picked and not self._runs_here:
            self._stack.setCurrentWidget(self.result)

    @property
    def _runs_here(self) -> bool:
        question = self.question
        return self._running is not None and question is not None and question.id == self._running.experiment_id

    @property
    def _running_title(self) -> str:
        running = self._running
        return next((q.title for q in self._questions if running and q.id == running.experiment_id), "")

    def _show_running(self) -> None:
        running = self._running
        self.setup.show_running(self._running_title, here=self._runs_here)
        self._stack.setCurrentWidget(self.run if self._runs_here else self.result)
        for row, question in enumerate(self._questions):
            runs = running is not None and question.id == running.experiment_id
            entry = self.list.itemWidget(self.list.item(row))
            if isinstance(entry, _Entry):
                entry.show_running(runs)

    def _make_left(self, back: QWidget) -> QWidget:
        head = boxes.row(back, (label(tr("Lab"), scale="large"), 1), margins=(4, 0, 0, 0), spacing=8)
        part = QWidget()
        boxes.column(head, (self.list, 1), on=part, margins=(8, 10, 0, 8), spacing=8)
        return part

    def _make_middle(self) -> QWidget:
        inside = QWidget()
        parts = self.setup, Rule(), self.past, boxes.Stretch(1)
        boxes.column(*parts, on=inside, margins=(0, 0, 12, 0), spacing=16)
        top = ScrollColumn(inside, tr("Parameters"))
        top.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        part = QWidget()
        boxes.column(top, on=part, margins=(16, 16, 4, 16))
        return part

    def _make_right(self) -> QWidget:
        part = QWidget()
        boxes.column(
            self._title,
            self._question,
            self._supposed,
            self.banner,
            (self._stack, 1),
            on=part,
            margins=(24, 14, 24, 12),  # a window 600 px high has no more room
            spacing=8,
        )
        part.setMinimumWidth(320)
        return part


class _QuestionList(QListWidget):
    """Every question, as high as its words need in the width there is."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setAccessibleName(tr("Questions"))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)  # words must not wrap again for it
        self.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        theme.changed.connect(self._fit)

    def show_questions(self, questions: Sequence[Question]) -> None:
        self.clear()
        for question in questions:
            item = QListWidgetItem()
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{question.title}: {question.question}")
            self.addItem(item)
            self.setItemWidget(item, _Entry(question))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        width = self.viewport().width()
        for row in range(self.count()):
            item = self.item(row)
            entry = self.itemWidget(item)
            if entry is not None:
                item.setSizeHint(QSize(width, entry.heightForWidth(width) + 4))


class _Entry(QWidget):
    """A question in the list: its title and itself, on two lines."""

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._running = label(tr("running"), tone="good", scale="small")
        self._running.hide()
        top = boxes.row((label(question.title, wrap=True), 1), self._running, spacing=8)
        text = _wrapped("secondary")
        text.setText(question.question)
        boxes.column(top, text, boxes.Stretch(), on=self, margins=(8, 6, 8, 6), spacing=2)

    def show_running(self, running: bool) -> None:
        self._running.setVisible(running)


def _wrapped(tone: str) -> QLabel:
    return label("", tone=tone, scale="small" if tone else "", wrap=True)
