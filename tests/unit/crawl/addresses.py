# SPDX-License-Identifier: BSD-2-Clause
"""Every address of the site, found in its URL configuration."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver
from ninja.operation import PathView

from perfweb.accounts.permissions import Action

NO_CHANGE = {"GET", "HEAD"}


@dataclass(frozen=True)
class Address:
    """A route of the site and its view."""

    app: str
    route: str
    view: Any

    @property
    def name(self) -> str:
        """The route with its variables in braces."""
        return "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", self.route)

    @property
    def variables(self) -> list[str]:
        """The names of the variables of the route."""
        return re.findall(r"<(?:\w+:)?(\w+)>", self.route)

    @cached_property
    def operations(self) -> list[Any]:
        """The operations of the API at this address."""
        owner = inspect.getclosurevars(self.view).nonlocals.get("self") if inspect.isfunction(self.view) else None
        return owner.operations if isinstance(owner, PathView) else []

    @cached_property
    def action(self) -> Action | None:
        """The action of its POST."""
        changing = [operation.view_func for operation in self.operations if set(operation.methods) - NO_CHANGE]
        return getattr(changing[0] if changing else self.view, "action", None)

    @property
    def is_personal(self) -> bool:
        """Whether GET depends on the user."""
        return self.name == "/api/v1/account" or bool(self.action and not self.operations)


def _routes(patterns: list[Any], prefix: str = "", app: str = "") -> Iterator[Address]:
    for pattern in patterns:
        route = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            module = getattr(pattern.urlconf_module, "__name__", "")
            yield from _routes(pattern.url_patterns, route, app or module.removeprefix("perfweb.").partition(".")[0])
        elif isinstance(pattern, URLPattern):
            yield Address(app, route, pattern.callback)


def _addresses() -> list[Address]:
    """All addresses; if two patterns are alike the first responds."""
    found: dict[str, Address] = {}
    for address in _routes(get_resolver().url_patterns):
        found.setdefault(address.name, address)
    return list(found.values())


ADDRESSES = _addresses()
