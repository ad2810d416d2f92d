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
from tests.stack.topology import Topology


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
    tmp_path: Path, name: str, families: tuple[str, ...]
) -> None:
    (tmp_path / name).write_text("// nothing\n")
    assert program.families_of(tmp_path / name) == families
    assert set(program.OPTIONS) == set(program.ADDRESSES) == set(cases.FAMILIES)


def test_addresses_that_a_script_sets_replace_those_of_the_runner(tmp_path: Path) -> None:
    script = tmp_path / "one.pkt"
    script.write_text("// a comment\n--local_ip=192.168.0.7\n--remote_ip=10.2.0.3\n")
    assert program.own_addresses(script) == {"local": "192.168.0.7", "remote": "10.2.0.3"}
    assert program.families_of(script) == ("ipv4", "mapped")


LISTENERS = """
import socket, time
socks = [socket.create_server(("", 8080)), socket.create_server(("::", 8081), family=socket.AF_INET6)]
socks.append(socket.create_connection(("127.0.0.1", 8080)))
print("listening", flush=True)
time.sleep(600)
"""


def test_scripts_search_the_list_of_sockets_of_the_stack(topology: Topology, tmp_path: Path) -> None:
    """The host's own has none of them."""
    topology.boot({}, [sys.executable, "-c", LISTENERS])
    topology.await_line("boot.log", "listening")
    (tmp_path / "grep").write_text(program.GREP)
    (tmp_path / "grep").chmod(0o755)
    (tmp_path / "stackctl").symlink_to(topology.installed.prefix / "bin" / "stackctl")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "STACK_CTL": f"{topology.directory}/ctl"}

    def shell(command: str) -> list[str]:
        words = ["/bin/sh", "-c", command]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == (0 if done.stdout else 1), done.stderr
        return done.stdout.splitlines()

    [listener] = shell('grep " 0A " /proc/net/tcp /proc/net/tcp6 | grep ":1F90"')
    assert re.search(r": +\d+: 00000000:1F90 00000000:0000 0A 00000000:00000000$", listener)
    assert len(shell('grep " 01 " /proc/net/tcp | grep "0100007F:1F90"')) == 2
    assert len(shell('grep " 0A " /proc/net/tcp6')) == 1
    assert shell('grep "1F92" /proc/net/tcp /proc/net/tcp6') == []
    assert shell('echo "a b" | grep "a b"') == ["a b"]
