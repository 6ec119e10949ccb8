"""Value classes: what `dataclasses` has, made in a thirtieth of its time.

A dataclass of the standard library is compiled method by method: a millisecond for each of some hundred classes until
the window opens. Here the same declaration makes a `msgspec.Struct`, which is also faster to construct and compare.
The type checker sees the standard library's, with all its checks. `compare`, `repr` and `init` of a field raise
TypeError: a class that needs them takes `dataclasses.dataclass`. The other functions take values of both kinds.
"""

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from dataclasses import asdict, dataclass, field, is_dataclass, replace
else:
    import dataclasses
    from functools import partial

    from msgspec import field

    _Meta = type(msgspec.Struct)

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True):
        """A struct has slots always. A class that inherits from one has its options."""
        if cls is None:
            return partial(dataclass, frozen=frozen, slots=slots, eq=eq)
        if isinstance(cls, _Meta):
            return cls
        if cls.__bases__ != (object,):
            raise TypeError(f"{cls.__name__} has bases that are no values")
        body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
        return _Meta(cls.__name__, (msgspec.Struct,), body, frozen=frozen, eq=eq)

    def is_dataclass(value):
        """Whether it is a value or a class of values."""
        kind = value if isinstance(value, type) else type(value)
        return issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)

    def replace(value, /, **changes):
        """The value with other fields."""
        if isinstance(value, msgspec.Struct):
            return msgspec.structs.replace(value, **changes)
        return dataclasses.replace(value, **changes)

    def asdict(value):
        """The fields by name, values inside them too."""
        return {name: _plain(getattr(value, name)) for name in names(value)}

    def _plain(value):
        if is_dataclass(value) and not isinstance(value, type):
            return asdict(value)
        if isinstance(value, dict):
            return {_plain(key): _plain(one) for key, one in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(_plain, value))
        return value


__all__ = ["asdict", "dataclass", "field", "is_dataclass", "names", "replace", "required"]


def names(value: object) -> tuple[str, ...]:
    """The names of the fields of a value or a class of values, in order. No annotation is evaluated."""
    kind: Any = value if isinstance(value, type) else type(value)
    return kind.__struct_fields__ if issubclass(kind, msgspec.Struct) else tuple(kind.__dataclass_fields__)


def required(kind: type) -> frozenset[str]:
    """The names of the fields that have no default."""
    if issubclass(kind, msgspec.Struct):
        n_defaults = len(kind.__struct_defaults__)
        return frozenset(kind.__struct_fields__[: len(kind.__struct_fields__) - n_defaults])
    known = kind.__dataclass_fields__.values()  # type: ignore[attr-defined]
    return frozenset(one.name for one in known if one.default is one.default_factory)  # both are MISSING
