# SPDX-License-Identifier: BSD-2-Clause
"""Starting and stopping a lab: twice, incomplete, after a crash, beside another one."""

from __future__ import annotations

import dataclasses
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from playbooks.module_utils import processes
from runners.labs import netlab
from runners.labs.common import LabError
from runners.labs.netlab import Lab
from tests.labs import raise_lab

HOSTS = ("left", "dut", "right")
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


def _output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def _ssh(lab: Lab, host: str, command: str) -> subprocess.CompletedProcess[str]:
    """Log in as Ansible does, by the inventory, but with another key."""
    inventory = yaml.safe_load(lab.inventory.read_text())["all"]
    common, variables = inventory["vars"], inventory["children"][host]["hosts"][lab.namespace(host)]
    options = [*common["ansible_ssh_common_args"].split(), "-i", str(lab.keys / "operator")]
    target = f"root@{variables['ansible_host']}"
    return subprocess.run(["ssh", *options, "-o", "BatchMode=yes", target, command], capture_output=True, text=True)


def _traces(lab: Lab) -> list[str]:
    """Return the parts of a lab that exist on the machine."""
    names = [line.split()[0] for line in _output("ip", "netns", "list").splitlines()]
    names += [line.split("@")[0].split()[0] for line in _output("ip", "-br", "link").splitlines()]
    return [name for name in names if name.startswith(f"{lab.name}-")]


def _servers(lab: Lab) -> list[processes.Process | None]:
    return [processes.running(lab.pid_file(host)) for host in HOSTS]


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_can_be_logged_in_to_and_is_alone_in_its_namespace(lab: Lab, host: str) -> None:
    done = _ssh(lab, host, "ip -br -4 address show dev mgmt0; ip netns identify $$")
    assert done.returncode == 0, done.stderr
    assert lab.management(host) in done.stdout
    assert lab.namespace(host) in done.stdout


def test_a_host_key_that_is_not_the_known_one_is_refused(lab: Lab, tmp_path: Path) -> None:
    forged = lab.state / "known_hosts"
    kept = forged.read_text()
    lines = [line.split() for line in kept.splitlines()]
    try:
        forged.write_text("".join(f"{line[0]} ssh-ed25519 {lines[index - 1][2]}\n" for index, line in enumerate(lines)))
        assert "Host key verification failed" in _ssh(lab, "dut", "true").stderr
    finally:
        forged.write_text(kept)


def test_only_the_key_of_the_lab_opens_a_host(lab: Lab, tmp_path: Path) -> None:
    _output("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other"))
    options = ["-F", "/dev/null", "-o", f"UserKnownHostsFile={lab.state}/known_hosts", "-o", "IdentitiesOnly=yes"]
    argv = ["ssh", *options, "-o", "BatchMode=yes", "-i", str(tmp_path / "other"), f"root@{lab.management('dut')}"]
    done = subprocess.run([*argv, "true"], capture_output=True, text=True)
    assert "Permission denied (publickey)" in done.stderr
    assert (lab.keys / "client").stat().st_mode & 0o077 == 0


def test_the_device_under_test_has_no_address_on_its_data_links(lab: Lab) -> None:
    for link in lab.links("dut"):
        shown = _output("ip", "-n", lab.namespace("dut"), "-br", "address", "show", "dev", link.interface).split()
        assert shown[1:] == ["UP"]


def test_the_outer_hosts_reach_the_far_network_through_the_device(lab: Lab) -> None:
    for host, far in (("left", lab.links("right")[0]), ("right", lab.links("left")[0])):
        near = 1 if host == "left" else 2
        for address, router in ((far.address, f"10.{lab.net}.{near}.2"), (far.address6, f"{lab.prefix6(near)}:2")):
            route = _output("ip", "-n", lab.namespace(host), "route", "get", address.partition("/")[0])
            assert f"via {router} dev data0" in route


def test_all_hosts_use_cubic_and_the_machine_allows_what_it_allowed(own_lab: Lab) -> None:
    before = ALLOWED.read_text()
    netlab.down(own_lab)
    netlab.up(own_lab)
    assert ALLOWED.read_text() == before
    for host in HOSTS:
        argv = ("ip", "netns", "exec", own_lab.namespace(host), "sysctl", "-n", "net.ipv4.tcp_congestion_control")
        assert _output(*argv).strip() == "cubic"


def test_raising_a_lab_that_is_up_changes_nothing(lab: Lab) -> None:
    before, inventory = _servers(lab), lab.inventory.read_text()
    netlab.up(lab)
    assert _servers(lab) == before
    assert lab.inventory.read_text() == inventory


def test_taking_down_removes_everything_and_can_be_repeated(own_lab: Lab) -> None:
    busy = processes.spawn(
        ["ip", "netns", "exec", own_lab.namespace("left"), "sleep", "60"],
        pid_file=own_lab.state.parent / "busy.pid",
        log=own_lab.state.parent / "busy.log",
    )
    servers = _servers(own_lab)
    netlab.down(own_lab)
    netlab.down(own_lab)
    assert not busy.alive()
    assert not any(server and server.alive() for server in servers)
    assert _traces(own_lab) == []
    assert not own_lab.state.exists()


def test_a_lab_whose_server_was_killed_is_raised_again(own_lab: Lab) -> None:
    server = processes.running(own_lab.pid_file("dut"))
    assert server is not None
    processes.signal_process(server, signal.SIGKILL)
    assert processes.wait_until_gone(server, 60)
    assert netlab.status(own_lab) == {"left": True, "dut": False, "right": True}
    netlab.up(own_lab)
    assert all(netlab.status(own_lab).values())
    assert _ssh(own_lab, "dut", "true").returncode == 0


def test_a_half_made_lab_is_repaired(own_lab: Lab) -> None:
    _output("ip", "netns", "delete", own_lab.namespace("right"))
    own_lab.inventory.unlink()
    netlab.up(own_lab)
    assert all(netlab.status(own_lab).values())


def test_a_lab_whose_files_are_lost_is_taken_down_by_its_names(own_lab: Lab) -> None:
    servers = _servers(own_lab)
    shutil.rmtree(own_lab.state)
    netlab.down(own_lab)
    assert _traces(own_lab) == []
    assert not any(server and server.alive() for server in servers)


def test_two_labs_live_side_by_side(lab: Lab, own_lab: Lab) -> None:
    assert lab.net != own_lab.net
    netlab.down(own_lab)
    assert all(netlab.status(lab).values())


def test_a_lab_of_the_same_name_that_another_directory_uses_is_left_alone(lab: Lab, tmp_path: Path) -> None:
    twin = dataclasses.replace(lab, state=tmp_path / "state")
    with pytest.raises(LabError, match=f"a lab named {lab.name} is in use, with its files in {lab.state}"):
        netlab.up(twin)
    netlab.down(twin)
    assert all(netlab.status(lab).values())


def test_a_network_that_is_in_use_is_refused(lab: Lab, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="choose another network with --net"):
        netlab.up(Lab(f"z{lab.name[1:]}"[:9], lab.net, tmp_path / "state"))


def test_a_lab_that_cannot_be_finished_leaves_nothing(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = dataclasses.replace(lab, name=f"h{lab.name[1:]}", net=(lab.net + 50) % 256, state=tmp_path / "state")
    # A directory in the place of the list of known host keys stops the start in the middle.
    (other.state / "known_hosts").mkdir(parents=True)
    with pytest.raises(OSError, match="known_hosts"):
        netlab.up(other)
    assert _traces(other) == []


@pytest.mark.parametrize(
    ("name", "net", "reason"),
    [
        ("", 1, "no name"),
        ("Demo", 1, "no name"),
        ("muchtoolong", 1, "no name"),
        ("a b", 1, "no name"),
        ("a", 256, "0 to 255"),
    ],
)
def test_bad_names_and_numbers_are_refused(tmp_path: Path, name: str, net: int, reason: str) -> None:
    with pytest.raises(LabError, match=reason):
        Lab(name, net, tmp_path)


def test_a_directory_with_blanks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="without blanks"):
        Lab("a", 1, tmp_path / "with blank")


def test_a_long_directory_gets_a_short_one_for_sockets(tmp_path: Path) -> None:
    lab = raise_lab("l", tmp_path / ("x" * 120))
    try:
        sockets = Path(yaml.safe_load(lab.inventory.read_text())["all"]["vars"]["ansible_control_path_dir"])
        assert len(str(sockets)) < 60
        assert (lab.state / "ssh").resolve() == sockets
    finally:
        netlab.down(lab)
    assert not sockets.exists()


def test_the_command_reports_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert netlab.main(["up", "--name", "UPPER", "--state", str(tmp_path)]) == 1
    assert "is no name for a lab" in capsys.readouterr().err
