"""The encodings of text files: those a user may choose, and the one that a computer's settings name."""

import locale
import os
import sys
from typing import Final

UTF_8: Final = "UTF-8"
CODECS: Final = {
    UTF_8: "utf-8",
    "UTF-16": "utf-16-le",
    "UTF-16 BE": "utf-16-be",
    "UTF-32": "utf-32-le",
    "UTF-32 BE": "utf-32-be",
    "Windows-1252": "cp1252",
    "Windows-1250": "cp1250",
    "Windows-1251": "cp1251",
    "Windows-1253": "cp1253",
    "Windows-1254": "cp1254",
    "Windows-1255": "cp1255",
    "Windows-1256": "cp1256",
    "Windows-1257": "cp1257",
    "Windows-1258": "cp1258",
    "Windows-874": "cp874",
    "GB18030": "gb18030",
    "Big5": "cp950",
    "Shift JIS": "cp932",
    "EUC-JP": "euc_jp",
    "ISO-2022-JP": "iso2022_jp",
    "EUC-KR": "cp949",
    "KOI8-R": "koi8_r",
    "KOI8-U": "koi8_u",
    "ISO 8859-2": "iso8859_2",
    "ISO 8859-5": "iso8859_5",
    "ISO 8859-7": "iso8859_7",
    "ISO 8859-15": "iso8859_15",
    "IBM 437": "cp437",
    "IBM 850": "cp850",
    "IBM 866": "cp866",
    "Mac Roman": "mac_roman",
}
"""Name for a user, and codec of Python."""

_BY_LANGUAGE: Final = {
    **dict.fromkeys(
        ("de", "en", "fr", "es", "pt", "it", "nl", "sv", "da", "nb", "nn", "no", "fi", "is"), "Windows-1252"
    ),
    **dict.fromkeys(("cs", "sk", "pl", "hu", "ro", "hr", "sl", "sq"), "Windows-1250"),
    **dict.fromkeys(("ru", "uk", "be", "bg", "mk", "sr"), "Windows-1251"),
    **dict.fromkeys(("lt", "lv", "et"), "Windows-1257"),
    **dict.fromkeys(("fa", "ar", "ur"), "Windows-1256"),
    "el": "Windows-1253",
    "tr": "Windows-1254",
    "he": "Windows-1255",
    "vi": "Windows-1258",
    "th": "Windows-874",
    "zh": "GB18030",
    "ja": "Shift JIS",
    "ko": "EUC-KR",
}
_TRADITIONAL: Final = ("zh_tw", "zh_hk", "zh_mo", "zh_hant")


def name_of(codec: str) -> str:
    """The name of the encoding that has this codec; "" if there is none."""
    import codecs

    try:
        normal = codecs.lookup(codec).name
    except LookupError:
        return ""
    same = {"gbk": "gb18030", "gb2312": "gb18030", "big5": "cp950", "shift_jis": "cp932", "euc_kr": "cp949"}
    same |= {"iso8859-1": "cp1252"}
    normal = codecs.lookup(same.get(normal, normal)).name
    return next((name for name, own in CODECS.items() if codecs.lookup(own).name == normal), "")


def system_encoding() -> str:
    """The name of the code page of this computer, or the usual one of its language; "" if none is known.

    On systems whose code page is UTF-8, the language says in which one older files are.
    """
    if sys.platform == "win32":
        import ctypes

        found = name_of(f"cp{ctypes.windll.kernel32.GetACP()}")
    else:
        found = name_of(locale.getencoding())
    if found and found != UTF_8:
        return found
    language = next(filter(None, (os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))), "").lower()
    if language.startswith(_TRADITIONAL):
        return "Big5"
    return _BY_LANGUAGE.get(language.partition(".")[0].partition("_")[0], "")
