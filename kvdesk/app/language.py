"""The language of the interface: finds the catalogue of the person's language and gives it to `kvdesk.translation`.

A catalogue is `resources/translations/kvdesk_<language>.qm`, made by `pyside6-lrelease` from a .ts file that
`pyside6-lupdate` fills; its one context is "". Qt's own texts (buttons of dialogs) come from Qt's catalogues.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from kvdesk import translation
from kvdesk.paths import resources_dir


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
    if not ours.load(locale, "kvdesk", "_", str(folder or resources_dir() / "translations")):
        translation.install(translation.english)
        return "en"
    qt = QTranslator(app)
    if qt.load(locale, "qtbase", "_", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        app.installTranslator(qt)
    app.installTranslator(ours)
    translation.install(_translated)
    return ours.language()


def _translated(text: str, n: int) -> str:
    return QCoreApplication.translate("", text, None, n)
