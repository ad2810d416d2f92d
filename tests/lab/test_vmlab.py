# SPDX-License-Identifier: BSD-2-Clause
"""The lab of virtual machines: real guests, a real boot with another command line, and a kernel that panics."""

from __future__ import annotations

import io
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from perfweb.runs.catalogue import TESTS
from playbooks.module_utils import processes, tunnels
from runners import tools, vmlab
from runners.driver import Listener, play
from runners.labs import LabError, ssh_options
from runners.vmlab import Lab
from tests.stack.topology import Installed

HOSTS = ("left", "dut", "right")


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    """The release build, installed."""
    build = Installed()
    yield build
    build.remove()


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that is up; a test leaves it so."""
    lab = Lab(f"v{os.getpid()}"[:9], 1 + os.getpid() % 99, tmp_path_factory.mktemp("vmlab") / "state")
    vmlab.up(lab)
    yield lab
    vmlab.down(lab)


def _ssh(lab: Lab, host: str, command: str, content: bytes = b"") -> str:
    argv = ["ssh", *ssh_options(lab), "-i", str(lab.keys / "operator"), "-p", str(lab.ssh_port), "-o", "BatchMode=yes"]
    argv += ["-o", "ServerAliveInterval=5", f"root@{lab.management(host)}", command]
    return subprocess.run(argv, input=content, capture_output=True).stdout.decode().strip()


def _installed_there(lab: Lab, host: str, installed: Installed) -> str:
    """The prefix of a build on a guest, which cannot make one."""
    prefix = "/var/tmp/perfweb/builds/test"  # noqa: S108  # of a guest
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in ("bin", "lib", "libexec"):
            archive.add(installed.prefix / name, name)
    unpack = f"import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode='r|gz').extractall('{prefix}')"
    _ssh(lab, host, f'mkdir -p {prefix} && python3 -c "{unpack}"', packed.getvalue())
    return prefix


def _crash(lab: Lab) -> None:
    """Crashes the device under test, and waits until it has ended."""
    process = processes.running(lab.file("dut", "pid"))
    assert process is not None
    _ssh(lab, "dut", "echo c >/proc/sysrq-trigger")
    assert processes.wait_until_gone(process, 60)


def test_guests_are_up_and_wired(guests: Lab) -> None:
    assert vmlab.status(guests) == dict.fromkeys(HOSTS, True)
    assert [_ssh(guests, host, "hostname") for host in HOSTS] == [guests.host_name(host) for host in HOSTS]
    _ssh(guests, "dut", f"ip address add 10.{guests.net}.2.2/24 dev data1")
    assert "1 received" in _ssh(guests, "right", f"ping -c 1 -W 20 10.{guests.net}.2.2")
    _ssh(guests, "dut", "ip address flush dev data1")


def test_raising_what_is_up_changes_nothing(guests: Lab) -> None:
    before = _ssh(guests, "left", "cat /proc/sys/kernel/random/boot_id")
    vmlab.up(guests)
    assert _ssh(guests, "left", "cat /proc/sys/kernel/random/boot_id") == before != ""


def test_a_boot_has_the_words_and_keeps_the_disk_and_the_links(guests: Lab) -> None:
    before = _ssh(guests, "dut", "touch /var/tmp/perfweb/stays /root/goes; sync; cat /proc/sys/kernel/random/boot_id")
    assert "Linux version" in vmlab.boot(guests, "dut", "mitigations=off nokaslr")
    assert _ssh(guests, "dut", "cat /proc/sys/kernel/random/boot_id") != before
    assert _ssh(guests, "dut", "cat /proc/cmdline").endswith(f"{vmlab.MARK} mitigations=off nokaslr")
    assert _ssh(guests, "dut", "ls /var/tmp/perfweb/stays /root/goes") == "/var/tmp/perfweb/stays"  # noqa: S108  # of a guest
    _ssh(guests, "dut", f"ip address add 10.{guests.net}.1.2/24 dev data0")
    assert "1 received" in _ssh(guests, "left", f"ping -c 1 -W 20 10.{guests.net}.1.2")
    vmlab.boot(guests, "dut")
    assert _ssh(guests, "dut", "cat /proc/cmdline").endswith(vmlab.MARK)


def test_a_guest_that_panics_ends_and_says_why_at_the_next_boot(guests: Lab) -> None:
    _crash(guests)
    assert vmlab.status(guests) == {"left": True, "dut": False, "right": True}
    said = vmlab.boot(guests, "dut")
    assert "Kernel panic" in said.partition("Linux version")[0]
    assert _ssh(guests, "dut", "hostname") == guests.host_name("dut")


def test_restoring_boots_a_host_that_has_crashed_and_proves_it_as_it_was(guests: Lab) -> None:
    run = {"run_id": "crashed"}
    play("prepare", inventory=guests.inventory, extra_vars=run, timeout=300).require_ok()
    # The disk hears of all names now, and only of the texts that were waited for (ext4's delayed allocation).
    record = _ssh(guests, "dut", "cd /var/tmp/perfweb; touch other; sync other; ls $PWD/*.before")
    _crash(guests)
    play("restore", inventory=guests.inventory, extra_vars=run, timeout=300).require_ok()
    assert record
    assert _ssh(guests, "dut", f"ls {record}") == ""
    assert _ssh(guests, "dut", "cat /proc/cmdline").endswith(vmlab.MARK)


@pytest.mark.parametrize(("target", "kind"), [("linux", "gif"), ("stack", "gre")])
def test_packets_between_guests_travel_in_a_tunnel(guests: Lab, installed: Installed, target: str, kind: str) -> None:
    topology, ends, told = f"host-{kind}-host", tunnels.TUNNELS[kind], list[dict[str, Any]]()
    about: dict[str, Any] = {"run_id": f"tunnel-{kind}", "boot_id": "boot", "target": target, "topology": topology}
    about |= {"server": "netserver", "prefix": _installed_there(guests, "dut", installed), "timeout": 60}
    inside = {f"tcp.rr/{topology}/ipv4": ends.address("dut"), f"udp.rr/{topology}/ipv6": ends.address6("dut")}
    about["measurements"] = [
        {"test": name, "argv": tools.command(TESTS[name].measure, to.split("/")[0], 1, ""), "samples": 1}
        for name, to in inside.items()
    ]
    run = partial(play, inventory=guests.inventory, timeout=300)
    run("prepare", extra_vars=about | {"tunnels": {"left": [kind], "dut": [kind]}}).require_ok()
    data = run("replicate", extra_vars=about, listener=Listener(told=told.append)).require_ok().data
    said = data["counters"]["sysctl" if target == "stack" else "ip-link"]
    run("restore", extra_vars=about).require_ok()
    measured = {entry["test"]: entry["sample"] for entry in told if "sample" in entry}
    trips = sum(tools.parse(TESTS[name].measure, measured[name]["stdout"])[0].value for name in inside)
    assert {sample["gauges"]["interface_errors"] for sample in measured.values()} == {0}
    if target == "stack":
        counted = re.search(rf"^if\.{kind}0\.stats\.ipackets: (\d+)$", said, re.MULTILINE)
    else:
        counted = re.search(rf" {tunnels.INTERFACE}@data0: .*\n.*\n.*\n +\d+ +(\d+) ", said)
    assert counted is not None, said
    assert int(counted[1]) > trips / 2
    assert tunnels.INTERFACE not in _ssh(guests, "left", "ip -brief link") + _ssh(guests, "dut", "ip -brief link")


def test_only_the_device_under_test_takes_words(guests: Lab) -> None:
    with pytest.raises(LabError, match="only the device under test"):
        vmlab.boot(guests, "left", "mitigations=off")


def test_a_lab_that_is_down_has_left_its_consoles_only(guests: Lab) -> None:
    pids = [processes.running(guests.file(host, "pid")) for host in HOSTS]
    vmlab.down(guests)
    assert [process for process in pids if process is None or process.alive()] == []
    assert {path.name for path in guests.state.iterdir()} == {
        *(f"guest-{host}.console" for host in HOSTS),
        "guest-lock",
    }
    assert "Linux version" in guests.file("dut", "console").read_text(errors="replace")
    with pytest.raises(LabError, match="no lab in"):
        vmlab.boot(guests, "dut")


def test_no_kernel_for_guests_says_what_to_do(tmp_path: Path) -> None:
    lab = Lab("none", 99, tmp_path / "state", tmp_path / "store")
    with pytest.raises(LabError, match=r"runners/install.sh vm"):
        vmlab.up(lab)
