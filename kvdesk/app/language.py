"""The language of the interface: finds the catalogue of the person's language and gives it to `kvdesk.translation`.

A catalogue is `resources/translations/kvdesk_<language>.qm`, made by `packaging/translations.py`; its one context is
"". Qt's own texts (buttons of dialogs) come from Qt's catalogues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from kvdesk import translation
from kvdesk.paths import catalogues


def install_language(app: QCoreApplication, language: str, folder: Path | None = None) -> str:
    """Use `language` ("de", "zh_CN"; "system": what the system prefers) for texts made from now on.

    Returns the language of the catalogue in use, "en" where there is none for it. `folder`: of the catalogues.
    """
    locale = QLocale() if language == "system" else QLocale(language)
    ours = QTranslator(app)
    for old in app.findChildren(QTranslator):
        app.removeTranslator(old)
        if old is not ours:
            old.deleteLater()
    there = catalogues(folder)
    chosen = best(locale.uiLanguages(), there)
    if not chosen or not ours.load(str(there[chosen])):
        translation.install(translation.english)
        return "en"
    qt = QTranslator(app)
    if qt.load(f"qtbase_{chosen}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        app.installTranslator(qt)
    app.installTranslator(ours)
    translation.install(_translated)
    return chosen


def best(wanted: Iterable[str], there: Mapping[str, Path]) -> str:
    """The catalogue for languages a person prefers, the best first; "" for English, which needs none.

    Qt's own search would pass over English, as it has no catalogue, and take what comes after it.
    """
    for name in wanted:
        if name.split("-")[0] == "en":
            break
        if (found := name.replace("-", "_")) in there:
            return found
    return ""


def _translated(text: str, n: int) -> str:
    return QCoreApplication.translate("", text, None, n)
