# SPDX-License-Identifier: BSD-2-Clause
"""The scripts of the stack: each passes with each protocol, and each MUST of RFC 9293 has one or a reason."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.stack import builds
from tests.stack.conformance import cases, program, runs, table
from tests.stack.conformance.__main__ import LIBRARY


@pytest.fixture(scope="module")
def library() -> Path:
    return builds.make("release", LIBRARY) / LIBRARY


def test_all_scripts_pass_with_each_protocol(tmp_path: Path) -> None:
    """In a process of its own, because a fork of pytest's takes as long as a script."""
    results = tmp_path / "results.json"
    words = [sys.executable, "-m", "tests.stack.conformance", "--json", str(results)]
    done = subprocess.run(words, cwd=builds.ROOT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    played = {(each["script"], each["family"]) for each in json.loads(results.read_text()) if each["result"] == "pass"}
    assert played == {(case.name, family) for case in cases.read_folder(table.OWN) for family in case.families}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("+0 > S. 0:0(0) ack 2 <...>", "sent: S. 0(0) ack 1"),
        ("+1 > S. 0:0(0) ack 1 <...>", "not 1.000"),
        ("+.5 < . 1:1(0) ack 1 win 100", "unexpected"),
        ("+0 > S. 0:0(0) ack 1 <mss 1400>", "options <mss 1460>"),
        ("+0 getsockopt(3, SOL_SOCKET, SO_ERROR, [7], [4]) = 0", "getsockopt() gave 0"),
        ("+0 getsockopt(3, SOL_SOCKET, SO_ERROR, [0], [8]) = 0", "getsockopt() gave 4 bytes"),
    ],
)
def test_a_difference_is_reported_with_its_line(library: Path, tmp_path: Path, line: str, error: str) -> None:
    listen = (table.OWN / "parts" / "listen.pkt").read_text()
    (tmp_path / "wrong.pkt").write_text(f"{listen}+0 < S 0:0(0) win 100 <mss 1000>\n{line}\n")
    [case] = cases.read_folder(tmp_path)
    [result] = runs.run(library, [(case, "ipv4")])
    assert result.result == "fail"
    assert result.error is not None
    assert result.error.startswith("line 6: ")
    assert error in result.error


def test_a_script_that_hangs_is_ended(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the state of its threads."""
    (tmp_path / "hangs.pkt").write_text((table.OWN / "parts" / "listen.pkt").read_text())
    monkeypatch.setattr(runs, "WAIT", 0)
    monkeypatch.setattr(runs, "play", lambda *_, **__: time.sleep(60))
    [case, *_] = cases.read_folder(tmp_path)
    [result] = runs.run(library, [(case, "ipv4")])
    assert result.error is not None
    assert re.fullmatch(r"not finished after 0 seconds; its threads: \S+ [A-Z] \d\.\d+ s \w+", result.error)


def test_what_is_ignored_makes_no_difference(library: Path, tmp_path: Path) -> None:
    established = "families ipv4\n" + (table.OWN / "parts" / "listen.pkt").read_text()
    established += "+0 < S 0:0(0) win 100 <mss 1000,sackOK,nop,nop>\n"
    (tmp_path / "loose.pkt").write_text(established + "+0 > S. 0:0(0) ack 1 win 9 <sackOK,mss 1460>\n")
    [case] = cases.read_folder(tmp_path)
    for loose, result in (((), "fail"), (("window",), "fail"), (("window", "order"), "pass")):
        assert [each.result for each in runs.run(library, [(case, "ipv4")], loose=loose)] == [result]


def test_a_folder_is_run_with_the_programs_that_its_scripts_name_outside_it(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    scripts = suite / "tcp" / "close"
    for folder in (scripts, suite / "common", suite / "others"):
        folder.mkdir(parents=True)
    (scripts / "one.pkt").write_text("`../../common/defaults.sh`\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n")
    (suite / "common" / "defaults.sh").write_text("../../common/set_sysctls.py\n")
    (suite / "common" / "set_sysctls.py").write_text("")
    (suite / "common" / "large.bin").write_text("no program")
    (suite / "others" / "two.pkt").write_text("")
    for folder, below in ((scripts, "tcp/close"), (suite / "tcp", "tcp"), (suite, "")):
        room = tmp_path / f"room-{len(below)}"
        copy = program.copy_tree(folder, room)
        assert (copy / scripts.relative_to(folder) / "one.pkt").is_file()
        assert (copy / scripts.relative_to(folder) / "../../common/set_sysctls.py").is_file()
        if below:
            assert copy == room / below
            assert not (room / "others").exists()
            assert not (room / "common" / "large.bin").exists()


@pytest.mark.parametrize(
    ("name", "families"),
    [("one.pkt", ("ipv4", "mapped", "ipv6")), ("basic-v4.pkt", ("ipv4", "mapped")), ("basic-ipv6.pkt", ("ipv6",))],
)
def test_a_script_of_a_folder_runs_with_the_protocols_that_its_name_permits(
    name: str, families: tuple[str, ...]
) -> None:
    assert program.families_of(Path(name)) == families
    assert set(program.OPTIONS) == set(program.ADDRESSES) == set(cases.FAMILIES)
