"""The text of a DOCX file: lines, tables, numbers of lists; and what is left out, counted."""

from pathlib import Path

import pytest

from kvdesk.attachments.contents import read_contents
from kvdesk.attachments.found import Contents
from kvdesk.attachments.numbering import as_number
from tests.attachments.files import docx_of


def read(tmp_path: Path, body: str, **parts: str) -> Contents:
    file = tmp_path / "a.docx"
    file.write_bytes(docx_of(body, **parts))
    return read_contents(file)


def run(text: str, properties: str = "") -> str:
    return f"<w:r>{properties}<w:t>{text}</w:t></w:r>"


def paragraph(inside: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{inside}</w:p>"


def item(text: str, level: int = 0, number: int = 1) -> str:
    numbered = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return paragraph(run(text), numbered)


def level(at: int, kind: str, text: str, more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/>{more}<w:lvlText w:val="{text}"/></w:lvl>'
    )


def number(name: int, abstract: int = 0, inside: str = "") -> str:
    return f'<w:num w:numId="{name}"><w:abstractNumId w:val="{abstract}"/>{inside}</w:num>'


def test_a_break_is_a_line_and_a_tab_a_tab(tmp_path: Path) -> None:
    inside = "<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:cr/><w:t>d</w:t><w:noBreakHyphen/></w:r>"
    assert read(tmp_path, paragraph(inside)).text == "a\tb\nc\nd\u2011"


def test_a_row_is_a_line_with_tabs_between_its_cells(tmp_path: Path) -> None:
    def cell(*texts: str, properties: str = "") -> str:
        inside = "".join(paragraph(run(text)) for text in texts)
        return f"<w:tc><w:tcPr>{properties}</w:tcPr>{inside}</w:tc>"

    def row(*cells: str) -> str:
        return f"<w:tr>{''.join(cells)}</w:tr>"

    inner = f"<w:tbl>{row(cell('x'), cell('y'))}</w:tbl>"
    table = (
        "<w:tbl><w:tblPr/>"
        + row(cell("Name"), cell("Age"), cell("Town"))
        + row(cell("Ann", "Lee"), cell(""), cell("Rome"))
        + row(cell("both", properties='<w:gridSpan w:val="2"/>'), cell("Oslo"))
        + f"<w:sdt><w:sdtContent>{row(cell('Bob'), f'<w:tc>{inner}</w:tc>')}</w:sdtContent></w:sdt>"
        + "</w:tbl>"
    )
    found = read(tmp_path, paragraph(run("Before")) + table + paragraph(run("After")))
    assert found.text == "Before\n\nName\tAge\tTown\nAnn Lee\t\tRome\nboth\t\tOslo\nBob\tx y\n\nAfter"


def test_lists_keep_their_numbers(tmp_path: Path) -> None:
    levels = level(0, "decimal", "%1.") + level(1, "lowerLetter", "%1.%2)") + level(2, "upperRoman", "(%3)")
    numbering = f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>' + number(1)
    body = item("one") + item("sub", 1) + item("sub", 1) + item("deep", 2) + item("two") + item("sub", 1)
    found = read(tmp_path, body + paragraph(run("Between")) + item("three"), numbering=numbering).text
    assert found == "1. one\n  1.a) sub\n  1.b) sub\n    (I) deep\n2. two\n  2.a) sub\n\nBetween\n\n3. three"


def test_a_list_may_begin_again_go_on_and_begin_elsewhere(tmp_path: Path) -> None:
    again = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
    never = level(1, "decimal", "%2:", '<w:lvlRestart w:val="0"/>')
    numbering = f'<w:abstractNum w:abstractNumId="0">{level(0, "decimal", "%1.")}{never}</w:abstractNum>'
    numbering += number(1) + number(2) + number(3, inside=again)
    body = item("a") + item("b", 1) + item("c", number=2) + item("d", 1, number=2) + item("e", number=3)
    body += item("f", number=3)
    found = read(tmp_path, body, numbering=numbering).text
    assert found == "1. a\n  1: b\n2. c\n  2: d\n5. e\n6. f"


def test_bullets_and_lists_of_styles(tmp_path: Path) -> None:
    bullets = level(0, "bullet", "\uf0b7") + level(1, "bullet", "o") + level(2, "bullet", "–")
    headings = level(0, "decimal", "%1", '<w:pStyle w:val="H1"/>') + level(
        1, "decimal", "%1.%2", '<w:pStyle w:val="H2"/>'
    )
    numbering = f'<w:abstractNum w:abstractNumId="0">{bullets}</w:abstractNum>'
    numbering += f'<w:abstractNum w:abstractNumId="7">{headings}</w:abstractNum>' + number(1) + number(2, 7)
    numbered = '<w:pPr><w:numPr><w:numId w:val="2"/></w:numPr></w:pPr>'
    styles = f'<w:style w:type="paragraph" w:styleId="H1">{numbered}</w:style>'
    styles += '<w:style w:type="paragraph" w:styleId="H2"><w:basedOn w:val="H1"/>'
    styles += '<w:pPr><w:numPr><w:ilvl w:val="1"/></w:numPr></w:pPr></w:style>'

    def heading(text: str, name: str, more: str = "") -> str:
        return paragraph(run(text), f'<w:pStyle w:val="{name}"/>{more}')

    out = '<w:numPr><w:numId w:val="0"/></w:numPr>'
    body = item("a") + item("b", 1) + item("c", 2)
    body += heading("First", "H1") + heading("Part", "H2") + heading("Part", "H2") + heading("None", "H1", out)
    body += heading("Second", "H1")
    found = read(tmp_path, body, numbering=numbering, styles=styles).text
    assert found == "• a\n  ◦ b\n    – c\n1 First\n  1.1 Part\n  1.2 Part\n\nNone\n\n2 Second"


@pytest.mark.parametrize(
    ("n", "kind", "text"),
    [
        (4, "upperRoman", "IV"),
        (1994, "lowerRoman", "mcmxciv"),
        (27, "lowerLetter", "aa"),
        (3, "upperLetter", "C"),
        (7, "decimalZero", "07"),
        (11, "ordinal", "11th"),
        (22, "ordinal", "22nd"),
        (12, "chineseCounting", "十二"),
        (105, "chineseCountingThousand", "一百零五"),
        (3, "decimalEnclosedCircle", "③"),
        (2, "ideographTraditional", "乙"),
        (0, "upperRoman", "0"),
        (21, "decimalEnclosedCircle", "21"),
        (5, "never heard of", "5"),
    ],
)
def test_numbers_as_word_writes_them(n: int, kind: str, text: str) -> None:
    assert as_number(n, kind) == text


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    body = paragraph(run("Text") + '<w:r><w:footnoteReference w:id="2"/></w:r>')
    body += paragraph("<m:oMathPara><m:oMath><m:r><m:t>E</m:t></m:r></m:oMath></m:oMathPara>")
    body += paragraph('<w:r><w:drawing><a:blip r="x"/></w:drawing></w:r>')
    body += paragraph("<w:del>" + "<w:r><w:delText>old</w:delText></w:r></w:del><w:ins>" + run("new") + "</w:ins>")
    body += paragraph(run("secret", "<w:rPr><w:vanish/></w:rPr>") + run("seen", '<w:rPr><w:vanish w:val="0"/></w:rPr>'))
    body += paragraph('<w:r><w:sym w:font="Wingdings" w:char="F0FE"/><w:sym w:char="F001"/></w:r>' + run(" done"))
    parts = {"comments": '<w:comment w:id="1"/><w:comment w:id="2"/>', "header": paragraph(run("Secret plan"))}
    found = read(tmp_path, body, **parts, footer=paragraph(""))
    assert found.text == "Text\n\nnew\n\nseen\n\n☑ done"
    assert found.left_out == {
        "footnotes": 1,
        "equations": 1,
        "pictures": 1,
        "deleted text": 1,
        "hidden text": 1,
        "symbols": 1,
        "comments": 2,
        "headers": 1,
    }


def test_the_text_of_a_text_box_comes_once_after_its_paragraph(tmp_path: Path) -> None:
    box = f"<w:txbxContent>{paragraph(run('In a box'))}</w:txbxContent>"
    choice = f"<mc:Choice><w:drawing>{box}</w:drawing></mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback>"
    body = paragraph(run("Around") + f"<w:r><mc:AlternateContent>{choice}</mc:AlternateContent></w:r>" + run(" it"))
    found = read(tmp_path, body)
    assert (found.text, found.left_out) == ("Around it\n\nIn a box", {})


def test_a_document_type_is_refused_and_depth_is_limited(tmp_path: Path) -> None:
    from kvdesk.attachments.found import Unreadable

    for begin, body in (("<!DOCTYPE x>", ""), ("", "<w:p>" * 600 + "</w:p>" * 600)):
        file = tmp_path / "a.docx"
        file.write_bytes(docx_of(body, begin=begin))
        with pytest.raises(Unreadable, match="damaged"):
            read_contents(file)
