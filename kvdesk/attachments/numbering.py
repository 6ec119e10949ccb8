"""The numbers of a DOCX file's lists: what `numbering.xml` and the styles say, counted paragraph by paragraph."""

import re
from typing import Final

from kvdesk.attachments.xml_parts import Element
from kvdesk.values import dataclass, field

_LEVELS: Final = 9
_LARGEST: Final = 1 << 31
_BULLETS: Final = {"o": "◦", "§": "▪", "Ø": "➢", "ü": "✓", "v": "❖", "q": "❑"}
"""Letters that are bullets in the fonts Courier New and Wingdings."""
_ROMAN: Final = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_CHINESE: Final = "〇一二三四五六七八九"
_ALPHABETS: Final = {
    "lowerLetter": "abcdefghijklmnopqrstuvwxyz",
    "upperLetter": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "russianLower": "абвгдежзиклмнопрстуфхцчшщыэюя",
    "russianUpper": "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЫЭЮЯ",
}
_CYCLES: Final = {
    "ideographTraditional": "甲乙丙丁戊己庚辛壬癸",
    "ideographZodiac": "子丑寅卯辰巳午未申酉戌亥",
    "aiueo": "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン",
    "aiueoFullWidth": "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン",
    "iroha": "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセスン",
    "ganada": "가나다라마바사아자차카타파하",
    "chosung": "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ",
    "decimalEnclosedCircle": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳",
    "decimalEnclosedCircleChinese": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳",
    "decimalEnclosedParen": "⑴⑵⑶⑷⑸⑹⑺⑻⑼⑽⑾⑿⒀⒁⒂⒃⒄⒅⒆⒇",
    "decimalEnclosedFullstop": "⒈⒉⒊⒋⒌⒍⒎⒏⒐⒑⒒⒓⒔⒕⒖⒗⒘⒙⒚⒛",
}
_CHINESE_KINDS: Final = frozenset((
    *("chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCounting", "koreanCounting"),
    *("taiwaneseCountingThousand", "ideographDigital", "japaneseDigitalTenThousand", "taiwaneseDigital"),
))  # fmt: skip


@dataclass(slots=True)
class _Level:
    """`restart`: the level (from 1) whose use restarts this one; 0 none; None any higher one. `text` None: not said."""

    start: int = 1
    kind: str = "decimal"
    text: str | None = None
    restart: int | None = None
    is_legal: bool = False
    style: str = ""


@dataclass(slots=True)
class _List:
    """One abstract numbering; all lists that are made from it count on together."""

    levels: dict[int, _Level] = field(default_factory=dict)
    style_link: str = ""
    own_style: str = ""
    counts: list[int | None] = field(default_factory=lambda: [None] * _LEVELS)


@dataclass(slots=True)
class _Number:
    """A list in the document: its abstract numbering, and what it has otherwise. `starts` count from its first use."""

    abstract: str
    levels: dict[int, _Level] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    was_used: bool = False


@dataclass(frozen=True, slots=True)
class _Style:
    based_on: str
    number: str | None
    level: int | None


class Numbering:
    """Asked once for each paragraph, in their order."""

    def __init__(self, numbering: Element, styles: Element) -> None:
        self._lists: dict[str, _List] = {}
        self._numbers: dict[str, _Number] = {}
        self._styles: dict[str, _Style] = {}
        self._default_style = ""
        for element in styles.children:
            if element.name == "style":
                self._read_style(element)
        for element in numbering.children:
            if element.name == "abstractNum":
                self._lists[element.attribute("abstractNumId")] = _read_list(element)
            elif element.name == "num":
                self._numbers[element.attribute("numId")] = _read_number(element)

    def mark(self, properties: Element) -> tuple[int, str] | None:
        """Level (from 0) and mark of a paragraph with these properties; None if it is in no list."""
        own, style = properties.child("numPr"), properties.value("pStyle")
        name: str | None = own.value("numId")
        level = _level_in(own)
        if not name:
            name, by_style = self._of_style(style or self._default_style)
            level = by_style if level is None else level
        number = self._numbers.get(name or "")
        if number is None:  # also for list 0, which takes a paragraph out of the list of its style
            return None
        found = self._list_of(number.abstract)
        if found is None:
            return None
        if level is None:
            level = next((at for at, one in found.levels.items() if style and one.style == style), 0)
        return level, self._counted(number, found, level)

    def _counted(self, number: _Number, found: _List, level: int) -> str:
        if not number.was_used:
            number.was_used = True
            for at, start in number.starts.items():
                found.counts[at] = start - 1
        own = _level_of(number, found, level)
        count = found.counts[level]
        found.counts[level] = own.start if count is None else min(count + 1, _LARGEST)
        for deeper in range(level + 1, _LEVELS):
            restart = _level_of(number, found, deeper).restart
            if restart is None or level + 1 <= restart:
                found.counts[deeper] = None
        return _text_of(number, found, level)

    def _of_style(self, name: str) -> tuple[str | None, int | None]:
        """List and level that a style says, or one that it is based on."""
        seen = set[str]()
        level: int | None = None
        while name in self._styles and name not in seen:
            seen.add(name)
            style = self._styles[name]
            level = style.level if level is None else level
            if style.number is not None:
                if level is None:
                    level = self._level_with(style.number, seen)
                return style.number, level
            name = style.based_on
        return None, None

    def _level_with(self, number: str, styles: set[str]) -> int | None:
        known = self._numbers.get(number)
        found = self._list_of(known.abstract) if known is not None else None
        return next((at for at, one in found.levels.items() if one.style in styles), None) if found else None

    def _list_of(self, name: str) -> _List | None:
        """The abstract numbering; one that only links to a style is that of the style."""
        found = self._lists.get(name)
        if found is None or not found.style_link:
            return found
        return next((one for one in self._lists.values() if one.own_style == found.style_link), found)

    def _read_style(self, element: Element) -> None:
        numbered, name = element.child("pPr").child("numPr"), element.attribute("styleId")
        self._styles[name] = _Style(element.value("basedOn"), numbered.value("numId") or None, _level_in(numbered))
        if element.attribute("type") == "paragraph" and element.attribute("default") in ("1", "true", "on"):
            self._default_style = name


def _read_list(element: Element) -> _List:
    found = _List(style_link=element.value("numStyleLink"), own_style=element.value("styleLink"))
    for child in element.children:
        at = _int(child.attribute("ilvl"))
        if child.name == "lvl" and at is not None and 0 <= at < _LEVELS:
            found.levels[at] = _read_level(child)
    return found


def _read_level(element: Element) -> _Level:
    text = element.child("lvlText")
    start, restart = _int(element.value("start")), _int(element.value("lvlRestart"))
    return _Level(
        start=1 if start is None else start,
        kind=_kind(element),
        text=text.attribute("val") if text.name else None,
        restart=restart,
        is_legal=element.child("isLgl").is_on,
        style=element.value("pStyle"),
    )


def _kind(element: Element) -> str:
    """How numbers are written; newer ways are beside an older one in an alternative."""
    for child in element.children:
        if child.name == "AlternateContent" and child.children:
            return child.children[0].value("numFmt") or "decimal"
    return element.value("numFmt") or "decimal"


def _read_number(element: Element) -> _Number:
    found = _Number(element.value("abstractNumId"))
    for child in element.children:
        at = _int(child.attribute("ilvl"))
        if child.name != "lvlOverride" or at is None or not 0 <= at < _LEVELS:
            continue
        if (own := child.child("lvl")).name:
            found.levels[at] = _read_level(own)
        if (start := _int(child.value("startOverride"))) is not None:
            found.starts[at] = start
    return found


def _level_in(numbered: Element) -> int | None:
    level = _int(numbered.value("ilvl"))
    return level if level is None else max(0, min(level, _LEVELS - 1))


def _level_of(number: _Number, found: _List, level: int) -> _Level:
    return number.levels.get(level) or found.levels.get(level) or _Level()


def _text_of(number: _Number, found: _List, level: int) -> str:
    own = _level_of(number, found, level)
    if own.kind == "bullet":
        return _bullet(own.text)
    if own.kind == "none" and not own.text:
        return ""
    text = own.text if own.text is not None else f"%{level + 1}."

    def shown(match: re.Match[str]) -> str:
        at = int(match[1]) - 1
        one = _level_of(number, found, at)
        count = found.counts[at]
        kind = "decimal" if own.is_legal else one.kind
        return as_number(one.start if count is None else count, kind)

    return re.sub("%([1-9])", shown, text)


def _bullet(text: str | None) -> str:
    if not text or "\ue000" <= text[0] <= "\uf8ff":  # a character of a symbol font
        return "•"
    return _BULLETS.get(text, text)


def as_number(n: int, kind: str) -> str:
    """A number as `kind` (ST_NumberFormat) writes it; as digits if that is not known or has no such number."""
    if kind == "none":
        return ""
    if kind == "decimalZero":
        return f"{n:02d}"
    if kind == "decimalFullWidth":
        return str(n).translate({ord("0") + digit: chr(0xFF10 + digit) for digit in range(10)})
    if kind == "numberInDash":
        return f"- {n} -"
    if kind == "ordinal":
        return f"{n}{_ordinal_ending(n)}"
    if n > 0:
        if kind in ("lowerRoman", "upperRoman") and n < 5_000:
            return _roman(n) if kind == "lowerRoman" else _roman(n).upper()
        if kind in _ALPHABETS and n < 1_000:
            letters = _ALPHABETS[kind]
            return letters[(n - 1) % len(letters)] * ((n - 1) // len(letters) + 1)
        if kind in _CYCLES and n <= len(_CYCLES[kind]):
            return _CYCLES[kind][n - 1]
        if kind in _CHINESE_KINDS and n < 10_000:
            return "".join(_CHINESE[int(digit)] for digit in str(n)) if "igital" in kind else _chinese(n)
    return str(n)


def _ordinal_ending(n: int) -> str:
    if 10 < n % 100 < 14:
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")


def _roman(n: int) -> str:
    found = ""
    for value, letters in _ROMAN:
        found += letters * (n // value)
        n %= value
    return found


def _chinese(n: int) -> str:
    found, was_zero = "", False
    for value, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = n // value % 10
        if digit:
            found += ("零" if was_zero and found else "") + _CHINESE[digit] + unit
        was_zero = not digit
    return found.removeprefix("一") if 10 <= n < 20 else found


def _int(text: str | None) -> int | None:
    try:
        found = int(text) if text else None
    except ValueError:
        return None
    return found if found is None or abs(found) < _LARGEST else None
