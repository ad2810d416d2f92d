# SPDX-License-Identifier: BSD-2-Clause
"""Typed access to YAML nodes with their positions, so that an error can point to its place.

PyYAML's own constructors drop positions and guess types (`on` becomes True); here a scalar is its text.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import NoReturn

import yaml

_NULL = "tag:yaml.org,2002:null"


class PlanError(ValueError):
    """An error in a plan; `line` and `column` count from 1."""

    def __init__(self, line: int, column: int, field: str, problem: str) -> None:
        super().__init__(f"line {line}, column {column}: {field} {problem}")
        self.line = line
        self.column = column
        self.field = field
        self.problem = problem


class Field:
    """A node with its path (`variants[0].name`), for errors."""

    def __init__(self, path: str, node: yaml.Node) -> None:
        self.path = path
        self.node = node

    def reject(self, problem: str) -> NoReturn:
        mark = self.node.start_mark
        raise PlanError(mark.line + 1, mark.column + 1, self.path, problem)

    def scalar(self) -> str:
        """The text of a plain value, as written."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag == _NULL:
            self.reject("must be a single value")
        return str(self.node.value)

    def matching(self, pattern: re.Pattern[str], rule: str) -> str:
        text = self.scalar()
        if pattern.fullmatch(text) is None:
            self.reject(f"is {_shown(text)}; allowed: {rule}")
        return text

    def one_of(self, allowed: Sequence[str]) -> str:
        text = self.scalar()
        if text not in allowed:
            near = difflib.get_close_matches(text[:200], allowed, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            self.reject(f"is {_shown(text)}{hint}; allowed: {', '.join(allowed)}")
        return text

    def number(self, lowest: int, highest: int) -> int:
        text = self.scalar()
        if re.fullmatch(r"\d{1,9}", text, re.ASCII) is None or not lowest <= int(text) <= highest:
            self.reject(f"is {_shown(text)}; allowed: a whole number from {lowest} to {highest}")
        return int(text)

    def decimal(self, lowest: float, highest: float) -> float:
        text = self.scalar()
        if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text, re.ASCII) is None or not lowest <= float(text) <= highest:
            self.reject(f"is {_shown(text)}; allowed: a number from {lowest:g} to {highest:g}")
        return float(text)

    def minutes(self, lowest: float, highest: float) -> float:
        text = self.scalar()
        found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?) ?(min|h)", text, re.ASCII)
        minutes = float(found[1]) * (60 if found[2] == "h" else 1) if found else -1.0
        if not lowest <= minutes <= highest:
            self.reject(f"is {_shown(text)}; allowed: {lowest:g} min to {highest / 60:g} h, such as 30 min or 1.5 h")
        return minutes

    def items(self, fewest: int, most: int) -> list["Field"]:
        if not isinstance(self.node, yaml.SequenceNode):
            self.reject("must be a list")
        if not fewest <= len(self.node.value) <= most:
            self.reject(f"has {len(self.node.value)} entries; allowed: {fewest} to {most}")
        return [Field(f"{self.path}[{index}]", node) for index, node in enumerate(self.node.value)]

    def distinct(self, names: Sequence[str]) -> None:
        """Rejects this list if `names`, the names of its entries, has a duplicate."""
        for index, name in enumerate(names):
            if name in names[:index]:
                self.items(0, len(names))[index].reject(f"is a second {name!r}; each may appear once")


class Record:
    """A mapping whose keys are known."""

    def __init__(self, field: Field, most: int = 64) -> None:
        if not isinstance(field.node, yaml.MappingNode):
            field.reject("must be a mapping of `field: value` lines")
        if len(field.node.value) > most:
            field.reject(f"has {len(field.node.value)} fields; allowed: at most {most}")
        self.field = field
        self._values: dict[str, tuple[Field, Field]] = {}
        for key_node, value_node in field.node.value:
            key = Field(field.path, key_node)
            name = key.scalar()
            if name in self._values:
                key.reject(f"has {_shown(name)} a second time")
            prefix = "" if field.path == "plan" else f"{field.path}."
            self._values[name] = (key, Field(f"{prefix}{name[:40]}", value_node))

    def allow(self, *names: str) -> None:
        for name, (key, _) in self._values.items():
            if name not in names:
                near = difflib.get_close_matches(name[:200], names, n=1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                key.reject(f"has the unknown field {_shown(name)}{hint}; allowed: {', '.join(names)}")

    def fields(self) -> Iterator[tuple[Field, Field]]:
        yield from self._values.values()

    def get(self, name: str) -> Field | None:
        found = self._values.get(name)
        return found[1] if found else None

    def need(self, name: str) -> Field:
        return self.get(name) or self.field.reject(f"lacks the field {name!r}")

    def number(self, name: str, *, default: int, lowest: int, highest: int) -> int:
        field = self.get(name)
        return field.number(lowest, highest) if field else default

    def decimal(self, name: str, *, default: float, lowest: float, highest: float) -> float:
        field = self.get(name)
        return field.decimal(lowest, highest) if field else default

    def choice(self, name: str, *, default: str, allowed: Sequence[str]) -> str:
        field = self.get(name)
        return field.one_of(allowed) if field else default

    def text(self, name: str, *, default: str, longest: int) -> str:
        field = self.get(name)
        if field is None:
            return default
        text = field.scalar().strip()
        if not 1 <= len(text) <= longest or not text.isprintable():
            field.reject(f"must be one line of 1 to {longest} characters")
        return text


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
