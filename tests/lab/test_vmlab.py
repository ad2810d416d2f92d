# SPDX-License-Identifier: BSD-2-Clause
"""The lab of virtual machines: real guests, a real boot with another command line, and a kernel that panics."""

from __future__ import annotations

import io
import os
import re
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from perfweb.measuring import tools
from perfweb.runs.catalogue import TESTS
from playbooks.module_utils import processes, tunnels
from runners.ansible.driver import NO_LISTENER, Listener, PlayResult, play
from runners.labs import vmlab
from runners.labs.common import LabError, ssh_options
from runners.labs.vmlab import Lab
from tests.stack.topology import Installed

HOSTS = ("left", "dut", "right")
Play = Callable[..., PlayResult]


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A running lab; a test leaves it running."""
    lab = Lab(f"v{os.getpid()}"[:9], 1 + os.getpid() % 99, tmp_path_factory.mktemp("vmlab") / "state")
    vmlab.up(lab)
    yield lab
    vmlab.down(lab)


@pytest.fixture(scope="module")
def run(guests: Lab) -> Play:
    """Plays of one run on the kernel. Modules take seconds in emulated guests, so tests share a prepared run."""
    about = {"run_id": "guests", "boot_id": "boot", "target": "linux", "topology": "host-host", "server": "none"}

    def _play(name: str, listener: Listener = NO_LISTENER, **values: object) -> PlayResult:
        values = {**about, **values}
        return play(name, inventory=guests.inventory, extra_vars=values, timeout=900, listener=listener)

    return _play


@pytest.fixture(scope="module")
def prepared(run: Play) -> None:
    """Prepare the run; the last test that needs it restores it."""
    run("prepare").require_ok()


@pytest.fixture(scope="module")
def prefix(guests: Lab) -> str:
    """Install a build on left and dut, which cannot make one."""
    where = "/var/tmp/perfweb/builds/test"  # noqa: S108  # of a guest
    build, packed = Installed(), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in ("bin", "lib", "libexec"):
            archive.add(build.prefix / name, name)
    build.remove()
    unpack = f"import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode='r|gz').extractall('{where}')"
    for host in ("left", "dut"):
        _ssh(guests, host, f'mkdir -p {where} && python3 -c "{unpack}"', packed.getvalue())
    return where


def _ssh(lab: Lab, host: str, command: str, content: bytes = b"") -> str:
    argv = ["ssh", *ssh_options(lab), "-i", str(lab.keys / "operator"), "-p", str(lab.ssh_port), "-o", "BatchMode=yes"]
    argv += ["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=24", f"root@{lab.management(host)}", command]
    return subprocess.run(argv, input=content, capture_output=True).stdout.decode().strip()


def _crash(lab: Lab) -> None:
    """Crashes the device under test, and waits until it has ended."""
    process = processes.running(lab.file("dut", "pid"))
    assert process is not None
    _ssh(lab, "dut", "echo c >/proc/sysrq-trigger")
    assert processes.wait_until_gone(process, 300)


def test_guests_are_up_and_wired(guests: Lab) -> None:
    assert vmlab.status(guests) == dict.fromkeys(HOSTS, True)
    assert [_ssh(guests, host, "hostname") for host in HOSTS] == [guests.host_name(host) for host in HOSTS]
    _ssh(guests, "dut", f"ip address add 10.{guests.net}.2.2/24 dev data1")
    assert "1 received" in _ssh(guests, "right", f"ping -c 1 -W 60 10.{guests.net}.2.2")
    _ssh(guests, "dut", "ip address flush dev data1")
    # Python used its compiled files: otherwise it would have written new ones. init made the directory.
    assert _ssh(guests, "right", "find /usr/lib/python3 /usr/lib/python3.11 -newer /run/sshd") == ""


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
    assert "1 received" in _ssh(guests, "left", f"ping -c 1 -W 60 10.{guests.net}.1.2")


def test_a_guest_that_panics_ends_and_the_next_boot_has_no_words_and_returns_its_console(guests: Lab) -> None:
    _crash(guests)
    assert vmlab.status(guests) == {"left": True, "dut": False, "right": True}
    console = vmlab.boot(guests, "dut")
    assert "Kernel panic" in console.partition("Linux version")[0]
    assert _ssh(guests, "dut", "hostname") == guests.host_name("dut")
    assert _ssh(guests, "dut", "cat /proc/cmdline").endswith(vmlab.MARK)


# The end on left is Linux's, so these are Linux's of either kind, and one of the stack's, with either family inside.
@pytest.mark.parametrize(
    ("target", "kind", "names"),
    [("linux", "gif", ["udp.blast/ipv4"]), ("stack", "gre", ["tcp.rr/ipv4", "udp.rr/ipv6"])],
)
def test_packets_between_guests_travel_in_a_tunnel(
    guests: Lab, run: Play, prepared: None, prefix: str, target: str, kind: str, names: Sequence[str]
) -> None:
    topology, end = f"host-{kind}-host", tunnels.TUNNELS[kind]
    inside = {"ipv4": end.address("dut"), "ipv6": end.address6("dut")}
    tests = [TESTS[name.replace("/", f"/{topology}/")] for name in names]
    argv = {test.name: tools.command(test.measure, inside[test.family].split("/")[0], 1, prefix) for test in tests}
    about = {
        "boot_id": f"{target}-{kind}", "target": target, "topology": topology, "server": tests[0].server,
        "prefix": prefix, "timeout": 60, "tunnels": {"left": [kind], "dut": [kind]},
        "measurements": [{"test": name, "argv": words, "samples": 1} for name, words in argv.items()],
    }  # fmt: skip
    reported: list[dict[str, Any]] = []
    data = run("replicate", listener=Listener(report=reported.append), **about).require_ok().data
    counters = data["counters"]["sysctl" if target == "stack" else "ip-link"]
    samples = {entry["test"]: entry["sample"] for entry in reported if "sample" in entry}
    assert {sample["gauges"]["interface_errors"] for sample in samples.values()} == {0}
    if target == "stack":
        counted = re.search(rf"^if\.{kind}0\.stats\.ipackets: (\d+)$", counters, re.MULTILINE)
    else:
        counted = re.search(rf" {tunnels.INTERFACE}@data0: .*\n.*\n.*\n +\d+ +(\d+) ", counters)
    assert counted is not None, counters
    # Each sample was a second of trips, or of datagrams, by the rate that is parsed first.
    assert int(counted[1]) > sum(tools.parse(test.measure, samples[test.name]["stdout"])[0].value for test in tests) / 2
    assert tunnels.INTERFACE not in _ssh(guests, "left", "ip -brief link") + _ssh(guests, "dut", "ip -brief link")


def test_a_host_is_not_booted_with_words_that_it_does_not_allow(guests: Lab, run: Play, prepared: None) -> None:
    """The guard of the host refuses, before anything is changed there. test_linux.py tries more words, on hosts that
    are not emulated.
    """
    before = _ssh(guests, "dut", "cat /proc/sys/kernel/random/boot_id")
    result = run("boot", tunables={"boot.command_line": "quiet rd.break"})
    assert [failure.host for failure in result.failures] == [guests.host_name("dut")]
    assert "refused: the module boot_words may not be called with words" in result.failures[0].message
    for words in ("init=/bin/sh", "quiet rd.break", "debug_x", "quiet  nosmt"):
        with pytest.raises(LabError, match="the kernel is not booted with other words"):
            vmlab.boot(guests, "dut", words)
    run("restore").require_ok()
    assert _ssh(guests, "dut", "cat /proc/sys/kernel/random/boot_id") == before != ""
    assert tunnels.INTERFACE not in _ssh(guests, "left", "ip -brief link") + _ssh(guests, "dut", "ip -brief link")


def test_a_host_that_has_crashed_is_booted_without_words_and_then_with_them(guests: Lab, run: Play) -> None:
    run("prepare").require_ok()
    _ssh(guests, "dut", "sync")
    _crash(guests)
    booted = run("boot", tunables={"boot.command_line": "nokaslr"}).require_ok().data
    assert booted["effective"]["boot.command_line"] == "nokaslr"
    assert "Linux version" in booted["boot_log"]
    run("restore").require_ok()
    assert _ssh(guests, "dut", "cat /proc/cmdline").endswith(vmlab.MARK)


def test_restoring_boots_a_host_that_has_crashed_and_proves_it_as_it_was(guests: Lab, run: Play) -> None:
    run("prepare").require_ok()
    # The disk gets all names now, and only the texts that were synced (ext4's delayed allocation).
    record = _ssh(guests, "dut", "cd /var/tmp/perfweb; touch other; sync other; ls $PWD/*.before")
    _crash(guests)
    run("restore").require_ok()
    assert record
    assert _ssh(guests, "dut", f"ls {record}") == ""
    assert _ssh(guests, "dut", "cat /proc/cmdline").endswith(vmlab.MARK)


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


def test_the_error_for_a_missing_guest_kernel_states_what_to_do(tmp_path: Path) -> None:
    lab = Lab("none", 99, tmp_path / "state", tmp_path / "store")
    with pytest.raises(LabError, match=r"runners/install.sh vm"):
        vmlab.up(lab)
