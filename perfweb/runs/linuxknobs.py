# SPDX-License-Identifier: BSD-2-Clause
"""Knobs of the Linux kernel in plans, and their values.  docs/reference/linux.md explains them.

A knob applies to the device under test, or with the prefix `left.` or `right.` to those hosts, except the knobs of a
boot.
"""

import difflib
import re
from collections.abc import Callable

from perfweb.yamlnodes import Field
from playbooks.module_utils import command_line, linux

HOSTS = ("left", "right")
# The hosts' own table of knobs.
SYSCTL = re.compile(linux.KNOB_SYSCTL, re.ASCII)
CPUS = re.compile(linux.CPUS, re.ASCII)
CPUS_RULE = "CPUs such as 0-3,8, or none"
QDISC = re.compile(linux.QDISC, re.ASCII)
QDISC_RULE = "default, or a queueing discipline in the words of tc(8), such as fq or pfifo limit 100"
COMMAND_LINE = "boot.command_line"
COMMAND_LINE_RULE = "default, or words for the kernel's command line such as mitigations=off"
LOWEST_MTU, HIGHEST_MTU = 1280, 65535
"""Below the min an interface loses its IPv6 addresses (RFC 8200, section 5)."""

LINK_KNOBS: dict[str, Callable[[Field], str]] = {
    "link.mtu": lambda value: str(value.number(LOWEST_MTU, HIGHEST_MTU)),
    "link.qdisc": lambda value: value.matching(QDISC, QDISC_RULE),
    "link.rps_cpus": lambda value: value.matching(CPUS, CPUS_RULE),
    "link.xps_cpus": lambda value: value.matching(CPUS, CPUS_RULE),
    **{f"link.offload.{name}": lambda value: value.one_of(("on", "off")) for name in linux.OFFLOADS},
}


def _command_line(value: Field) -> str:
    """Words that some testbed could allow. The list of a testbed is checked when the testbed is chosen."""
    words = value.scalar()
    if why := command_line.problem(words, None):
        value.reject(f"is not {COMMAND_LINE_RULE}: {why}")
    return words


BOOT_KNOBS: dict[str, Callable[[Field], str]] = {COMMAND_LINE: _command_line}


def read_knob(key: Field, value: Field, sysctl: Callable[[Field], str]) -> str:
    """Check the value of a knob; `sysctl` checks that of a sysctl. Raises PlanError for an invalid name or value."""
    name = key.scalar()
    host, _, rest = name.partition(".")
    knob = rest if host in HOSTS else name
    if SYSCTL.fullmatch(knob):
        return _sysctl(key, knob, sysctl(value))
    if name in BOOT_KNOBS:
        return BOOT_KNOBS[name](value)
    if knob not in LINK_KNOBS:
        near = difflib.get_close_matches(knob[:200], [*LINK_KNOBS, *BOOT_KNOBS], n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        key.reject(
            f"has {name[:40]!r}{hint}, which is no knob of target linux; allowed: {', '.join(BOOT_KNOBS)}; and sysctls "
            f"as net.ipv4.tcp_rmem, and {', '.join(LINK_KNOBS)}, each with "
            f"{' or '.join(f'{host}.' for host in HOSTS)} before it if not of dut"
        )
    return LINK_KNOBS[knob](value)


def _sysctl(key: Field, name: str, text: str) -> str:
    """Check the value of a sysctl that a plan can set: not every network sysctl is a setting."""
    try:
        linux.require_knob(name, text)
    except linux.SettingError as error:
        key.reject(f"has a sysctl that cannot be set: {error}")
    return text
