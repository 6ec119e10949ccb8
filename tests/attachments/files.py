"""Small files of each kind, made by hand so that a test can damage them."""

import io
import zipfile
import zlib

_TYPES = """<?xml version="1.0" encoding="UTF-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Override PartName="/word/document.xml"
 ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"""
_RELATIONS = """<?xml version="1.0" encoding="UTF-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="rId1" Target="word/document.xml"
 Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>"""
_NAMES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
)
_DOCUMENT = """{begin}<w:document {names}>
<w:body>{paragraphs}</w:body></w:document>"""
XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
BOMB = XML + (
    '<!DOCTYPE bomb [<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    + "]>\n"
)


def docx(*paragraphs: str, begin: str = XML) -> bytes:
    """A DOCX file; `paragraphs` are XML text."""
    return docx_of("".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs), begin=begin)


def docx_of(body: str, begin: str = XML, **parts: str) -> bytes:
    """A DOCX file with this body, and what is in its other parts (`numbering`, `footnotes`, …)."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("_rels/.rels", _RELATIONS)
        archive.writestr("word/document.xml", _DOCUMENT.format(begin=begin, names=_NAMES, paragraphs=body))
        for name, inside in parts.items():
            archive.writestr(f"word/{name}.xml", f"<w:{name} {_NAMES}>{inside}</w:{name}>")
    return file.getvalue()


def pdf(
    *pages: str,
    encrypted: bool = False,
    compressed: bool = False,
    about: str = "",
    catalog: str = "",
    objects: tuple[str, ...] = (),
) -> bytes:
    """A PDF file with a line of text (Latin letters) on every page; none if it is empty.

    `about`: of every page; `catalog`: of the file; `objects`: more, after those of the pages (6 0 R after one page).
    """
    found = [f"<< /Type /Catalog /Pages 2 0 R{catalog} >>".encode()]
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    found.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode())
    found.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for i, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode() if text else b""
        packed = ""
        if compressed:
            content, packed = zlib.compress(content), " /Filter /FlateDecode"
        found.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * i} 0 R"
            f" /Resources << /Font << /F1 3 0 R >> >>{about} >>".encode()
        )
        found.append(b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(content), packed.encode(), content))
    found += [one.encode() for one in objects]
    file = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(found, 1):
        offsets.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(file)
    file += b"xref\n0 %d\n0000000000 65535 f \n" % (len(found) + 1)
    file += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    lock = b""
    if encrypted:
        key = b"<" + b"42" * 32 + b">"
        lock = b" /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O " + key + b" /U " + key + b" >>"
        lock += b" /ID [<00> <00>]"
    file += b"trailer\n<< /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (len(found) + 1, lock, table)
    return bytes(file)
