# SPDX-License-Identifier: BSD-2-Clause
"""Events are read from any lines, and no text of a server moves the cursor of a terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from perfctl.commands import event_line, verdict_status
from perfctl.events import Event, parse
from perfctl.server import Server
from perfctl.tables import plain, quantity, table
from perfctl.usage import Status


@given(
    st.lists(
        st.tuples(st.text(st.characters(categories=["L", "N"]), min_size=1), st.dictionaries(st.text(), st.integers()))
    )
)
def test_events_come_back_as_they_were_written(written: list[tuple[str, dict[str, int]]]) -> None:
    lines = ["retry: 3000\n", "\n", ": still here\n", "\n"]
    for number, (name, values) in enumerate(written):
        lines += [f"id: {number}-0\n", f"event: {name}\n", f"data: {json.dumps(values)}\n", "\n"]
    expected = [Event(f"{number}-0", name, values) for number, (name, values) in enumerate(written)]
    assert list(parse(lines)) == expected


@given(st.lists(st.text()))
def test_any_lines_are_events_or_nothing(lines: list[str]) -> None:
    for event in parse(lines):
        assert isinstance(event_line(event), str)


@given(
    st.sampled_from(["state", "eta", "boot", "measurement", "other"]),
    st.dictionaries(st.text(), st.none() | st.text() | st.integers() | st.floats()),
)
def test_any_values_are_a_line_or_nothing(name: str, values: dict[str, object]) -> None:
    assert "\x1b" not in event_line(Event("1-0", name, values))


def test_events_are_reported_in_a_line() -> None:
    done = {
        "test": "tcp.rr/host-host/ipv4",
        "variant": "direct",
        "state": "ok",
        "mean": 41234.5,
        "unit": "transactions/s",
    }
    assert event_line(Event("1-0", "measurement", done)) == "  tcp.rr/host-host/ipv4 on direct: 41,234 transactions/s"
    failed = {**done, "state": "failed", "reason": "no\x1b[31m route", "mean": None}
    assert event_line(Event("1-0", "measurement", failed)).endswith("direct: failed: no?[31m route")
    assert event_line(Event("1-0", "state", {"state": "running", "reason": ""})) == "running"


@given(st.text())
def test_nothing_moves_the_cursor(text: str) -> None:
    assert all(sign in "\n\t" or unicodedata.category(sign)[0] != "C" for sign in plain(text))


def test_columns_and_quantities() -> None:
    assert table(("a", "long"), [("x", "1"), ("yyy", "2")]) == "a    long\nx    1\nyyy  2"
    assert quantity(14.123456e9, "bits/s") == "14.123 Gbits/s"
    assert quantity(0.0, "bytes/s") == "0 bytes/s"


@pytest.mark.parametrize("address", ["", "localhost:8000", "file:///etc/passwd", "ftp://example.org"])
def test_what_is_no_server_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="like http://"):
        Server(address)


@pytest.mark.parametrize(
    ("counts", "decided", "status"),
    [
        ({"faster": 3}, True, Status.FINE),
        ({"faster": 3, "slower": 1, "not enough data": 1}, True, Status.SLOWER),
        ({"equivalent": 1, "not enough data": 1}, False, Status.FINE),
        ({"equivalent": 1, "not enough data": 1}, True, Status.NOT_ENOUGH_DATA),
        ({}, True, Status.NOT_ENOUGH_DATA),
        ({}, False, Status.FINE),
    ],
)
def test_the_status_is_that_of_the_worst_verdict(counts: dict[str, int], decided: bool, status: Status) -> None:
    compared = {"verdicts": counts, "tests": [{} for _ in range(sum(counts.values()))]}
    assert verdict_status([compared], decided=decided) is status  # type: ignore[list-item]
