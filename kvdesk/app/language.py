"""The language of the window: finds the catalogue of the user's language and gives it to `kvdesk.translation`.

A catalogue is `resources/translations/kvdesk_<language>.mo`, made by `packaging/translations.py`. Qt's own texts
(buttons of dialogs) come from Qt's catalogues.
"""

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from kvdesk import translation
from kvdesk.paths import catalogues


def install_language(app: QCoreApplication, language: str, folder: Path | None = None) -> str:
    """Use `language` ("de", "zh_CN"; "system": what the system prefers) for texts made from now on.

    Returns the language of the catalogue in use, "en" if there is none for it. `folder`: of the catalogues.
    """
    locale = QLocale() if language == "system" else QLocale(language)
    for old in app.findChildren(QTranslator):
        app.removeTranslator(old)
        old.deleteLater()
    chosen = translation.use(locale.uiLanguages(), catalogues(folder))
    qt = QTranslator(app)
    if qt.load(f"qtbase_{chosen}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        app.installTranslator(qt)
    return chosen
