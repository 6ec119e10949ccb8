"""XML of a document as small elements, read without entities and within limits.

Names are local: the namespaces of OOXML, two for everything, make no difference to what is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Final
from xml.parsers import expat

from kvdesk.attachments.found import Unreadable
from kvdesk.values import dataclass, field

DEEPEST: Final = 500
"""Elements within elements: Word needs about forty."""
_PIECE: Final = 1 << 16


@dataclass(slots=True)
class Element:
    """`text` is the character data of the element itself, children's not included."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def attribute(self, name: str) -> str:
        return self.attributes.get(name, "")

    @property
    def is_on(self) -> bool:
        """Of an element that switches something: whether it is there, and does not say that it is off."""
        return bool(self.name) and self.attribute("val") not in ("0", "false", "off")

    def child(self, name: str) -> Element:
        """The first of this name; `NOTHING` if there is none."""
        return next((child for child in self.children if child.name == name), NOTHING)

    def value(self, name: str) -> str:
        """The attribute `val` of a child; "" if there is none."""
        return self.child(name).attribute("val")

    def all(self) -> Iterator[Element]:
        """Itself and whatever is in it, in order."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.children)


NOTHING: Final = Element("")


class Stopped(Exception):
    """Whoever takes the elements wants no more."""


def parse(file: IO[bytes]) -> Element:
    """The whole of a small part. Raises Unreadable."""
    found: list[Element] = []
    _read(file, lambda _element: False, found.append)
    if not found:
        raise Unreadable("damaged", "no XML")
    return found[0]


def parse_within(file: IO[bytes], container: str, take: Callable[[Element], None]) -> None:
    """Hand each child of the elements `container` to `take` as soon as it ends, and keep none: a long document is never
    in memory as a whole. `take` may raise Stopped. Raises Unreadable.
    """

    def wanted(around: Element) -> bool:
        return around.name == container

    def handed(element: Element) -> None:
        if element.name != container:
            take(element)

    try:
        _read(file, wanted, handed)
    except Stopped:
        return


def _read(file: IO[bytes], is_taken: Callable[[Element], bool], take: Callable[[Element], None]) -> None:
    """`is_taken`: whether children of this element go to `take` and not into it. So does the outermost element."""
    stack: list[Element] = []
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(stack) >= DEEPEST:
            raise Unreadable("damaged", "elements are nested too deeply")
        stack.append(Element(_local(name), {_local(key): value for key, value in attributes.items()}))

    def end(_name: str) -> None:
        element = stack.pop()
        if not stack or is_taken(stack[-1]):
            take(element)
        else:
            stack[-1].children.append(element)

    def characters(text: str) -> None:
        if stack:
            stack[-1].text += text

    def refuse(*_about: object) -> None:
        raise Unreadable("damaged", "the XML has a document type")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = refuse
    try:
        while piece := file.read(_PIECE):
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise Unreadable("damaged", str(error)) from error


def _local(name: str) -> str:
    return name.rpartition(" ")[2]
