"""Numbers that are typed, in every language, and what happens to what is no number."""

import pytest
from PySide6.QtCore import QLocale, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from kvdesk.ui.widgets.number_fields import NumberField, RealField, WholeField

LANGUAGES = ["en_US", "de_DE", "de_CH", "fr_FR", "ar_EG", "fa_IR", "hi_IN", "en_IN", "zh_CN", "pt_BR", "ff_Adlm_GN"]


def typed(field: NumberField, text: str) -> None:
    """As a person types over what is there, and goes on with Return."""
    field.selectAll()
    if text.isascii():
        QTest.keyClicks(field.lineEdit(), text)
    else:
        field.lineEdit().insert(text)  # as an input method does
    QTest.keyClick(field.lineEdit(), Qt.Key.Key_Return)


@pytest.fixture
def real(qtbot: QtBot) -> RealField:
    field = RealField(0.0, 5.0)
    qtbot.addWidget(field)
    field.setValue(0.8)
    field.show()
    return field


@pytest.fixture
def whole(qtbot: QtBot) -> WholeField:
    field = WholeField(0, 1 << 20)
    qtbot.addWidget(field)
    field.setValue(512)
    field.show()
    return field


@pytest.mark.parametrize("text", ["0.7", "0,7", ".7", ",7", "٠٫٧"])
def test_both_separators_are_read_in_every_language(real: RealField, text: str) -> None:
    for language in LANGUAGES:
        real.setLocale(QLocale(language))
        real.setValue(0.8)
        typed(real, text)
        assert (language, real.value(), real.problem) == (language, 0.7, "")


def test_what_a_field_shows_it_reads(real: RealField, whole: WholeField) -> None:
    """In every language that Qt knows."""
    any_language, any_script = QLocale.Language.AnyLanguage, QLocale.Script.AnyScript
    locales = QLocale.matchingLocales(any_language, any_script, QLocale.Country.AnyCountry)
    assert len(locales) > 500
    real.setRange(-5, 5000)
    whole.setRange(-(1 << 30), 1 << 30)
    for locale in locales:
        for field, values in ((real, (0.25, -1.5, 1234.125)), (whole, (4096, -12345678))):
            field.setLocale(locale)
            for value in values:
                field.setValue(0)
                field.setValue(value)
                shown = field.lineEdit().text()
                assert (field.problem, field.valueFromText(shown)) == ("", value), (locale.name(), shown)
    real.setLocale(QLocale("ar_EG"))
    real.setValue(0.5)
    assert real.text() == "٠٫٥٠"


@pytest.mark.parametrize("text", ["0.7.1", "abc", "0.7x", "1e3", "", "-", "10", "-1", "0.00001"])
def test_what_is_no_value_is_shown_and_counts_for_nothing(real: RealField, text: str) -> None:
    if text:
        typed(real, text)
    else:
        real.selectAll()
        QTest.keyClick(real.lineEdit(), Qt.Key.Key_Delete)
        QTest.keyClick(real.lineEdit(), Qt.Key.Key_Return)
    assert (real.text(), real.value()) == (text, 0.8)
    assert real.problem
    assert real.property("refused") is True
    typed(real, "0.9")
    assert (real.text(), real.value(), real.problem, real.property("refused")) == ("0.90", 0.9, "", False)


def test_a_refused_text_goes_with_a_step_or_another_value(real: RealField) -> None:
    typed(real, "x")
    QTest.keyClick(real, Qt.Key.Key_Up)
    assert real.value() == pytest.approx(0.85)
    assert not real.problem
    typed(real, "x")
    real.setValue(real.value())
    assert (real.text(), real.problem) == ("0.85", "")


@pytest.mark.parametrize(("text", "value"), [("4,096", 4096), ("4.096", 4096), ("4 096", 4096), ("٤٠٩٦", 4096)])
def test_whole_numbers_may_be_grouped(whole: WholeField, text: str, value: int) -> None:
    typed(whole, text)
    assert (whole.value(), whole.problem) == (value, "")


@pytest.mark.parametrize("text", ["0,7", "1.5", "4,0960", "2000000"])
def test_a_whole_number_loses_no_decimals(whole: WholeField, text: str) -> None:
    typed(whole, text)
    assert (whole.value(), whole.text()) == (512, text)
    assert whole.problem


def test_a_special_text_is_the_lowest_value(qtbot: QtBot) -> None:
    field = WholeField(-1, 100)
    qtbot.addWidget(field)
    field.setSpecialValueText("start")
    field.setValue(-1)
    field.show()
    assert field.text() == "start"
    typed(field, "5x")
    assert (field.text(), bool(field.problem)) == ("5x", True)
    typed(field, "start")
    assert (field.value(), field.problem) == (-1, "")
    typed(field, "7")
    assert (field.value(), field.text()) == (7, "7")
