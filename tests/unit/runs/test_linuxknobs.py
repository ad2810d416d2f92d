# SPDX-License-Identifier: BSD-2-Clause
"""Knobs of the Linux kernel in a plan: what is taken as it was written, and what is refused with what to do."""

import pytest

from perfweb.runs.linuxknobs import LINK_KNOBS
from perfweb.runs.planfile import PlanError, read_plan
from playbooks.module_utils import linux

PLAN = """\
name: one
baseline: a
variants:
  - name: a
    target: linux
    tunables:
      {knob}: {value}
tests: [tcp.rr/host-host/ipv4]
"""


def read(knob: str, value: str) -> dict[str, str]:
    return read_plan(PLAN.format(knob=knob, value=value)).variants[0].tunables


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("net.ipv4.tcp_congestion_control", "bbr"),
        ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
        ("net.ipv4.conf.data0.rp_filter", "0"),
        ("left.net.ipv4.tcp_sack", "0"),
        ("right.link.mtu", "1280"),
        ("link.mtu", "65535"),
        ("link.offload.gro", "off"),
        ("link.offload.tso", "on"),
        ("link.qdisc", "default"),
        ("boot.command_line", "default"),
        ("boot.command_line", "mitigations=off isolcpus=1,2 net.ifnames=0"),
        ("link.qdisc", "netem delay 1ms loss 0.1%"),
        ("left.link.rps_cpus", "0-3,8"),
        ("link.xps_cpus", "none"),
    ],
)
def test_what_is_taken(knob: str, value: str) -> None:
    assert read(knob, value) == {knob: value}


@pytest.mark.parametrize(
    ("knob", "value", "advice"),
    [
        ("link.offload.groo", "on", "did you mean 'link.offload.gro'?"),
        ("left.link.mut", "1500", "did you mean 'link.mtu'?"),
        ("vm.swappiness", "1", "no knob of target linux; allowed: boot.command_line; and sysctls as net.ipv4"),
        ("dut.link.mtu", "1500", "each with left. or right. before it if not of dut"),
        ("net", "1", "no knob of target linux"),
        ("net..ipv4", "1", "no knob of target linux"),
        ("net.isr/../../kernel", "1", "no knob of target linux"),
        ("link.offload.gro", "yes", "allowed: on, off"),
        ("link.mtu", "1279", "a whole number from 1280 to 65535"),
        ("link.mtu", "jumbo", "a whole number from 1280 to 65535"),
        ("left.boot.command_line", "quiet", "no knob of target linux"),
        ("boot.command_line", "quiet -- sh", "words for the kernel's command line"),
        ("boot.command_line", "a=$(reboot)", "words for the kernel's command line"),
        ("link.qdisc", "-batch /etc/passwd", "in the words of tc(8)"),
        ("link.qdisc", "tbf --force", "in the words of tc(8)"),
        ("link.rps_cpus", "0x3", "CPUs such as 0-3,8, or none"),
        ("net.ipv4.tcp_rmem", "'1; reboot'", "letters, digits"),
        ("net.ipv4.tcp_sack", "", "must be a single value"),
    ],
)
def test_what_is_refused(knob: str, value: str, advice: str) -> None:
    with pytest.raises(PlanError) as caught:
        read(knob, value)
    assert advice in str(caught.value)
    assert caught.value.line == 7


def test_a_plan_takes_what_the_hosts_can_set() -> None:
    assert list(LINK_KNOBS) == linux.link_knobs()
