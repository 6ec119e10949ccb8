"""The encoding of bytes that are no UTF-8: each candidate is scored by how much its text looks like a language.

A character counts 1 if it is one of the commonest of its script, less if it is rarer, and below 0 if no
language has it in such a place: a letter between two of another script, a capital after a small letter.
"""

import codecs
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Final

from kvdesk.attachments.encodings import CODECS

LEAST_SCORE: Final = 0.25
"""Below it no candidate looks like text."""
_OF_SYSTEM: Final = 0.2
"""What the computer's own code page has ahead of the others."""
_LOOKED_AT: Final = 40_000
"""Bytes of the beginning. Texts that matter are recognized in a few lines."""
_LOOSE_END: Final = 4
"""Bytes at the end of a part: they may be half a character."""

_CJK: Final = {"GB18030": "gb2312", "Big5": "big5", "Shift JIS": "shift_jis", "EUC-JP": "euc_jp", "EUC-KR": "euc_kr"}
"""Those with several bytes to a character, and the codec whose first level has the usual ideographs."""
_LEVEL_1: Final = {"gb2312": 0xD7, "big5": 0xC6, "shift_jis": 0x97, "euc_jp": 0xCF, "euc_kr": 0xC8}
"""The last lead byte of that level."""
_COMMON_CHINESE: Final = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多"
    "经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性"
    "知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次"
    "這個們來為國時會說對過發後裡種學經現當沒動還進樣開從實軍無與長機關點業將兩間問應戰頭體見產話內給請書電車門東話寫語讀聽買賣"
    "件內字请您吗呢吧"
)
_COMMON_KANJI: Final = frozenset(
    "日本語人大年会国出上中行見分後前生五間東四今金九入学高円子外八六下来気小七山話女北午百書先名川千水半男西電校土木聞食車何南"
    "万毎白天母火右読友左休父雨漢字文"
)
_COMMON_HANGUL: Final = frozenset(
    "이다는을를에의가하고지로사리기시어인자도나대해서일니습한은그들있것수아게라과정부보제전주장안으만생면성여조요없우동소말세경공스오"
    "중무국상모신문원구년선관위연학등화방음내실미했었할된되데거까간마때비물속두같못개더적진호미설재분용파찾녕란세계체와며"
)
_WIDE_MARKS: Final = frozenset("，。、；：？！“”‘’（）《》「」『』【】…—・ー～　")
_LATIN: Final = {
    "Windows-1252": (
        *("äöüßÄÖÜ", "éèàçêôâîïùûëœÉÀÇ", "áéíóúñüÁÉÍÓÚÑ¿¡", "ãõáéíóúâêôçà", "àèéìòùÈ", "åäöæøéÅÄÖÆØ", "áéíóúýþðæö"),
    ),
    "Windows-1250": (
        *("ąćęłńóśźżĄĆĘŁŃÓŚŹŻ", "áčďéěíňóřšťúůýžČŘŠŽÚÍ", "áéíóöőúüűÁÉÖŐÜŰ", "ăâîşţĂÂÎŞŢ", "čćđšžČĆĐŠŽ"),
        "áäčďéíĺľňóôŕšťúýž",
    ),
    "Windows-1254": ("çğıöşüâîÇĞİÖŞÜ",),
    "Windows-1257": ("ąčęėįšųūžĄČĘĖĮŠŲŪŽ", "āčēģīķļņšūžĀČĒĢĪĶĻŅŠŪŽ", "äõöüšžÄÕÖÜŠŽ"),
    "ISO 8859-2": ("ąćęłńóśźżĄĆĘŁŃÓŚŹŻ", "áčďéěíňóřšťúůýžČŘŠŽÚÍ", "áéíóöőúüűÁÉÖŐÜŰ", "ăâîşţĂÂÎŞŢ"),
    "IBM 850": ("äöüßÄÖÜ", "éèàçêôâîïùûë", "áéíóúñü¿¡", "ãõáéíóúâêôçà", "åäöæøé"),
}  # fmt: skip
"""Letters of languages that are written with the code page, beside those of ASCII."""
_LATIN_MARKS: Final = frozenset("„“”‚‘’«»‹›–—…€§°·©®±²³¹µ×½¼\u00a0")
_RUSSIAN: Final = ("оеаинтсрвлкм", "дпуяыьгзбчйх", "жшщцюэфъё")
_OTHERS: Final = {
    "Windows-1251": ("CYRILLIC", "оеаинтсрвлкмі", "дпуяыьгзбчйх", "жшщцюэфъёєїґўљњјћђџѓќ"),
    "KOI8-R": ("CYRILLIC", *_RUSSIAN),
    "KOI8-U": ("CYRILLIC", "оеаинтсрвлкмі", "дпуяьгзбчйх", "жшщцюфґїє"),
    "IBM 866": ("CYRILLIC", *_RUSSIAN),
    "ISO 8859-5": ("CYRILLIC", *_RUSSIAN),
    "Windows-1253": ("GREEK", "αειοτσνηρπκ", "υλμςόίάέήώύδγ", "ωθχβφξζψϊϋΐΰ"),
    "Windows-1255": ("HEBREW", "יוהלאתרמבנש", "םעדקחכפג", "טסצזןךץף"),
    "Windows-1256": ("ARABIC", "اليمنوترعبده", "فسةكقحجأشصخط", "ضذزىئءإثغظؤآپچگی"),
    "Windows-874": ("THAI", "านรอกเงมยลวดทส่้ีิัา", "ตะปบคหแจพชขใไโซุู็์ำื", "ผฟถฉธญณฐฎฏศษฬฮึๆ"),
}
"""Code pages of other scripts: the name of the script, and its letters in three steps, the commonest first."""
_FINAL_LETTERS: Final = frozenset("ךםןףץ")
"""Hebrew ones that end words, and are nowhere else."""
_WEIGHTS: Final = (1.0, 0.6, 0.2)
_ORDER: Final = (*_LATIN, *_OTHERS, *_CJK)


def guess(data: bytes, *, is_all: bool, system: str = "") -> str:
    """The name of the likeliest encoding of these bytes; "" if none makes a text of them."""
    sample = data[:_LOOKED_AT]
    is_whole = is_all and len(data) <= _LOOKED_AT
    names = dict.fromkeys((system, *_ORDER)) if system in CODECS else dict.fromkeys(_ORDER)
    best, best_score = "", LEAST_SCORE
    for name in names:
        score = _score(name, sample, is_whole) + _OF_SYSTEM * (name == system)
        if score > best_score + 1e-9:
            best, best_score = name, score
    return best


def _score(name: str, sample: bytes, is_whole: bool) -> float:
    text = _decoded(CODECS[name], sample, is_whole)
    if text is None:
        return -1.0
    if name in _CJK:
        return _mean(_of_cjk(text, _CJK[name]))
    if name in _OTHERS:
        return _mean(_of_script(text, *_OTHERS[name]))
    return max((_mean(_of_latin(text, frozenset(letters))) for letters in _LATIN.get(name, ())), default=0.0)


def _decoded(codec: str, sample: bytes, is_whole: bool) -> str | None:
    try:
        return codecs.getincrementaldecoder(codec)().decode(sample, final=is_whole)
    except UnicodeDecodeError as error:
        if is_whole or error.start < len(sample) - _LOOSE_END:
            return None
        return sample[: error.start].decode(codec)


def _mean(weights: Iterator[float]) -> float:
    total = n = 0.0
    for weight in weights:
        total += weight
        n += 1
    return total / n if n else 0.0


def _of_cjk(text: str, codec: str) -> Iterator[float]:
    for character in text:
        if character < "\x80":
            continue
        code = ord(character)
        if codec in ("shift_jis", "euc_jp") and 0x3041 <= code <= 0x30FE:
            yield 1.0
        elif codec == "euc_kr" and 0xAC00 <= code <= 0xD7A3:
            yield 1.0 if character in _COMMON_HANGUL else 0.35 if _is_usual(character, codec) else -0.5
        elif character in _WIDE_MARKS:
            yield 0.6
        elif 0x4E00 <= code <= 0x9FFF:
            yield _of_ideograph(character, codec)
        else:  # half-width kana, private use, symbols
            yield 0.2 if 0xFF01 <= code <= 0xFF5E else -0.5


def _of_ideograph(character: str, codec: str) -> float:
    if codec == "euc_kr":
        return -0.2
    common = _COMMON_KANJI if codec in ("shift_jis", "euc_jp") else _COMMON_CHINESE
    if character in common:
        return 1.0
    return 0.3 if _is_usual(character, codec) else -0.5


@cache
def _is_usual(character: str, codec: str) -> bool:
    """Whether it is of the codec's first level."""
    try:
        packed = character.encode(codec)
    except UnicodeEncodeError:
        return False
    return (
        len(packed) == 2 and packed[0] <= _LEVEL_1[codec] and (codec not in ("gb2312", "euc_kr") or packed[1] >= 0xA1)
    )


def _of_script(text: str, script: str, *steps: str) -> Iterator[float]:
    before = " "
    for character, after in zip(text, text[1:] + " ", strict=True):
        if character >= "\x80":
            yield _in_script(before, character, after, script, steps)
        before = character


def _in_script(before: str, character: str, after: str, script: str, steps: tuple[str, ...]) -> float:
    if not unicodedata.name(character, "").startswith(script):
        return 0.2 if character in _LATIN_MARKS and not (before.isalpha() and after.isalpha()) else -1.0
    if _is_ascii_letter(before) or _is_ascii_letter(after):
        return -0.5
    if character.isupper() and before.islower():
        return -1.0
    if script == "HEBREW" and character in _FINAL_LETTERS:
        return -1.0 if after.isalpha() else 1.0
    small = character.lower()
    weight = next((weight for weight, letters in zip(_WEIGHTS, steps, strict=True) if small in letters), -0.3)
    return weight - 0.3 if character.isupper() and before.isupper() else weight


def _of_latin(text: str, letters: frozenset[str]) -> Iterator[float]:
    before = " "
    for character, after in zip(text, text[1:] + " ", strict=True):
        if character >= "\x80":
            yield _in_latin(before, character, after, letters)
        before = character


def _in_latin(before: str, character: str, after: str, letters: frozenset[str]) -> float:
    if character in letters:
        if character.isupper() and before.islower():
            return -1.0
        n_high = (before >= "\x80" and before.isalpha()) + (after >= "\x80" and after.isalpha())
        is_alone = not (before.isalpha() or after.isalpha())
        return 0.5 if is_alone else (1.0, 0.5, -0.5)[n_high]
    if character in _LATIN_MARKS:
        return -1.0 if before.isalpha() and after.isalpha() and character != "’" else 0.6
    return 0.0 if character.isalpha() else -0.5


def _is_ascii_letter(character: str) -> bool:
    return character < "\x80" and character.isalpha()
