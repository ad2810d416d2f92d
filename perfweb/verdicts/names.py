# SPDX-License-Identifier: BSD-2-Clause
"""Names of tests and files of a run in pages, addresses and archives."""

from __future__ import annotations

from collections.abc import Iterable

from perfweb.runs.catalogue import TESTS

_PLACES = {name: place for place, name in enumerate(TESTS)}


def title(test: str) -> str:
    """Return a test's title; its name if the catalogue does not have it (any more)."""
    return TESTS[test].title if test in TESTS else test


def short(test: str) -> str:
    """Return a test's name without its path and family, if these are the usual ones."""
    return test.removesuffix("/host-host/ipv4")


def anchor(test: str) -> str:
    """Return a test's name in the form of a fragment of an address."""
    return test.replace("/", "-").replace(".", "-")


def topic(test: str) -> str:
    """Return the group that a test is shown with: tcp, udp, connect or forward, with a 6 for IPv6."""
    measure, _, rest = test.partition("/")
    family = "6" if rest.endswith("ipv6") else ""
    if "router" in rest:
        return f"forward{family}"
    if measure in {"tcpconnect", "tcp.crr", "tcp.cc"}:
        return f"connect{family}"
    first = measure.partition(".")[0]
    return f"{'tcp' if first in {'iperf3', 'tcpbench'} else first}{family}"


def by_topic(tests: Iterable[str] = TESTS) -> dict[str, list[str]]:
    """Group tests, by default those of the catalogue, by topic."""
    found: dict[str, list[str]] = {}
    for test in tests:
        found.setdefault(topic(test), []).append(test)
    return found


def in_order(tests: Iterable[str]) -> list[str]:
    """Order tests as the catalogue lists them, which keeps related ones together; unknown names come last."""
    return sorted(set(tests), key=lambda test: (_PLACES.get(test, len(_PLACES)), test))


def ministat_file(variant: str, test: str) -> str:
    """Return the name of the file with the samples of a test on a variant, one number on a line."""
    return f"{variant}/{test}.txt"
