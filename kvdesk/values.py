"""Value classes: what `dataclasses` has, made in a thirtieth of its time.

A dataclass of the standard library is compiled method by method: a millisecond for each of some hundred classes until
the window opens. Here the same declaration makes a `msgspec.Struct`, which is also quicker to construct and compare.
The type checker sees the standard library's, with all its checks. `compare`, `repr` and `init` of a field raise
TypeError: a class that needs them takes `dataclasses.dataclass`. The other functions take values of both kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
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

    def fields(value):
        """The fields, each with its `name`."""
        return dataclasses.fields(value) if dataclasses.is_dataclass(value) else msgspec.structs.fields(value)

    def replace(value, /, **changes):
        """The value with other fields."""
        if isinstance(value, msgspec.Struct):
            return msgspec.structs.replace(value, **changes)
        return dataclasses.replace(value, **changes)

    def asdict(value):
        """The fields by name, values inside them too."""
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}

    def _plain(value):
        if is_dataclass(value) and not isinstance(value, type):
            return asdict(value)
        if isinstance(value, dict):
            return {_plain(key): _plain(one) for key, one in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(_plain, value))
        return value


__all__ = ["asdict", "dataclass", "field", "fields", "is_dataclass", "replace", "required"]


def required(kind: type) -> frozenset[str]:
    """The names of the fields that have no default."""
    if issubclass(kind, msgspec.Struct):
        names = kind.__struct_fields__
        return frozenset(names[: len(names) - len(kind.__struct_defaults__)])
    known = kind.__dataclass_fields__.values()  # type: ignore[attr-defined]
    return frozenset(one.name for one in known if one.default is one.default_factory)  # both are MISSING
