"""The style sheet: spacing in steps of 4 px, few borders, one accent. Filled in by `theme`."""

import re
from collections.abc import Sequence

from kvdesk.paths import resources_dir
from kvdesk.ui.widgets.style.colours import Colours
from kvdesk.viewmodel.palette import mix

_LENGTH = re.compile(r"(?<![\w#.-])(\d+)px")
_FONT = "font-size: "
_TICK = (resources_dir() / "icons" / "tick.svg").as_posix()
"""Drawn in `accent_text`, which is white in both themes: a style sheet cannot colour a file."""
_OPEN, _CHECKED = "<open>", "<checked>"
"""Half of a radio button with its border: Qt draws one square whose radius is larger, if only by rounding."""
_ARROW = (resources_dir() / "icons" / "chevron-grey.svg").as_posix()


def style_sheet(colours: Colours, base_px: int, small: int, mono_families: Sequence[str], scale: float = 1.0) -> str:
    """Qt style sheet of the whole application for one theme.

    base_px, small   size of the text, and of small text, in pixels
    scale            by which every other length grows; lines of one pixel stay
    """
    sheet = _sheet(colours, small, base_px + round(3 * scale), mono_families)

    def grown(length: re.Match[str]) -> str:
        n = int(length[1])
        is_font = sheet.startswith(_FONT, length.start() - len(_FONT))
        return length[0] if n <= 1 or is_font else f"{max(1, round(n * scale))}px"

    large = sheet if scale == 1.0 else _LENGTH.sub(grown, sheet)
    halves = {_OPEN: round(12 * scale) // 2 + 1, _CHECKED: round(4 * scale) + round(6 * scale) // 2}
    for name, px in halves.items():
        large = large.replace(name, f"{px}px")
    return large


def _sheet(colours: Colours, small: int, large: int, mono_families: Sequence[str]) -> str:
    c = colours
    mono = ", ".join(f'"{family}"' for family in mono_families)
    pressed = mix(c.hover, c.text, 0.08)
    accent_hover = mix(c.accent, "#ffffff" if c.dark else "#000000", 0.1)
    disabled = mix(c.secondary, c.panel, 0.4)
    handle = mix(c.line, c.secondary, 0.35)
    return f"""
QMainWindow, QDialog {{ background: {c.window}; }}
QDialogButtonBox {{ dialogbuttonbox-buttons-have-icons: 0; }}
QWidget[pane="panel"] {{ background: {c.panel}; }}
QWidget[pane="window"] {{ background: {c.window}; }}
QLabel {{ background: transparent; }}
QLabel[tone="secondary"] {{ color: {c.secondary}; }}
QLabel[tone="danger"] {{ color: {c.danger}; }}
QLabel[tone="warning"] {{ color: {c.warning}; }}
QLabel[tone="good"] {{ color: {c.good}; }}
QLabel[scale="small"] {{ font-size: {small}px; }}
QLabel[scale="large"] {{ font-size: {large}px; font-weight: 600; }}
QLabel[weight="strong"] {{ font-weight: 600; }}
QLabel[family="mono"], QPlainTextEdit[family="mono"] {{ font-family: {mono}; font-size: {small}px; }}

QPushButton {{ background: {c.raised}; border: 1px solid {c.line}; border-radius: 6px; padding: 4px 12px;
    min-height: 20px; color: {c.text}; }}
QPushButton, QToolButton {{ outline: none; }}
QPushButton:hover {{ background: {c.hover}; }}
QPushButton:pressed {{ background: {pressed}; }}
QPushButton:focus {{ border-color: {c.accent}; }}
QPushButton:disabled {{ color: {disabled}; }}
QPushButton[primary="true"] {{ background: {c.accent}; border-color: {c.accent}; color: {c.accent_text}; }}
QPushButton[primary="true"]:hover {{ background: {accent_hover}; }}
QPushButton[primary="true"]:focus {{ border-color: {c.text}; }}
QPushButton[primary="true"]:disabled {{ background: {c.raised}; border-color: {c.line}; color: {disabled}; }}
QPushButton[destructive="true"]:enabled {{ color: {c.danger}; }}
QPushButton[quiet="true"] {{ background: transparent; border-color: transparent; color: {c.secondary};
    padding: 4px 8px; text-align: left; }}
QPushButton[quiet="true"][changed="true"] {{ color: {c.text}; font-weight: 600; }}
QPushButton[quiet="true"]:hover {{ background: {c.hover}; color: {c.text}; }}
QPushButton[quiet="true"]:focus {{ border-color: {c.accent}; }}
QPushButton[chip="true"] {{ border-radius: 11px; text-align: left; }}
QPushButton[scale="small"] {{ font-size: {small}px; padding: 3px 8px; min-height: 16px; }}
QPushButton[scale="tiny"] {{ font-size: {small}px; padding: 0 8px; min-height: 16px; border-radius: 8px; }}
QPushButton[collapsible="true"] {{ padding: 4px 8px 4px 0; }}

QToolButton {{ background: transparent; border: 1px solid transparent; border-radius: 6px; padding: 4px; }}
QToolButton:hover {{ background: {c.hover}; }}
QToolButton:pressed, QToolButton:checked {{ background: {pressed}; }}
QToolButton:focus {{ border-color: {c.accent}; }}
QToolButton::menu-indicator {{ image: none; }}
QToolButton[send="true"] {{ background: {c.accent}; border-radius: 8px; padding: 4px; }}
QToolButton[send="true"]:hover {{ background: {accent_hover}; }}
QToolButton[send="true"]:focus {{ border-color: {c.text}; }}
QToolButton[send="true"]:disabled {{ background: {c.hover}; }}
QToolButton[link="true"] {{ font-size: {small}px; color: {c.secondary}; padding: 0 4px; border: none;
    text-decoration: underline; }}
QToolButton[link="true"]:hover {{ color: {c.text}; }}
QToolButton[link="true"]:focus {{ color: {c.accent}; }}
QToolButton[link="true"]:disabled {{ color: {c.line}; }}
QToolButton[tab="true"] {{ color: {c.secondary}; padding: 4px 8px; }}
QToolButton[tab="true"][scale="small"] {{ font-size: {small}px; padding: 2px 8px; min-height: 18px; }}
QToolButton[tab="true"]:checked {{ color: {c.text}; background: {c.hover}; }}

QLineEdit, QSpinBox, QDoubleSpinBox, QComboBox {{ background: {c.raised}; border: 1px solid {c.line};
    border-radius: 6px; padding: 4px 8px; min-height: 20px; color: {c.text};
    selection-background-color: {c.selection}; selection-color: {c.text}; }}
QLineEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus {{ border-color: {c.accent}; }}
QSpinBox[refused="true"], QDoubleSpinBox[refused="true"] {{ border-color: {c.danger}; }}
QLineEdit:disabled, QSpinBox:disabled, QDoubleSpinBox:disabled, QComboBox:disabled {{ background: {c.panel};
    color: {disabled}; }}
QSpinBox::up-button, QSpinBox::down-button, QDoubleSpinBox::up-button, QDoubleSpinBox::down-button {{ width: 0; }}
QAbstractSpinBox QLineEdit {{ background: transparent; border: none; padding: 0 4px; min-height: 0; }}
QSpinBox, QDoubleSpinBox {{ max-height: 20px; }}
QSpinBox[scale="small"] {{ font-size: {small}px; padding: 2px 4px; min-height: 18px; max-height: 18px; }}
QComboBox[scale="small"] {{ font-size: {small}px; padding: 2px 8px; min-height: 18px; }}
QComboBox::drop-down {{ border: none; width: 24px; }}
QComboBox::down-arrow {{ image: url("{_ARROW}"); width: 16px; height: 16px; }}
QComboBox {{ combobox-popup: 0; }}
QComboBox QAbstractItemView {{ background: {c.raised}; border: 1px solid {handle}; outline: none; padding: 4px;
    selection-background-color: {c.hover}; selection-color: {c.text}; }}
QComboBox QAbstractItemView::item {{ padding: 4px 8px; border-radius: 4px; min-height: 20px; }}
QComboBox QAbstractItemView::item:selected {{ background: {c.hover}; color: {c.text}; }}
QPlainTextEdit, QTextBrowser {{ background: transparent; border: none; color: {c.text};
    selection-background-color: {c.selection}; selection-color: {c.text}; }}
QAbstractScrollArea[boxed="true"] {{ background: {c.raised}; border: 1px solid {c.line}; border-radius: 6px;
    padding: 4px; color: {c.text}; selection-background-color: {c.selection}; selection-color: {c.text}; }}
QAbstractScrollArea[boxed="true"]:focus {{ border-color: {c.accent}; }}

QFrame[card="composer"] {{ background: {c.raised}; border: 1px solid {c.line}; border-radius: 12px; }}
QFrame[card="composer"][focused="true"] {{ border-color: {handle}; }}
QFrame[card="user"] {{ background: {mix(c.panel, c.hover, 0.5)}; border-radius: 10px; }}
QFrame[card="code"] {{ background: {c.panel}; border: 1px solid {c.line}; border-radius: 8px; }}
QFrame[card="banner"] {{ background: {mix(c.panel, c.danger, 0.1)}; border-radius: 8px; }}
QFrame[card="queue"] {{ background: {c.raised}; border-radius: 8px; }}
QFrame[card="effect"] {{ background: {c.raised}; border-radius: 8px; }}
QFrame[card="history"] {{ background: {c.warning}; border-radius: 6px; }}
QFrame[card="history"] QLabel {{ color: {c.window}; font-weight: 600; }}
QFrame[card="notice"] {{ background: {c.raised}; border: 1px solid {handle}; border-radius: 8px; }}
QFrame[card="ask"] {{ background: {c.raised}; border: 1px solid {c.line}; border-radius: 8px; }}
QPushButton[card="starter"] {{ background: {c.raised}; border: 1px solid {c.line}; border-radius: 10px;
    padding: 0; }}
QPushButton[card="starter"]:hover {{ background: {c.hover}; }}
QPushButton[card="starter"]:focus {{ border-color: {c.accent}; }}
QFrame[card="palette"] {{ background: {c.raised}; border: 1px solid {handle}; border-radius: 10px; }}
QFrame[rule="true"] {{ background: {c.line}; border: none; }}

QListView, QTableView, QTreeView {{ background: transparent; border: none; outline: none; }}
QTreeView::item {{ padding: 2px 0; }}
QTreeView::item:selected {{ background: {c.selection}; color: {c.text}; }}
QTableView {{ selection-background-color: transparent; }}
QTableView::item, QTableView::item:selected {{ background: transparent; border: none; }}
QTableView#models::item {{ padding: 0 8px; }}
QTableView#rows::item {{ padding: 0 4px; }}
QTableView#rows QHeaderView::section {{ padding-left: 7px; padding-right: 7px; }}
QTreeView#models::item {{ padding: 4px 8px; }}
QTreeView#models QHeaderView::section,
QTableView#models QHeaderView::section {{ padding-left: 11px; padding-right: 11px; }}
QTableView#models::item:selected, QTableView#rows::item:selected,
QTableView#grid::item:selected {{ background: {c.selection}; }}
QHeaderView {{ background: transparent; border: none; }}
QHeaderView::section {{ background: transparent; color: {c.secondary}; border: none;
    border-bottom: 1px solid {c.line}; padding: 2px 3px; font-size: {small}px; }}
QListWidget::item {{ border-radius: 6px; }}
QListWidget#sections::item {{ padding: 5px 8px; }}
QListWidget#sections::item:selected:focus {{ background: {c.selection}; }}
QListWidget::item:hover {{ background: {mix(c.panel, c.hover, 0.5)}; }}
QListWidget::item:selected {{ background: {c.hover}; color: {c.text}; }}
QScrollArea {{ background: transparent; border: none; }}
QScrollArea > QWidget > QWidget#column {{ background: transparent; }}
QScrollBar:vertical {{ background: transparent; width: 12px; margin: 0; }}
QScrollBar:horizontal {{ background: transparent; height: 12px; margin: 0; }}
QScrollBar::handle {{ background: {c.line}; border-radius: 3px; margin: 3px; min-height: 24px; min-width: 24px; }}
QScrollBar::handle:hover {{ background: {handle}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}

QFileDialog QSplitter::handle {{ background: transparent; width: 8px; }}
QFileDialog QTreeView {{ background: {c.raised}; border: 1px solid {c.line}; border-radius: 6px; padding: 4px; }}
QFileDialog QTreeView::item {{ padding: 4px 0; }}
QFileDialog QListView {{ border: none; padding: 4px 0; }}
QFileDialog QListView::item {{ padding: 4px; border-radius: 4px; }}
QFileDialog QListView::item:selected {{ background: {c.hover}; color: {c.text}; }}
QSplitter::handle {{ background: {c.line}; }}
QSplitter::handle:hover {{ background: {c.accent}; }}
QProgressBar {{ background: {c.line}; border: none; }}
QProgressBar::chunk {{ background: {c.accent}; }}
QCheckBox, QRadioButton {{ spacing: 8px; outline: none; }}
QCheckBox[bare="true"] {{ spacing: 0; }}
QRadioButton[scale="small"] {{ font-size: {small}px; }}
QCheckBox::indicator {{ width: 12px; height: 12px; border-radius: 3px; border: 1px solid {handle};
    background: {c.raised}; }}
QCheckBox::indicator:checked {{ border-color: {c.accent}; background: {c.accent}; image: url("{_TICK}"); }}
QCheckBox:disabled, QRadioButton:disabled {{ color: {disabled}; }}
QCheckBox::indicator:disabled, QRadioButton::indicator:disabled {{ border-color: {c.line}; background: {c.panel}; }}
QCheckBox::indicator:checked:disabled {{ border-color: {handle}; background: {disabled}; }}
QCheckBox::indicator:focus {{ border-color: {c.text}; }}
QRadioButton::indicator {{ width: 12px; height: 12px; border-radius: {_OPEN}; border: 1px solid {handle};
    background: {c.raised}; }}
QRadioButton::indicator:checked {{ border: 4px solid {c.accent}; border-radius: {_CHECKED}; width: 6px; height: 6px;
    background: {c.accent_text}; }}
QRadioButton::indicator:checked:disabled {{ border-color: {disabled}; background: {c.panel}; }}
QRadioButton::indicator:focus {{ border-color: {c.text}; }}
QToolTip {{ background: {c.raised}; color: {c.text}; border: 1px solid {handle}; border-radius: 6px; padding: 1px 2px;
    font-size: {small}px; }}
QMenu {{ background: {c.raised}; border: 1px solid {c.line}; border-radius: 8px; padding: 4px; }}
QMenu::item {{ padding: 4px 24px 4px 12px; border-radius: 4px; }}
QMenu::item:selected {{ background: {c.hover}; }}
QMenu::item:disabled {{ color: {disabled}; }}
QMenu::separator {{ height: 1px; background: {c.line}; margin: 4px 8px; }}
"""
