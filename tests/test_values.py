"""Value classes behave as dataclasses do, and nobody asks the standard library for what takes these only there."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import ClassVar

import pytest

import kvdesk
from kvdesk import values
from kvdesk.chat import Conversation
from kvdesk.message import ConversationId


@values.dataclass(frozen=True, slots=True)
class Point:
    """A docstring."""

    axis: ClassVar = "x"
    x: int
    y: float = 0.5
    names: tuple[str, ...] = ()

    @property
    def twice(self) -> int:
        return 2 * self.x


@values.dataclass(slots=True)
class Line:
    begin: Point
    _points: list[Point] = values.field(default_factory=list)


@values.dataclass(frozen=True, slots=True, eq=False)
class One:
    x: int


def test_a_value_is_frozen_compared_by_its_fields_and_copied() -> None:
    point = Point(1)
    assert point == Point(1, 0.5) == pickle.loads(pickle.dumps(point))
    assert hash(point) == hash(Point(1))
    assert point != Point(2)
    assert (values.replace(point, x=3).twice, point.x, Point.axis) == (6, 1, "x")
    assert repr(point) == "Point(x=1, y=0.5, names=())"
    match point:
        case Point(x, y):
            assert (x, y) == (1, 0.5)
    with pytest.raises(AttributeError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]


def test_one_that_can_change_has_its_own_defaults() -> None:
    a, b = Line(Point(1)), Line(Point(1))
    a._points.append(Point(2))
    assert b._points == []
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)
    assert values.asdict(a) == {"begin": {"x": 1, "y": 0.5, "names": ()}, "_points": [{"x": 2, "y": 0.5, "names": ()}]}


def test_one_without_equality_is_itself_alone() -> None:
    one = One(1)
    assert one != One(1)
    assert {one: 1}[one] == 1


def test_what_a_struct_cannot_have_is_refused() -> None:
    with pytest.raises(TypeError, match="compare"):
        values.field(default=0, compare=False)

    class Base:
        pass

    class Derived(Base):
        x: int

    with pytest.raises(TypeError, match="bases"):
        values.dataclass(Derived)


@pytest.mark.parametrize("kind", [Point, Conversation], ids=["a struct", "a dataclass"])
def test_the_fields_of_both_kinds_can_be_asked_for(kind: type) -> None:
    assert values.is_dataclass(kind)
    assert values.names(kind)[0] == ("x" if kind is Point else "id")
    assert values.required(kind) == ({"x"} if kind is Point else {"id", "title", "colour"})


def test_names_evaluate_no_annotation() -> None:
    """Each message that is read asks for them, and a name may be imported for the type checker alone."""

    @values.dataclass(frozen=True, slots=True)
    class Lazy:
        x: Unknown  # type: ignore[name-defined]  # noqa: F821

    assert values.names(Lazy) == ("x",)
    assert values.asdict(Lazy(Point(1))) == {"x": {"x": 1, "y": 0.5, "names": ()}}


def test_a_dataclass_is_copied_too() -> None:
    conversation = Conversation(ConversationId("c"), "T", 0)
    assert values.replace(conversation, title="U").title == "U"


def test_only_a_class_that_has_to_is_a_dataclass_of_the_standard_library() -> None:
    folder = Path(kvdesk.__file__).parent
    feature = re.compile(r"\bfield\(.*\b(compare|repr|init)=")
    for path in folder.rglob("*.py"):
        text = path.read_text("utf-8")
        if path.name != "values.py" and re.search(r"^\s*(from|import) dataclasses\b", text, re.MULTILINE):
            assert re.search(r"^from dataclasses import dataclass, field$", text, re.MULTILINE), path
            assert feature.search(text), f"{path} can take kvdesk.values"
