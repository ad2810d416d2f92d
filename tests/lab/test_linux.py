# SPDX-License-Identifier: BSD-2-Clause
"""The kernel as a target: its knobs are set while a variant has them, and the hosts are restored afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfweb.measuring import tools
from perfweb.runs.catalogue import MEASURES
from playbooks.module_utils import congestion
from runners.ansible import driver
from runners.ansible.driver import PlayResult
from runners.labs.netlab import Lab
from tests.lab.measuring import measured

Play = Callable[..., PlayResult]
KNOBS = {
    "left.net.ipv4.tcp_congestion_control": "reno",
    "left.link.offload.tso": "off",
    "left.link.mtu": "1400",
    "net.ipv4.tcp_rmem": "4096 65536 1048576",
    "link.mtu": "1400",
    "link.offload.tx": "off",
    "link.offload.gro": "on",
    "link.qdisc": "pfifo limit 100",
    "link.rps_cpus": "0",
}
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


@pytest.fixture
def play(lab: Lab) -> Play:
    """Plays of one run on the kernel."""

    def _play(name: str, **values: Any) -> PlayResult:
        about = {"boot_id": "boot1", "target": "linux", "topology": "host-host", "server": "none"}
        extra = {"run_id": f"linux-{lab.name}", **about, **values}
        listener = extra.pop("listener", driver.NO_LISTENER)
        return driver.play(name, inventory=lab.inventory, extra_vars=extra, timeout=300, listener=listener)

    return _play


@pytest.fixture
def prepared(play: Play, lab: Lab) -> None:
    """Prepare the run, unless an earlier test has."""
    if not any(lab.root.glob(f"linux-{lab.name}-*")):
        play("prepare").require_ok()


def prepare_anew(play: Play) -> None:
    """Prepare hosts in their original state, which `prepare` records."""
    play("restore").require_ok()
    play("prepare").require_ok()


@pytest.fixture(scope="module", autouse=True)
def restored(lab: Lab) -> Iterator[None]:
    """Check after the tests that the hosts are in their original state."""
    yield
    about = {"run_id": f"linux-{lab.name}"}
    driver.play("restore", inventory=lab.inventory, extra_vars=about, timeout=300).require_ok()


def on(lab: Lab, host: str, *argv: str) -> str:
    command = ["ip", "netns", "exec", lab.namespace(host), *argv]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def condition(lab: Lab) -> dict[str, str]:
    """Return links and settings of the hosts, without what depends on the carrier."""
    outputs = {}
    for host in ("left", "dut", "right"):
        for argv in (
            ["ip", "-brief", "address"],
            ["ip", "route"],
            ["ip", "-6", "route"],
            ["ethtool", "-k", "data0"],
            ["tc", "qdisc"],
            ["sysctl", *(f"net.ipv4.{name}" for name in ("tcp_congestion_control", "tcp_rmem", "ip_forward"))],
            ["cat", "/sys/class/net/data0/mtu", "/sys/class/net/data0/queues/rx-0/rps_cpus"],
        ):
            outputs[f"{host}: {' '.join(argv)}"] = on(lab, host, *argv).replace("linkdown", "")
    return outputs


def module(lab: Lab, name: str, *options: str, **values: Any) -> dict[str, Any]:
    """Return the result of a module of the playbooks on the device under test."""
    ansible = [str(Path(sys.executable).with_name("ansible")), "dut", "-i", str(lab.inventory), *options]
    done = subprocess.run(
        [*ansible, "-m", name, "-a", json.dumps(values)], capture_output=True, text=True, check=False,
        env=os.environ | {"ANSIBLE_CONFIG": str(driver.PLAYBOOKS / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout.partition(" => ")[2])
    return answer


def test_knobs_hold_and_the_hosts_are_as_they_were_afterwards(play: Play, lab: Lab) -> None:
    before = condition(lab)
    play("prepare").require_ok()
    effective = play("boot", tunables=KNOBS, server="netserver").require_ok().data["effective"]
    assert {name: effective[name] for name in KNOBS} == KNOBS
    assert effective["link.offload.lro"] == "off"
    assert effective["net.ipv4.tcp_sack"] == "1"
    assert on(lab, "left", "sysctl", "-n", "net.ipv4.tcp_congestion_control") == "reno\n"
    assert on(lab, "dut", "sysctl", "-n", "net.ipv4.tcp_rmem").split() == ["4096", "65536", "1048576"]
    assert "mtu 1400" in on(lab, "left", "ip", "link", "show", "data0")
    for link in ("data0", "data1"):
        assert "mtu 1400 qdisc pfifo" in on(lab, "dut", "ip", "link", "show", link)
        assert "generic-receive-offload: on" in on(lab, "dut", "ethtool", "-k", link)
    address = lab.links("dut")[0].address.split("/")[0]
    netperf = ["netperf", "-H", address, "-t", "TCP_STREAM", "-l", "1", "-P", "0"]
    ((sample,),) = measured(play, netperf)
    assert sample["rc"] == 0
    check = next(measure for measure in MEASURES if measure.name == "cpu.check")
    ((sample,),) = measured(play, tools.command(check, "", 1, ""), host=check.host)
    assert tools.parse(check, sample["stdout"])
    counters = play("collect").require_ok().data["counters"]
    assert "NIC statistics" in counters["ethtool-S-data1"]
    assert "pfifo" in counters["tc-qdisc"]

    other = play("boot", tunables={"link.mtu": "1300"}).require_ok().data["effective"]
    assert (other["link.mtu"], other["link.offload.gro"], other["link.qdisc"]) == ("1300", "off", "default")
    assert other["left.link.mtu"] == "1500"
    assert on(lab, "left", "sysctl", "-n", "net.ipv4.tcp_congestion_control") == "cubic\n"
    play("restore").require_ok()
    assert condition(lab) == before


@pytest.mark.usefixtures("prepared")
def test_a_boot_that_ended_in_the_middle_is_undone(play: Play, lab: Lab) -> None:
    before = condition(lab)
    result = play("boot", tunables={**KNOBS, "net.ipv4.tcp_sack": "nonsense"})
    assert "net.ipv4.tcp_sack does not take 'nonsense'" in result.failures[0].message
    assert "mtu 1400" in on(lab, "dut", "ip", "link", "show", "data0")
    play("restore").require_ok()
    assert condition(lab) == before


@pytest.mark.usefixtures("prepared")
def test_setting_twice_changes_nothing_and_check_mode_never_does(lab: Lab) -> None:
    values = {"roles": ["dut"], "links": ["data0"], "memory": str(lab.root / f"{lab.namespace('dut')}.knobs")}
    set_knobs = {**values, "knobs": {"link.mtu": "1400", "link.qdisc": "pfifo limit 9", "link.rps_cpus": "0"}}
    before = condition(lab)
    assert module(lab, "linux_knobs", "--check", **set_knobs)["changed"] is True
    assert condition(lab) == before
    assert module(lab, "linux_knobs", **set_knobs)["changed"] is True
    changed = condition(lab)
    assert changed != before
    assert module(lab, "linux_knobs", **set_knobs)["changed"] is False
    assert module(lab, "linux_knobs", "--check", **set_knobs)["changed"] is False
    assert module(lab, "linux_knobs", "--check", **values)["changed"] is True
    assert condition(lab) == changed
    assert module(lab, "linux_knobs", **values)["changed"] is True
    assert module(lab, "linux_knobs", **values)["changed"] is False
    assert condition(lab) == before


@pytest.mark.usefixtures("prepared")
def test_what_this_kernel_cannot_do_is_reported_and_ends_the_boot(play: Play, lab: Lab) -> None:
    for knob, value, reason in (
        ("net.ipv4.tcp_sak", "1", "this host has no sysctl net.ipv4.tcp_sak (did you mean net.ipv4.tcp_sack?)"),
        ("net.core.netdev_max_backlog", "9", "a network namespace has only some of its machine's"),
        ("net.ipv4.tcp_available_congestion_control", "cubic", "can only be read on this host"),
        ("net.ipv4.tcp_congestion_control", "nosuch", "does not take 'nosuch': No such file or directory; offered "),
        ("link.offload.lro", "on", "lro of data0 is off and its driver lets nobody change that"),
        ("link.qdisc", "nosuch", "`tc qdisc replace dev data0 root handle"),
        ("link.rps_cpus", "999", "rx-0/rps_cpus of data0 does not take CPUs 999"),
        ("link.nonsense", "1", "link.nonsense is no knob of Linux"),
    ):
        result = play("boot", tunables={knob: value})
        assert not result.ok
        assert [failure.host for failure in result.failures] == [lab.namespace("dut")]
        assert reason in result.failures[0].message


@pytest.mark.usefixtures("prepared")
def test_a_knob_that_another_keeps_from_holding_is_reported(play: Play) -> None:
    result = play("boot", tunables={"link.offload.gso": "on", "link.offload.sg": "off"})
    assert "gso of data0 is off and not on" in result.failures[0].message


def test_a_changed_setting_without_a_record_is_reported_until_it_is_restored(play: Play, lab: Lab) -> None:
    prepare_anew(play)
    on(lab, "left", "ip", "link", "set", "data0", "mtu", "1400")
    on(lab, "left", "sysctl", "-qw", "net.ipv4.tcp_sack=0")
    for _ in range(2):
        result = play("restore")
        assert {failure.host for failure in result.failures} == {lab.namespace("left")}
        assert "the host is not as it was before the run: mtu of data0 is 1400 and was 1500" in str(result.failures[0])
    assert on(lab, "left", "sysctl", "-n", "net.ipv4.tcp_sack") == "1\n"
    on(lab, "left", "ip", "link", "set", "data0", "mtu", "1500")
    play("restore").require_ok()


def test_restore_takes_every_step_although_one_fails(play: Play, lab: Lab) -> None:
    prepare_anew(play)
    play("boot", tunables={"net.ipv4.tcp_sack": "0"}).require_ok()
    memory = lab.root / f"{lab.namespace('dut')}.knobs"
    kept = memory.read_text()
    memory.write_text("{")
    result = play("restore")
    assert {failure.host for failure in result.failures} == {lab.namespace("dut")}
    assert [failure.task for failure in result.failures] == [
        "Put back the knobs of the kernel",
        "List what could not be restored",
    ]
    assert result.failures[-1].message == "not restored: knobs of the kernel"
    assert on(lab, "dut", "sysctl", "-n", "net.ipv4.tcp_sack") == "1\n", "put back from the record of the host"
    assert not any(lab.root.glob(f"linux-{lab.name}-*"))
    assert lab.links("dut")[0].address not in on(lab, "dut", "ip", "-brief", "address")
    memory.write_text(kept)
    play("restore").require_ok()


def test_the_error_for_a_damaged_record_states_what_to_do(play: Play, lab: Lab) -> None:
    prepare_anew(play)
    record = lab.root / f"{lab.namespace('left')}.before"
    kept = record.read_text()
    record.write_text("")
    failure, _ = play("restore").failures
    assert f"{record} is no record: look whether the host is as it should be, and remove it" in failure.message
    record.write_text(kept)
    play("restore").require_ok()


def test_a_congestion_control_is_allowed_no_longer_although_its_user_was_killed(lab: Lab) -> None:
    before = ALLOWED.read_text()
    offered = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    program = (
        "import os; from playbooks.module_utils.congestion import allowed\n"
        f"with allowed({offered[-1]!r}): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=driver.ROOT, check=False).returncode == -9
    assert offered[-1] in ALLOWED.read_text().split()
    congestion.put_back()
    assert ALLOWED.read_text() == before
    assert not congestion.KEPT.exists()


def test_a_host_allows_words_itself_before_it_is_switched(lab: Lab, tmp_path: Path) -> None:
    """The guard of the host applies the host's policy, whatever the controller has accepted."""
    switched = tmp_path / "switched"
    inventory = yaml.safe_load(lab.inventory.read_text(encoding="utf-8"))
    about = inventory["all"]["children"]["dut"]["hosts"][lab.namespace("dut")]
    about["boot_command"] = ["sh", "-c", f'for word; do echo "<$word>"; done >>{switched}', "switch"]
    path = tmp_path / "inventory.yml"
    path.write_text(yaml.safe_dump(inventory), encoding="utf-8")
    run = {"run_id": f"words-{lab.name}", "boot_id": "boot1", "target": "linux", "topology": "host-host"}
    play = partial(driver.play, inventory=path, timeout=300)
    play("prepare", extra_vars=run).require_ok()
    quoted = ('"init=/x"', "quiet\ninit=/x")
    refused = ("init=/x", "init=/bin/sh", "quiet init=/x", "quiet rd.break", "-- init=/x", "debug_x", "quiet  nosmt")
    for words in (*refused, *quoted):
        result = play("boot", extra_vars={**run, "server": "none", "tunables": {"boot.command_line": words}})
        assert not switched.exists()
        if words in quoted:
            assert "a quote or a line break in its value" in result.failures[0].message
        else:
            assert [failure.host for failure in result.failures] == [lab.namespace("dut")]
            assert "refused: the module boot_words may not be called with words" in result.failures[0].message
    allowed = {"boot.command_line": "mitigations=off nosmt"}
    play("boot", extra_vars={**run, "server": "none", "tunables": allowed}).require_ok()
    assert switched.read_text() == "<mitigations=off nosmt>\n"
    play("restore", extra_vars=run).require_ok()
