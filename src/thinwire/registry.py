"""Tables of parts by name. A new part is one file and one line in a table; the laws sweep the tables."""

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from thinwire.errors import PlanError

P = TypeVar("P")


class Table(Mapping[str, type[P]]):
    """Names to the classes of one kind of part."""

    def __init__(self, kind: str, parts: Mapping[str, type[P]]) -> None:
        """Name the kind (for messages) and its parts."""
        self.kind = kind
        self._parts = dict(parts)
        self._names = {part: name for name, part in self._parts.items()}

    def __getitem__(self, name: str) -> type[P]:
        """The part of that name.

        Raises:
            PlanError: There is none; the message lists those there are.
        """
        if name not in self._parts:
            raise PlanError(unknown(self.kind, name, self._parts))
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._parts)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._parts)

    def __contains__(self, name: object) -> bool:
        """Whether there is a part of that name."""
        return name in self._parts

    def name_of(self, part: P) -> str:
        """The name of a part's class.

        Raises:
            PlanError: Its class is not in the table.
        """
        if type(part) not in self._names:
            known = ", ".join(sorted(self._parts))
            raise PlanError(
                f"{type(part).__name__} is not a registered {self.kind}; known: {known}. "
                f"Give the table in thinwire.{self.kind}s one more line."
            )
        return self._names[type(part)]

    def describe(self, part: P) -> dict[str, Any]:
        """A part as plain data: its name and its options, nested parts included."""
        options = {f.name: getattr(part, f.name) for f in dataclasses.fields(part)}  # type: ignore[arg-type]
        plain = {key: self.describe(value) if type(value) in self._names else value for key, value in options.items()}
        return {"name": self.name_of(part), **plain}

    def build(self, description: Mapping[str, Any]) -> P:
        """The inverse of `describe`.

        Raises:
            PlanError: The name or an option is unknown.
        """
        options = dict(description)
        part = self[str(options.pop("name", ""))]
        known = {f.name for f in dataclasses.fields(part)}  # type: ignore[arg-type]
        for key, value in options.items():
            if key not in known:
                raise PlanError(unknown(f"option of {part.__name__}", key, known))
            if isinstance(value, Mapping):
                options[key] = self.build(value)
        return part(**options)


def unknown(kind: str, name: str, known: Mapping[str, Any] | set[str]) -> str:
    """The message for a name that is not in a table: what was asked, what is near it, what there is."""
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"there is no {kind} named {name!r}.{hint} Known: {', '.join(sorted(known))}."


def add(table: Table[P], name: str, part: type[P]) -> None:
    """Register a part of your own under a new name, on every rank alike.

    Args:
        table: For example ``thinwire.selectors.SELECTORS``.
        name: The name it has in descriptions of plans.
        part: The class, a frozen dataclass.

    Raises:
        PlanError: The name is taken.
    """
    if name in table:
        raise PlanError(f"there is a {table.kind} named {name!r} already; choose another name")
    table._parts[name] = part
    table._names[part] = name
