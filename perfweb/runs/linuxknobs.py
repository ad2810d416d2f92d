# SPDX-License-Identifier: BSD-2-Clause
"""What a plan can set in the Linux kernel, and what each takes.  docs/linux.md explains them.

Knobs are of the device under test, or with `left.` or `right.` before the name of those hosts, but for those of a boot.
"""

import difflib
import re
from collections.abc import Callable

from perfweb.runs.yamlnodes import Field

HOSTS = ("left", "right")
SYSCTL = re.compile(r"net(?:\.[A-Za-z0-9_]+)+", re.ASCII)
CPUS = re.compile(r"none|\d{1,4}(?:-\d{1,4})?(?:,\d{1,4}(?:-\d{1,4})?)*", re.ASCII)
CPUS_RULE = "CPUs such as 0-3,8, or none"
# Words of tc(8): it is given them as they are, so none may look like an option.
QDISC = re.compile(r"[a-z][a-z0-9_]{0,15}(?: [A-Za-z0-9_.%:/+][A-Za-z0-9_.%:/+-]{0,31}){0,24}", re.ASCII)
QDISC_RULE = "default, or a queueing discipline in the words of tc(8), such as fq or pfifo limit 100"
# Words of the kernel's command line, each like mitigations=off.
COMMAND_LINE = re.compile(r"[A-Za-z][A-Za-z0-9_.,:=/+-]{0,63}(?: [A-Za-z][A-Za-z0-9_.,:=/+-]{0,63}){0,7}", re.ASCII)
COMMAND_LINE_RULE = "default, or words for the kernel's command line such as mitigations=off"
OFFLOADS = ("rx", "tx", "sg", "tso", "gso", "gro", "lro")
LOWEST_MTU, HIGHEST_MTU = 1280, 65535
"""Below the lowest an interface loses its addresses of IPv6 (RFC 8200, section 5)."""

LINK_KNOBS: dict[str, Callable[[Field], str]] = {
    "link.mtu": lambda value: str(value.number(LOWEST_MTU, HIGHEST_MTU)),
    "link.qdisc": lambda value: value.matching(QDISC, QDISC_RULE),
    "link.rps_cpus": lambda value: value.matching(CPUS, CPUS_RULE),
    "link.xps_cpus": lambda value: value.matching(CPUS, CPUS_RULE),
    **{f"link.offload.{name}": lambda value: value.one_of(("on", "off")) for name in OFFLOADS},
}
BOOT_KNOBS: dict[str, Callable[[Field], str]] = {
    "boot.command_line": lambda value: value.matching(COMMAND_LINE, COMMAND_LINE_RULE),
}


def read_knob(key: Field, value: Field, sysctl: Callable[[Field], str]) -> str:
    """The value of a knob; `sysctl` reads that of a sysctl.  Raises PlanError for a name or a value that is none."""
    name = key.scalar()
    host, _, rest = name.partition(".")
    knob = rest if host in HOSTS else name
    if SYSCTL.fullmatch(knob):
        return sysctl(value)
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
