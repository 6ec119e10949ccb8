"""Guessed encodings: texts of many languages in the code pages they were written in."""

import pytest

from kvdesk.attachments.encodings import CODECS, name_of, system_encoding
from kvdesk.attachments.guess import guess

TEXTS = [
    ("Windows-1252", "Die Brücke für 5 €"),
    ("Windows-1252", "déjà vu"),
    ("Windows-1252", "Les élèves étaient très fatigués après l’école."),
    ("Windows-1252", "El niño comió una manzana. ¿Dónde está?"),
    ("Windows-1252", "Não há ninguém na estação; a situação é difícil."),
    ("Windows-1252", "Smørrebrød på øen er dejligt, siger børnene."),
    ("Windows-1252", "perché così è più bello"),
    ("Windows-1252", "“It’s fine” — he said…"),
    ("Windows-1252", "25 °C ± 2 °C"),
    ("Windows-1250", "Zażółć gęślą jaźń"),
    ("Windows-1250", "Příliš žluťoučký kůň úpěl ďábelské ódy"),
    ("Windows-1250", "Árvíztűrő tükörfúrógép"),
    ("Windows-1250", "Dobrý den, přišel jsem včera večer."),
    ("Windows-1250", "Ich möchte ein Stück Käse"),
    ("Windows-1251", "Привет"),
    ("Windows-1251", "ОТЧЁТ за март: всего 25 заявок, из них закрыто 12."),
    ("Windows-1251", "Доброго дня! Як справи? Їжак і ґава."),
    ("KOI8-R", "Привет, мир! Это обычный текст на русском языке."),
    ("IBM 866", "Привет, мир! Это обычный текст на русском языке."),
    ("ISO 8859-5", "Привет, мир! Это обычный текст на русском языке."),
    ("Windows-1253", "Καλημέρα κόσμε, αυτό είναι ένα κείμενο."),
    ("Windows-1254", "Günaydın dünya, bugün hava çok güzel, değil mi? İstanbul şehri."),
    ("Windows-1255", "שלום עולם, זה טקסט רגיל בעברית."),
    ("Windows-1255", "שלום עולם, זהו קובץ טקסט בעברית."),
    ("Windows-1256", "مرحبا بالعالم هذا نص عادي باللغة العربية"),
    ("Windows-874", "สวัสดีชาวโลก นี่คือข้อความภาษาไทย"),
    ("Windows-1257", "Labas rytas, šiandien yra graži diena, ačiū už žodžius."),
    ("Windows-1257", "Labdien, šī ir parasta teksta rindiņa latviešu valodā"),
    ("GB18030", "KV缓存的每一个单元，都有位置。"),
    ("GB18030", "用户登录失败：密码错误"),
    ("GB18030", "天气预报显示明天有雨"),
    ("GB18030", "中文"),
    ("Big5", "台北市政府宣布明天停止上班上課"),
    ("Big5", "錯誤：找不到檔案"),
    ("Big5", "請問您要去哪裡旅遊？"),
    ("Shift JIS", "エラー：ファイルが見つかりません"),
    ("Shift JIS", "吾輩は猫である。名前はまだ無い。"),
    ("Shift JIS", "東京都"),
    ("EUC-JP", "吾輩は猫である。名前はまだ無い。"),
    ("EUC-JP", "エラー：ファイルが見つかりません"),
    ("EUC-KR", "안녕하세요, 이것은 한국어 문장입니다."),
    ("EUC-KR", "파일을 찾을 수 없습니다"),
]


@pytest.mark.parametrize(("encoding", "text"), TEXTS)
def test_a_text_is_read_as_it_was_written(encoding: str, text: str) -> None:
    data = text.encode(CODECS[encoding])
    found = guess(data, is_all=True)
    assert data.decode(CODECS[found]) == text  # another code page may have the same letters in the same places


def test_the_computers_code_page_decides_where_both_make_sense() -> None:
    data = "Ελ".encode("cp1253")
    assert guess(data, is_all=True, system="Windows-1253") == "Windows-1253"
    assert guess(data, is_all=True, system="Windows-1251") == "Windows-1251"
    clear = "Привет, мир! Это обычный текст.".encode("cp1251")
    assert guess(clear, is_all=True, system="Windows-1252") == "Windows-1251"


def test_a_part_may_end_within_a_character() -> None:
    data = ("這是一份繁體中文的文件，" * 9).encode("cp950")
    assert guess(data[:-1], is_all=False) == "Big5"


def test_noise_is_no_text() -> None:
    assert guess(bytes(range(128, 256)) * 4, is_all=True) == ""


def test_names_of_codecs() -> None:
    assert [name_of(codec) for codec in ("cp936", "ISO-8859-1", "utf8", "shift_jis", "cp949", "nothing")] == [
        *("GB18030", "Windows-1252", "UTF-8", "Shift JIS", "EUC-KR", "")
    ]
    assert all(name_of(codec) == name for name, codec in CODECS.items())


@pytest.mark.parametrize(
    ("language", "encoding"),
    [("de_DE.UTF-8", "Windows-1252"), ("ru_RU", "Windows-1251"), ("zh_TW.UTF-8", "Big5"), ("C.UTF-8", "")],
)
def test_the_language_names_a_code_page_where_the_system_has_utf_8(
    monkeypatch: pytest.MonkeyPatch, language: str, encoding: str
) -> None:
    monkeypatch.setattr("kvdesk.attachments.encodings.sys.platform", "linux")
    monkeypatch.setattr("kvdesk.attachments.encodings.locale.getencoding", lambda: "utf-8")
    monkeypatch.setenv("LC_ALL", language)
    assert system_encoding() == encoding
