"""Models to download: those that are recommended, or what a search of the hub found; and the downloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QLineEdit, QToolTip, QTreeWidget, QTreeWidgetItem, QWidget

from kvdesk.library.hub import Repo
from kvdesk.session import Commands
from kvdesk.translation import plural, tr
from kvdesk.ui.models.download_rows import DownloadRows
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.banner import Banner
from kvdesk.ui.widgets.controls import label, plain_tip, push_button
from kvdesk.ui.widgets.search_field import SearchField
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.downloads import Offer, cells_of, columns, repo_remark
from kvdesk.viewmodel.models import Machine

_WIDTHS: Final = (240, 80, 80, 80, 100, 200)
"""Of the columns in pixels at 100 %, at least; the first takes a fifth of what room is left, the last one the rest."""
_NUMBERS: Final = (2, 4)
_TYPE: Final = 1
_TEXTS: Final = (0, 5)  # which may have too little room
_ROOMY_PX: Final = 300
_PADDING_PX: Final = 16  # of a cell, both sides
_HEADER_PX: Final = 24  # beside the caption of a column
_ROLE: Final = Qt.ItemDataRole.UserRole


class GetModels(QWidget):
    """Passive: shows what its methods get."""

    def __init__(self, theme: Theme, commands: Commands) -> None:
        super().__init__()
        self._theme, self._commands = theme, commands
        self._machine: Machine | None = None
        self._recommended: tuple[Offer, ...] = ()
        self._searched = ""
        self.banner = Banner(theme)
        self.search = SearchField(tr("Search the model hub"), tr("Search Hugging Face: words, or owner/name"))
        self.search.returnPressed.connect(self._on_search)
        self.search.textChanged.connect(self._on_text)
        find = push_button(tr("Search"), clicked=self._on_search)
        self._access_button = push_button(
            tr("Access…"), quiet=True, tip=tr("Address of the hub or of a mirror, and your token")
        )
        self._access_button.setCheckable(True)
        self._access_button.toggled.connect(self._on_access_toggled)
        self.tree = self._make_tree()
        self._said = label("", tone="secondary", scale="small", wrap=True)
        self.download = push_button(tr("Download"), primary=True, clicked=self._on_download)
        self.downloads = DownloadRows(theme, commands)
        head = boxes.row((self.search, 1), find, self._access_button, spacing=8)
        foot = boxes.row((self._said, 1), self.download, spacing=8)
        boxes.column(
            head, self._make_access(), self.banner, (self.tree, 1), foot, self.downloads, on=self, margins=0, spacing=8
        )
        self._show_choice()
        theme.changed.connect(self._show_all_cells)

    @property
    def chosen(self) -> Offer | None:
        item = self.tree.currentItem()
        value = item.data(0, _ROLE) if item is not None else None
        return value if isinstance(value, Offer) else None

    def show_recommended(self, offers: tuple[Offer, ...]) -> None:
        """What is there without a search."""
        self._recommended = offers
        self._fill(tr("Good models to begin with"), offers)
        self._said.setText(tr("Sizes are those of November 2026; the hub is asked before a download."))

    def show_machine(self, machine: Machine) -> None:
        """Whether models fit and how fast they are can be said now."""
        self._machine = machine
        self._show_all_cells()

    def show_access(self, endpoint: str, *, has_token: bool) -> None:
        """What is set now. A token is never shown."""
        self._endpoint.setText(endpoint)
        self._token.setPlaceholderText(tr("A token is kept") if has_token else tr("Token, for models with terms"))
        self.forget.setEnabled(has_token)

    def show_waiting(self) -> None:
        """The hub is asked."""
        self.banner.hide()
        self._said.setText(tr("Asking the hub…"))

    def show_found(self) -> None:
        """What was asked for is in the list of downloads now."""
        self._said.setText("")

    def choose(self, offer: Offer) -> None:
        """Make it the current one where it is listed."""
        for item in self._items():
            if item.data(0, _ROLE) == offer:
                self.tree.setCurrentItem(item)

    def show_problem(self, sentence: str, again: Callable[[], object] | None = None) -> None:
        """The hub was asked in vain. What the list had stays. `again`: asks once more."""
        self._said.setText("")
        self.banner.show_error(sentence)
        if again is not None:
            self.banner.offer((tr("Try again"), tr("Ask the hub again"), again))

    def show_repos(self, repos: Sequence[Repo]) -> None:
        """What a search found: their files are asked for when they are unfolded."""
        self.tree.clear()
        for repo in repos:
            item = QTreeWidgetItem(self.tree, [repo.name])
            item.setData(0, _ROLE, repo.name)
            item.setText(5, repo_remark(repo))
            item.setToolTip(5, plain_tip(item.text(5)))
            item.setChildIndicatorPolicy(QTreeWidgetItem.ChildIndicatorPolicy.ShowIndicator)
        n = len(repos)
        some = plural("1 repository; unfold it to see its files", "%n repositories; unfold one to see its files", n)
        self._said.setText(some if n else tr("Nothing with GGUF files has this name."))
        if (first := self.tree.topLevelItem(0)) is not None:
            self.tree.setCurrentItem(first)
            if self.search.text().strip() == self._searched:  # else somebody types meanwhile
                self.tree.setFocus()

    def show_files(self, repo: str, offers: tuple[Offer, ...]) -> None:
        """Below the repository where it is listed, else alone."""
        item = next((item for item in self._items() if item.data(0, _ROLE) == repo), None)
        if item is None:
            self._fill(repo, offers)
        else:
            item.takeChildren()
            self._add(item, offers)
            item.setExpanded(True)
        n = len(offers)
        some = plural("1 model in {repo}", "%n models in {repo}", n)
        said = some if offers else tr("{repo} has no GGUF files.")
        self._said.setText(said.format(repo=repo))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._commands.hub.fill()

    # --- making -------------------------------------------------------------------------------------------------------

    def _make_tree(self) -> _OfferTree:
        tree = _OfferTree(self._theme)
        tree.setObjectName("models")
        tree.setAccessibleName(tr("Models to download"))
        tree.setColumnCount(len(columns()))
        header = tree.headerItem()
        for n, (caption, tip) in enumerate(columns()):
            header.setText(n, caption)
            header.setToolTip(n, tip)
            if n in _NUMBERS:
                header.setTextAlignment(n, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        tree.setUniformRowHeights(True)
        tree.setWordWrap(False)
        tree.currentItemChanged.connect(self._show_choice)
        tree.itemExpanded.connect(self._on_expanded)
        tree.itemActivated.connect(self._on_activated)
        return tree

    def _make_access(self) -> QWidget:
        self._endpoint, self._token = QLineEdit(), QLineEdit()
        self._endpoint.setPlaceholderText("https://huggingface.co")
        self._endpoint.setAccessibleName(tr("Address of the model hub"))
        self._token.setAccessibleName(tr("Token for the model hub"))
        self._token.setEchoMode(QLineEdit.EchoMode.Password)
        keep = push_button(tr("Keep"), clicked=self._on_keep)
        self.forget = push_button(tr("Forget the token"), clicked=self._on_forget)
        for field in (self._endpoint, self._token):
            field.returnPressed.connect(self._on_keep)
        self._access = QWidget()
        boxes.row((self._endpoint, 1), (self._token, 1), keep, self.forget, on=self._access, margins=0, spacing=8)
        self._access.hide()
        return self._access

    def _fill(self, title: str, offers: tuple[Offer, ...]) -> None:
        self.tree.clear()
        top = QTreeWidgetItem(self.tree, [title])
        self._add(top, offers)
        top.setExpanded(True)
        if (first := top.child(0)) is not None:
            self.tree.setCurrentItem(first)

    def _add(self, parent: QTreeWidgetItem, offers: tuple[Offer, ...]) -> None:
        for offer in offers:
            item = QTreeWidgetItem(parent)
            item.setData(0, _ROLE, offer)
            self._show_cells(item, offer)

    def _show_all_cells(self) -> None:
        for item in self._items():
            offer = item.data(0, _ROLE)
            if isinstance(offer, Offer):
                self._show_cells(item, offer)

    def _show_cells(self, item: QTreeWidgetItem, offer: Offer) -> None:
        for n, cell in enumerate(cells_of(offer, self._machine)):
            item.setText(n, cell.text)
            item.setToolTip(n, plain_tip(cell.tip or cell.text))
            if n in _NUMBERS:
                item.setTextAlignment(n, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            if n == 5:
                item.setForeground(n, QColor(self._theme.colours.secondary))

    def _items(self) -> list[QTreeWidgetItem]:
        tops = [self.tree.topLevelItem(n) for n in range(self.tree.topLevelItemCount())]
        items = [item for top in tops if top for item in (top, *(top.child(n) for n in range(top.childCount())))]
        return [item for item in items if item is not None]

    # --- what a person does -------------------------------------------------------------------------------------------

    def _on_search(self) -> None:
        if words := self.search.text().strip():
            self._searched = words
            self._commands.hub.search(words)

    def _on_text(self, text: str) -> None:
        if not text and self._recommended:
            self._commands.hub.search("")
            self.banner.hide()
            self.show_recommended(self._recommended)

    def _on_expanded(self, item: QTreeWidgetItem) -> None:
        repo = item.data(0, _ROLE)
        if isinstance(repo, str) and not item.childCount():
            self._commands.hub.list_files(repo)

    def _on_activated(self, item: QTreeWidgetItem) -> None:
        if isinstance(item.data(0, _ROLE), Offer):
            self._on_download()

    def _on_download(self) -> None:
        if (offer := self.chosen) is not None:
            self.banner.hide()
            self._commands.hub.get(offer)

    def _on_access_toggled(self, shown: bool) -> None:
        self._access.setVisible(shown)
        if shown:
            self._endpoint.setFocus()

    def _on_keep(self) -> None:
        token = self._token.text().strip()
        self._token.clear()
        self._access_button.setChecked(False)
        self._commands.hub.set_access(self._endpoint.text().strip(), token or None)

    def _on_forget(self) -> None:
        self._token.clear()
        self._commands.hub.set_access(self._endpoint.text().strip(), "")

    def _show_choice(self) -> None:
        self.download.setEnabled(self.chosen is not None)


class _OfferTree(QTreeWidget):
    """Columns grow with the text; what has no room is scrolled to. A narrow one leaves out the type, which is part of
    the name. The row that one is at by key shows what is cut in it.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setHorizontalScrollMode(QTreeWidget.ScrollMode.ScrollPerPixel)
        self.header().setStretchLastSection(False)  # it would be cut where the others leave no room
        theme.changed.connect(self._fit_columns)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_columns()

    def _fit_columns(self) -> None:
        small = QFontMetrics(self._theme.small)
        widths = [
            max(self._theme.px(width), small.horizontalAdvance(caption) + self._theme.px(_HEADER_PX))
            for width, (caption, _tip) in zip(_WIDTHS, columns(), strict=True)
        ]
        spare = self.viewport().width() - sum(widths)
        is_narrow = spare < self._theme.px(_ROOMY_PX)
        self.setColumnHidden(_TYPE, is_narrow)
        spare = max(0, spare + widths[_TYPE] if is_narrow else spare)
        widths[0] += spare // 5
        widths[-1] += spare - spare // 5
        for n, width in enumerate(widths):
            self.setColumnWidth(n, width)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        super().keyPressEvent(event)
        if (item := self.currentItem()) is not None:
            self._show_cut(item)

    def _show_cut(self, item: QTreeWidgetItem) -> None:
        metrics, padding = self.fontMetrics(), self._theme.px(_PADDING_PX)
        rooms = {item.text(n): self.visualRect(self.indexFromItem(item, n)).width() - padding for n in _TEXTS}
        cut = [text for text, room in rooms.items() if metrics.horizontalAdvance(text) > room]
        at = self.viewport().mapToGlobal(self.visualItemRect(item).bottomLeft())
        QToolTip.showText(at, plain_tip("\n".join(cut)), self)
