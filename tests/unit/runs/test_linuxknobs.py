# SPDX-License-Identifier: BSD-2-Clause
"""Knobs of the Linux kernel in a plan: values are kept as written, and refusals show what to do."""

import pytest

from perfweb.runs.linuxknobs import LINK_KNOBS
from perfweb.runs.planfile import PlanError, read_plan
from playbooks.module_utils import command_line, linux

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


REFUSED_WORDS = (
    "init=/x", "rdinit=/x", "quiet init=/x", "root=/dev/sda1", "rootflags=x", "rootfstype=nfs", "initrd=x",
    "systemd.unit=x",
    "systemd.run=x", "rd.break", "rd.init=x", "module_blacklist=x", "modules=x", "module.sig_enforce=0",
    "modprobe.blacklist=x",
    "kexec_load_disabled=0", "crashkernel=1M", "lsm=none", "security=none", "selinux=0", "apparmor=0", "lockdown=none",
    "single", "S", "emergency", "sysctl.kernel.core_pattern=x", "firmware_class.path=x", "acpi_rsdp=1", "efivar_ssdt=x",
    "INIT=/x", "Init=x", "Rd.break", "module-blacklist=x", "bootconfig", "nfsroot=x", "ip=dhcp", "console=ttyS1",
    "iomem=x",
    "dyndbg=x", "tun.dyndbg=x", "perfweb.plan", "trace_event=x", "netconsole=x", "slub_debug=-", "panic=0", "memmap=1G",
)  # fmt: skip
TRICKS = (
    "'-- init=/x'", "'--'", "'a\" init=/x'", "'\"quiet\"'", "'quiet  nosmt'", "' quiet'", "'quiet '", '"quiet\\tnosmt"',
    '"quiet\\nnosmt"', '"quiet\\0"', "quiet=", "quiet=a=b", "isolcpus=/etc/x", "'isolcpus=1;x'", "in\u0131t=x",
    "'\uff49nit=x'",
    "'quiet\u00a0nosmt'", "=x", "-x", "''", "'default quiet nosmt nohz pti mds l1tf tsc tsx idle'",
)  # fmt: skip


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
        *((("boot.command_line", words, "is refused on every testbed")) for words in REFUSED_WORDS),
        *((("boot.command_line", words, "words for the kernel's command line")) for words in TRICKS),
        ("net.ipv4.tcp_fastopen_key", "1", "is a secret or an order to the kernel"),
        ("left.net.ipv6.conf.all.stable_secret", "1", "is a secret or an order to the kernel"),
        ("net.ipv4.route.flush", "1", "is a secret or an order to the kernel"),
        ("link.qdisc", "netem distribution ../../tmp/x", "in the words of tc(8)"),
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


@pytest.mark.parametrize("target", ["stack", "sim"])
def test_no_other_target_has_a_command_line(target: str) -> None:
    """A name with the form of a tunable of the stack: the host would be booted with it."""
    test = "tcp.rr/host-host/ipv4" if target == "stack" else "simulated.tcp.1/host-host/ipv4"
    text = PLAN.format(knob="boot.command_line", value="mitigations=off").replace("linux", target)
    with pytest.raises(PlanError, match=r"boot\.command_line, which is a knob of target linux"):
        read_plan(text.replace("tcp.rr/host-host/ipv4", test))


def test_words_have_to_be_on_the_list_of_a_testbed() -> None:
    spec = read_plan(PLAN.format(knob="boot.command_line", value="mitigations=off some-thing=1"))
    assert spec.words_problem(["mitigations", "some_thing"]) == ""
    assert "boot.command_line of variant a: 'some-thing' is not allowed" in spec.words_problem(["mitigations"])
    assert "allowed here: mitigations" in spec.words_problem(["mitigations"])
    assert "allowed here: no words" in spec.words_problem([])
    assert "'init' is refused on every testbed" in command_line.problem("init=/x", ["init", "mitigations"])


def test_no_list_has_words_that_load_code() -> None:
    assert command_line.list_problem(list(command_line.ALLOWED)) == ""
    for words in ("init", ["init"], ["mitigations", "rd.break"], ["isolcpus=1"], ["a b"], [1], {"a": 1}):
        assert command_line.list_problem(words)


def test_a_plan_takes_what_the_hosts_can_set() -> None:
    assert list(LINK_KNOBS) == linux.link_knobs()
