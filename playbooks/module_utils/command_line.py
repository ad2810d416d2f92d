# SPDX-License-Identifier: BSD-2-Clause
"""The words that a plan may add to the command line of the kernel under test.

The plan reader, the controller, the lab of virtual machines and the guard on the host all call `problem`. A testbed has
a list of allowed parameters; `ALLOWED` is the default one. `FORBIDDEN` names what no list can allow: parameters that
choose or load a program, a module or a root, or that change how the kernel itself is protected
(Documentation/admin-guide/kernel-parameters.rst of Linux; systemd.kernel-command-line(7); dracut.cmdline(7)).

The kernel treats `-` and `_` in the name of a parameter alike, and splits double quotes off. So names are compared with
`_` only, and no word may have a quote.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

DEFAULT = "default"
"""The value of the knob that means "no words"."""
MOST_WORDS, LONGEST_WORD = 8, 64

ALLOWED = (
    # Assignment of CPUs.
    "isolcpus", "nohz", "nohz_full", "rcu_nocbs", "rcu_nocb_poll", "irqaffinity", "maxcpus", "nr_cpus", "nosmt",
    "threadirqs", "preempt", "skew_tick",
    # Frequency, idle states and clocks of processors.
    "idle", "cpuidle.off", "cpufreq.off", "cpufreq.default_governor", "processor.max_cstate", "intel_idle.max_cstate",
    "intel_pstate", "amd_pstate", "clocksource", "tsc", "hpet",
    # Mitigations of speculative execution, because plans measure their cost.
    "mitigations", "pti", "nopti", "spectre_v2", "retbleed", "mds", "l1tf", "tsx",
    # Memory, buses and sources of disturbance.
    "transparent_hugepage", "hugepages", "hugepagesz", "default_hugepagesz", "numa_balancing", "pcie_aspm", "nokaslr",
    "watchdog", "nowatchdog", "nmi_watchdog", "nosoftlockup", "quiet", "loglevel", "net.ifnames",
)  # fmt: skip
"""The default list: none of these names a program, a file or a module."""

FORBIDDEN = (
    # The first program that the kernel starts, and the root file system.
    r"(rd)?init", r"root(flags|fstype|wait|delay)?", r"r[ow]", r"initrd(mem)?", r"noinitrd", r"nfsroot.*", r"nfs\..*",
    r"ip", r"resume.*", r"ramdisk.*", r"load_ramdisk", r"prompt_ramdisk", r"bootconfig", r"cloud_.*", r"ds",
    # Parameters that an initramfs, systemd or another init obeys.
    r"rd\..*", r"systemd\..*", r"luks\..*", r"s|single|emergency|rescue|[0-9]+", r"break", r"sysctl\..*", r"fsck\..*",
    r"udev\..*", r"vconsole\..*", r"quota.*",
    # Modules, other kernels, firmware and tables to load.
    r"modules?([_.].*)?", r"modprobe.*", r"nomodule", r"kexec.*", r"crash.*", r"firmware_class\..*", r"acpi.*",
    r"efi.*", r"dyndbg", r".*\.dyndbg", r"microcode.*", r"initcall.*",
    # Protection, watchdogs and debugging of the kernel.
    r"lsm(\..*)?", r"security", r"selinux", r"enforcing", r"apparmor.*", r"lockdown", r"integrity.*", r"ima.*", r"evm",
    r"audit.*", r"no_new_privs", r"slub_.*", r"slab_.*", r"init_on_.*", r"randomize_kstack.*", r"vsyscall", r"vdso.*",
    r"iomem", r"strict.*", r"nosm[ae]p", r"noexec.*", r"hardened.*", r"kgdb.*", r"kdb.*", r"ekgdb.*", r"trace.*",
    r"ftrace.*", r"kprobe.*", r"tp_printk.*", r"debugfs", r"sysrq.*", r"bpf.*", r"unprivileged.*", r"dma.*",
    # Memory and devices of the machine, and its console.
    r"mem|memmap|reserve.*|memblock.*", r"console", r"earlycon", r"earlyprintk", r"netconsole.*", r"panic.*", r"oops",
    r"perfweb\..*", r"boot_image", r"default",
)  # fmt: skip
_FORBIDDEN = re.compile("|".join(f"(?:{pattern})" for pattern in FORBIDDEN), re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,47}", re.ASCII)
_WORD = re.compile(r"([A-Za-z][A-Za-z0-9_.-]{0,47})(=[A-Za-z0-9_.,:+-]{1,63})?", re.ASCII)


def canonical(name: str) -> str:
    """Returns the name of a parameter as the kernel compares it."""
    return name.replace("-", "_")


def problem(words: object, allowed: Iterable[str] | None = ALLOWED) -> str:
    """Returns why these words, separated by one space, may not be added; empty if they may.

    `default` alone means no words. Where `allowed` is None the list is unknown, and only FORBIDDEN counts.
    """
    if type(words) is not str or len(words) > MOST_WORDS * (LONGEST_WORD + 1):
        return f"the command line is not a text of up to {MOST_WORDS} words"
    if words == DEFAULT:
        return ""
    names = None if allowed is None else {canonical(name) for name in allowed}
    parts = words.split(" ")
    if len(parts) > MOST_WORDS:
        return f"the command line has {len(parts)} words, more than {MOST_WORDS}"
    return next(filter(None, (_problem_of(word, names) for word in parts)), "")


def _problem_of(word: str, allowed: set[str] | None) -> str:
    offered = f"allowed here: {', '.join(sorted(ALLOWED if allowed is None else allowed)) or 'no words'}"
    named = word.strip('"').partition("=")[0]
    if is_forbidden(named):
        return f"{named!r} is refused on every testbed: it chooses or loads code, or lowers protection; {offered}"
    found = _WORD.fullmatch(word) if len(word) <= LONGEST_WORD else None
    if found is None:
        return (
            f"{word[:80]!r} is not a word for the kernel's command line such as mitigations=off (a letter first; "
            "letters, digits, _ . - in the name; letters, digits, _ . , : + - in the value; one space between words); "
            + offered
        )
    name = canonical(found[1])
    if allowed is not None and name not in allowed:
        near = difflib.get_close_matches(name, sorted(allowed), n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        return f"{found[1]!r} is not allowed{hint}; {offered}"
    return ""


def is_forbidden(name: str) -> bool:
    """Returns whether no list may allow a parameter, in upper or lower case."""
    return _FORBIDDEN.fullmatch(canonical(name).lower()) is not None


def list_problem(names: object) -> str:
    """Returns why an operator's list of parameters is refused, with what to do; empty if it is valid."""
    if type(names) is not list or not all(type(name) is str for name in names):
        return "expected a list of names of kernel parameters, such as [mitigations, isolcpus]"
    for name in names:
        if _NAME.fullmatch(name) is None:
            return f"{name[:80]!r} is not the name of a kernel parameter: give names alone, without = and a value"
        if is_forbidden(name):
            return f"{name!r} cannot be allowed, because it chooses or loads code or lowers protection: remove it"
    return ""


def names(words: str) -> Sequence[str]:
    """Returns the names of the parameters in a command line that `problem` accepts."""
    return [] if words == DEFAULT else [canonical(word.partition("=")[0]) for word in words.split(" ")]
