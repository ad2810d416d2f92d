# SPDX-License-Identifier: BSD-2-Clause
"""The instructions of a message are counted: repeatably, and more with a knob that adds work."""

from __future__ import annotations

import pytest

from tests.stack import path
from tests.stack.topology import Installed


def test_what_is_executed_twice_is_two_instructions_in_one_line() -> None:
    straight = [0x1000, 0x1003, 0x1007]
    looped = [0x1000, 0x1003, 0x1000, 0x1003, 0x1000 + path.LINE]
    assert path.cost([straight]) == (3, 1, 1, 0)
    assert path.cost([looped]) == (5, 2, 1, 2)
    assert path.cost([straight, looped, looped]) == (5, 2, 1, 2)


def test_a_knob_is_left_out_where_it_does_nothing() -> None:
    found = {name: tunables for name, _, tunables in path.rows([("unix.locking", "pair"), ("fd.lock", "filedesc")])}
    assert list(found) == [
        "TCP", "TCP, fd.lock=filedesc", "TCP, IPv6", "TCP, IPv6, fd.lock=filedesc",
        "UNIX", "UNIX, unix.locking=pair", "UNIX, fd.lock=filedesc",
    ]  # fmt: skip
    assert found["UNIX, unix.locking=pair"] == {**found["UNIX"], "unix.locking": "pair"}


def test_giant_is_seen_in_a_message_of_each_way(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path, "BATCHES", 2)
    monkeypatch.setattr(path, "MESSAGES", 3)
    assert path.main(["debug.mpsafenet=0"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    counts = {line[: path.NAME].strip(): [int(word) for word in line[path.NAME :].split()] for line in lines}
    for way in path.WAYS:
        alone, giant = counts[way], counts[f"{way}, debug.mpsafenet=0"]
        assert giant[0] > alone[0] > alone[3] > 0
        assert alone[0] > alone[1] > alone[2] > 0


@pytest.mark.parametrize("word", ["net.isr.dispatch", "=direct"])
def test_a_knob_without_a_value_is_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        path.main([word])
    assert "is no KNOB=VALUE" in capsys.readouterr().err


def test_the_error_for_an_unknown_knob_is_that_of_the_stack() -> None:
    with pytest.raises(SystemExit, match=r"unknown name 'nonsense'"):
        path.main(["nonsense=1"])


def test_a_message_that_needs_two_threads_is_not_waited_for(
    installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = path.WAYS["TCP"]
    monkeypatch.setattr(path, "PATIENCE", 5)
    monkeypatch.setattr(path, "MESSAGES", 1)  # fast, if one thread did it all
    with pytest.raises(SystemExit, match="waits for another thread"):
        path.measure(installed.prefix, way.address, {**way.tunables, "net.isr.dispatch": "deferred"})
