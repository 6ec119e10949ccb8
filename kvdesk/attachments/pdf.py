"""The text of a PDF file, page by page, with the values of its form fields."""

import ctypes
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from kvdesk.attachments import found, limits
from kvdesk.attachments.found import Contents, Problem, Unreadable

_PASSWORD_ERRORS: Final = (4, 5)  # FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY
_HYPHEN: Final = re.compile("[\ufffe\x02]\r?\n?")
"""What PDFium puts where a word is broken at the end of a line."""
_MOST_FIELDS: Final = 5_000
"""On one page."""
_LONGEST_VALUE: Final = 100_000
"""Bytes as UTF-16."""
_PASSWORD_FLAG: Final = 1 << 13
_VALUELESS_TYPES: Final = frozenset((1, 7))
"""FPDF_FORMFIELD_PUSHBUTTON, FPDF_FORMFIELD_SIGNATURE: no values for a reader."""


def read_pdf(path: Path) -> Contents:
    """Raises Unreadable."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        problem: Problem = "password" if error.err_code in _PASSWORD_ERRORS else "damaged"
        raise Unreadable(problem, str(error)) from error
    form = _form_of(document)
    pages: list[str] = []
    n_characters = 0
    deadline = time.monotonic() + limits.READ_S
    of_pages = len(document)
    for number in range(of_pages):
        try:
            page = document[number]
            text = _HYPHEN.sub("", page.get_textpage().get_text_bounded()).strip()
            fields = "\n".join(_fields(page.raw, form))
            page.close()
        except pypdfium2.PdfiumError:
            text = fields = ""  # a page that is damaged costs no other
        pages.append("\n\n".join(filter(None, (text, fields))))
        n_characters += len(pages[-1])
        if n_characters > found.MOST_CHARACTERS or time.monotonic() > deadline:
            break
    return Contents("pdf", "\n\n".join(text for text in pages if text), n_pages=len(pages), of_pages=of_pages)


def _form_of(document: Any) -> Any:
    """PDFium's handle of the form, which knows what fields inherit; None for a file that says it has none."""
    import pypdfium2

    try:
        document.init_forms()
    except pypdfium2.PdfiumError:
        return None
    return document.formenv.raw if document.formenv is not None else None


def _fields(page: Any, form: Any) -> Iterator[str]:
    """Each field of a page that is filled in, with its name."""
    from pypdfium2 import raw

    told = set[str]()
    for number in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_FIELDS)):
        field = raw.FPDFPage_GetAnnot(page, number)
        if not field:
            continue
        try:
            line = _field(field, form)
        finally:
            raw.FPDFPage_CloseAnnot(field)
        if line and line not in told:  # the buttons of one choice have the same value
            told.add(line)
            yield line


def _field(field: Any, form: Any) -> str:
    from pypdfium2 import raw

    if raw.FPDFAnnot_GetSubtype(field) != raw.FPDF_ANNOT_WIDGET:
        return ""
    name = value = ""
    if form is not None and raw.FPDFAnnot_GetFormFieldType(form, field) > 0:
        kind = raw.FPDFAnnot_GetFormFieldType(form, field)
        if kind in _VALUELESS_TYPES or raw.FPDFAnnot_GetFormFieldFlags(form, field) & _PASSWORD_FLAG:
            return ""
        name = _text(lambda buffer, size: raw.FPDFAnnot_GetFormFieldAlternateName(form, field, buffer, size))
        name = name or _text(lambda buffer, size: raw.FPDFAnnot_GetFormFieldName(form, field, buffer, size))
        value = _text(lambda buffer, size: raw.FPDFAnnot_GetFormFieldValue(form, field, buffer, size))
    elif _of_key(field, b"FT") != "Sig":
        name, value = _of_key(field, b"TU") or _of_key(field, b"T"), _of_key(field, b"V")
    value = " ".join(value.split())
    if not value or value == "Off":  # a box that is not ticked
        return ""
    return f"{' '.join(name.split())}: {value}" if name.strip() else value


def _of_key(field: Any, key: bytes) -> str:
    from pypdfium2 import raw

    return _text(lambda buffer, size: raw.FPDFAnnot_GetStringValue(field, key, buffer, size))


def _text(ask: Callable[[Any, int], int]) -> str:
    """What PDFium writes as UTF-16: asked for its length first."""
    size = ask(None, 0)
    if not 2 < size <= _LONGEST_VALUE:
        return ""
    buffer = ctypes.create_string_buffer(size)
    ask(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw.decode("utf-16-le", "replace").rstrip("\0")
