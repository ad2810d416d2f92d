# SPDX-License-Identifier: BSD-2-Clause
"""The network settings of a Linux host: their names in a plan, and how they are read and set.

A knob is a name of a plan (docs/reference/linux.md), such as `left.link.mtu`. A setting is one value of the host that
the knob sets, such as the MTU of one data link. Each setting can be read, and restored to a value read before.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from . import beneath

SYSCTLS = Path("/proc/sys")
DEVICES = Path("/sys/class/net")
POSSIBLE_CPUS = Path("/sys/devices/system/cpu/possible")
OFFLOADS = {
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "sg": "scatter-gather",
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
}
"""The names of offloads for ethtool(8): in its arguments and in its output."""
STEERING = {"rps_cpus": "rx-*", "xps_cpus": "tx-*"}
"""Files that assign CPUs to a queue, and the kind of queue (Documentation/networking/scaling.rst of Linux)."""
DEFAULT, NO_CPUS = "default", "none"

_OFFLOAD = re.compile(r"^[ \t]*([\w-]+): (on|off)(.*)$", re.MULTILINE)
# Sysctls that the kernel writes itself, that are secret, or that start an action.
_NOT_A_SETTING = re.compile(r"(_key|_secret|\.flush)$")
_OF_AN_INTERFACE = re.compile(r"net\.ipv[46]\.(conf|neigh)\.(.+)\.[^.]+")

INTERFACE = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}"
"""The name of a network interface: stricter than the kernel (dev_valid_name() of Linux)."""
SYSCTL = r"net(\.[A-Za-z0-9_-]{1,64}(/[A-Za-z0-9_-]{1,64}){0,8}){1,8}"
"""The name of a network sysctl. A slash represents a dot between other characters, so that no part is `..`."""
KNOB_SYSCTL = r"net(?:\.[A-Za-z0-9_]{1,64}){1,8}"
"""The sysctls that a plan can name."""
SYSCTL_VALUE = r"([A-Za-z0-9_.,:/+=-]([A-Za-z0-9_.,:/+= -]{0,4094}[A-Za-z0-9_.,:/+=-])?)?"
# tc(8) gets the words as they are: none looks like an option, and slashes are between numbers only
QDISC = r"[a-z][a-z0-9_]{0,15}(?: (?:[0-9][A-Za-z0-9.]{0,15}/[0-9]{1,9}|[A-Za-z0-9_.%:+][A-Za-z0-9_.%:+-]{0,31})){0,24}"
CPUS = r"none|[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?){0,255}"
MTU = r"[1-9][0-9]{1,4}"
SWITCH = r"on|off"


class SettingError(Exception):
    """A setting cannot be read or set; the message has the reason and what to do."""


def run(*argv: str) -> str:
    """Returns the output of a tool. Raises SettingError with its error message."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SettingError(f"`{' '.join(argv)}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@dataclass(frozen=True)
class Setting:
    """One setting of a host; `link` is empty unless it belongs to an interface.

    `NAMES`, `LINKS` and `VALUES` are patterns of the allowed names, links and values. They hold for values of a plan
    and for those read from a file in which a module saved the old values. Raises SettingError otherwise.
    """

    NAMES: ClassVar[str] = r"(?!)"
    LINKS: ClassVar[str] = INTERFACE
    VALUES: ClassVar[str] = r"(?!)"

    name: str
    link: str = ""

    def __post_init__(self) -> None:
        for what, pattern in ((self.name, self.NAMES), (self.link, self.LINKS)):
            if type(what) is not str or re.fullmatch(pattern, what, re.ASCII) is None:
                raise SettingError(f"{what!r:.80} names no {type(self).__name__.lower()} of a host")

    def require(self, value: object) -> None:
        """Raises SettingError for a value that this kind of setting cannot have."""
        if type(value) is not str or re.fullmatch(self.VALUES, value, re.ASCII) is None:
            raise SettingError(f"{self} does not take {value!r:.200}: it is no value of {type(self).__name__.lower()}")

    def __str__(self) -> str:
        return f"{self.name} of {self.link}" if self.link else self.name

    def read(self) -> str:
        """Returns the present value, in the form of `canonical`. Raises SettingError if the setting does not exist."""
        raise NotImplementedError

    def canonical(self, value: str) -> str:
        """Returns what `read` returns after this value was set."""
        return " ".join(value.split())

    def write(self, value: str) -> None:
        """Sets it.  Raises SettingError."""
        raise NotImplementedError

    def objection(self) -> str:
        """Returns why the present value could not be restored later; empty if it could."""
        return ""


class Sysctl(Setting):
    """A network sysctl by its dotted name; a slash in it represents a dot, as for sysctl(8)."""

    NAMES = SYSCTL
    LINKS = ""
    VALUES = SYSCTL_VALUE

    @property
    def relative(self) -> str:
        """The path of its file below SYSCTLS."""
        return "/".join(part.replace("/", ".") for part in self.name.split("."))

    @property
    def path(self) -> Path:
        """Its file."""
        return SYSCTLS / self.relative

    def read(self) -> str:
        self.require_open()
        try:
            return " ".join(beneath.read_text(SYSCTLS, self.relative).split())
        except OSError as error:
            raise SettingError(self._missing() if not self.path.is_file() else f"{self}: {error.strerror}") from None

    def write(self, value: str) -> None:
        self.require_open()
        self.require(value)
        try:
            with beneath.opened(SYSCTLS, self.relative, os.O_RDONLY) as descriptor:
                writable = os.fstat(descriptor).st_mode & 0o200
            if not writable:
                raise SettingError(f"{self} can only be read on this host, which may be a network namespace of another")
            beneath.write_text(
                SYSCTLS, self.relative, f"{value}\n"
            )  # an empty write sets nothing, a line break sets an empty value
        except OSError as error:
            raise SettingError(f"{self} does not take {value!r}: {self._refusal(error)}") from None

    def require_open(self) -> None:
        """Raises SettingError for sysctls that must not be set."""
        if _NOT_A_SETTING.search(self.name):
            raise SettingError(f"{self} is a secret or an order to the kernel, and not a setting")

    def _refusal(self, error: OSError) -> str:
        if self.name != "net.ipv4.tcp_congestion_control":
            return str(error.strerror)
        return f"{error.strerror}; offered are {Sysctl('net.ipv4.tcp_available_congestion_control').read()}"

    def _missing(self) -> str:
        siblings = [file.name for file in self.path.parent.iterdir()] if self.path.parent.is_dir() else []
        near = difflib.get_close_matches(self.path.name, siblings, n=1)
        hint = f" (did you mean {self.name.rpartition('.')[0]}.{near[0]}?)" if near else ""
        return f"this host has no sysctl {self}{hint}; a network namespace has only some of its machine's"


class Offload(Setting):
    """An offload of an interface, by its short name."""

    NAMES = "|".join(OFFLOADS)
    VALUES = SWITCH

    def _now(self) -> Feature:
        return offloads(self.link)[OFFLOADS[self.name]]

    def read(self) -> str:
        return self._now().state

    def write(self, value: str) -> None:
        self.require(value)
        if self._now().fixed:
            raise SettingError(f"{self} is {self._now().state} and its driver lets nobody change that")
        run("ethtool", "-K", self.link, self.name, value)


class Mtu(Setting):
    """The MTU of an interface, in bytes."""

    NAMES = "mtu"
    VALUES = MTU

    def read(self) -> str:
        return attribute(DEVICES / self.link, "mtu")

    def write(self, value: str) -> None:
        self.require(value)
        run("ip", "link", "set", "dev", self.link, "mtu", value)


class Steering(Setting):
    """The CPUs that serve a queue of an interface; the name is that of its file, `rx-0/rps_cpus`."""

    NAMES = r"(rx-[0-9]{1,5}/rps|tx-[0-9]{1,5}/xps)_cpus"
    VALUES = CPUS

    @property
    def relative(self) -> str:
        """The path of its file below the interface."""
        return f"queues/{self.name}"

    def read(self) -> str:
        device = DEVICES / self.link
        try:
            return cpu_list(mask_cpus(beneath.read_text(device, self.relative)))
        except OSError as error:
            there = (device / self.relative).exists()
            why = "it has one queue, so there is nothing to choose" if there else error.strerror
            raise SettingError(f"{self}: {why}") from None

    def canonical(self, value: str) -> str:
        return cpu_list(parse_cpus(value))

    def write(self, value: str) -> None:
        self.require(value)
        try:
            beneath.write_text(DEVICES / self.link, self.relative, cpu_mask(parse_cpus(value)))
        except OSError as error:
            there = attribute(POSSIBLE_CPUS.parent, POSSIBLE_CPUS.name)
            raise SettingError(f"{self} does not take CPUs {value}: {error.strerror}; this host has {there}") from None


class Qdisc(Setting):
    """The queueing discipline of an interface, in the words of tc(8), or `default` for the kernel's.

    Its handle is a hash of its words, so that it is recognised later.
    """

    NAMES = "qdisc"
    VALUES = QDISC

    def read(self) -> str:
        root = next((found for found in qdiscs(self.link) if found.get("root")), {"handle": "0:"})
        return DEFAULT if root["handle"] == "0:" else f"{root['kind']} {root['handle']}"

    def canonical(self, value: str) -> str:
        return DEFAULT if value == DEFAULT else f"{value.partition(' ')[0]} {self._handle(value)}"

    def write(self, value: str) -> None:
        self.require(value)
        if value == DEFAULT:
            run("tc", "qdisc", "del", "dev", self.link, "root")
        else:
            run("tc", "qdisc", "replace", "dev", self.link, "root", "handle", self._handle(value), *value.split())

    def objection(self) -> str:
        now = self.read()
        why = f"{self.link} has the qdisc {now} of its own: remove it, or leave link.qdisc out of the plan"
        return "" if now == DEFAULT else why

    @staticmethod
    def _handle(value: str) -> str:
        # The kernel assigns handles from 0x8000 itself.
        return f"{zlib.crc32(value.encode()) % 0x7FFF + 1:x}:"


KINDS: dict[str, type[Setting]] = {kind.__name__.lower(): kind for kind in (Sysctl, Offload, Mtu, Steering, Qdisc)}


@dataclass(frozen=True)
class Feature:
    """An offload as ethtool prints it."""

    state: str
    fixed: bool


def parse_offloads(text: str) -> dict[str, Feature]:
    """Parses the output of `ethtool -k`: the offloads by their long names."""
    return {name: Feature(state, "[fixed]" in rest) for name, state, rest in _OFFLOAD.findall(text)}


def offloads(link: str) -> dict[str, Feature]:
    """Returns the offloads of an interface, by their long names."""
    return parse_offloads(run("ethtool", "-k", link))


def qdiscs(link: str) -> list[dict[str, object]]:
    """Returns the queueing disciplines of an interface; the kernel's own have the handle `0:`."""
    found: list[dict[str, object]] = json.loads(run("tc", "-j", "qdisc", "show", "dev", link) or "[]")
    return found


def sysctls(links: Sequence[str]) -> dict[str, str]:
    """Returns all network sysctls that can be set, by their dotted names; of interfaces only those of the links."""
    return {setting.name: value for setting, value in _sysctls(links)}


def _sysctls(links: Sequence[str]) -> Iterator[tuple[Sysctl, str]]:
    for path in sorted((SYSCTLS / "net").rglob("*")):
        name = ".".join(part.replace(".", "/") for part in path.relative_to(SYSCTLS).parts)
        interface = _OF_AN_INTERFACE.fullmatch(name)
        ours = interface is None or interface[2].replace("/", ".") in {"all", "default", *links}
        if re.fullmatch(SYSCTL, name, re.ASCII) is None:
            continue
        if not ours or _NOT_A_SETTING.search(name) or not path.is_file() or not path.stat().st_mode & 0o200:
            continue
        try:
            yield Sysctl(name), Sysctl(name).read()
        except SettingError:  # one that was never set, such as a secret
            continue


def parse_cpus(text: str) -> set[int]:
    """Parses a list of CPUs such as `0-3,8`, or `none`."""
    if text == NO_CPUS:
        return set()
    if re.fullmatch(CPUS, text, re.ASCII) is None:
        raise SettingError(f"{text!r} is no list of CPUs: use one such as 0-3,8, or {NO_CPUS}")
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return {cpu for part in ends for cpu in range(part[0], part[-1] + 1)}


def cpu_list(cpus: set[int]) -> str:
    """Formats CPUs as a list that `parse_cpus` reads; the same CPUs give the same text."""
    firsts = sorted(cpu for cpu in cpus if cpu - 1 not in cpus)
    lasts = sorted(cpu for cpu in cpus if cpu + 1 not in cpus)
    return ",".join(map(_span, firsts, lasts)) or NO_CPUS


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def cpu_mask(cpus: set[int]) -> str:
    """Formats CPUs as the kernel's mask: hexadecimal 32-bit numbers, the highest first."""
    number = sum(1 << cpu for cpu in cpus)
    words = [f"{number >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(number.bit_length(), 1), 32)]
    return ",".join(reversed(words))


def mask_cpus(text: str) -> set[int]:
    """Parses the kernel's mask of CPUs."""
    number = int(text.strip().replace(",", ""), 16)
    return {cpu for cpu in range(number.bit_length()) if number >> cpu & 1}


def own(knobs: Mapping[str, str], roles: Sequence[str]) -> dict[str, str]:
    """Returns the knobs of a host with these roles: names as in the plan → names without the host."""
    found = {}
    for name in knobs:
        role, _, rest = name.partition(".")
        owner, bare = (role, rest) if role in {"left", "right"} else ("dut", name)
        if owner in roles:
            found[name] = bare
    return found


def settings_of(knob: str, links: Sequence[str]) -> list[Setting]:
    """Returns the settings of a knob, on all data links for a knob of links. Raises SettingError."""
    what, _, name = knob.partition(".")
    if what == "net":
        return [Sysctl(knob)]
    if what != "link":
        raise SettingError(f"{knob} is no knob of Linux: use a sysctl net.…, or one of link.…")
    if name in {"mtu", "qdisc"}:
        return [KINDS[name](name, link) for link in links]
    if name in STEERING:
        return [Steering(f"{queue}/{name}", link) for link in links for queue in _queues(link, STEERING[name])]
    group, _, offload = name.partition(".")
    if group == "offload" and offload in OFFLOADS:
        return [Offload(offload, link) for link in links]
    raise SettingError(f"{knob} is no knob of Linux: of data links there are {', '.join(link_knobs())}")


def require_knob(name: object, value: object) -> None:
    """Raises SettingError unless this is a knob of a plan, without the host's name, and a value of it."""
    if type(name) is not str or len(name) > 256:
        raise SettingError(f"{name!r:.80} is no knob of Linux")
    _some_setting(name).require(value)


def _some_setting(knob: str) -> Setting:
    """Returns the setting of a knob on a placeholder interface. Raises SettingError."""
    if re.fullmatch(KNOB_SYSCTL, knob, re.ASCII):
        setting = Sysctl(knob)
        setting.require_open()
        return setting
    if knob not in link_knobs():
        raise SettingError(
            f"{knob} is no knob of Linux: use a sysctl net.…, or of data links {', '.join(link_knobs())}"
        )
    name = knob.partition(".")[2]
    if name in STEERING:
        return Steering(f"{STEERING[name].replace('*', '0')}/{name}", "any")
    return Offload(name.partition(".")[2], "any") if name.startswith("offload.") else KINDS[name](name, "any")


def interface_of(knob: str) -> str | None:
    """Returns the interface, `all` or `default` of a sysctl; None for another knob."""
    found = _OF_AN_INTERFACE.fullmatch(knob)
    return found[2] if found else None


def link_knobs() -> list[str]:
    """The knobs of data links."""
    return ["link.mtu", "link.qdisc", *(f"link.{name}" for name in STEERING), *(f"link.offload.{o}" for o in OFFLOADS)]


def _queues(link: str, pattern: str) -> list[str]:
    found = sorted(path.name for path in (DEVICES / link / "queues").glob(pattern))
    if not found:
        raise SettingError(f"no interface {link}, or it has no queues {pattern}")
    return found


def attribute(device: Path, name: str) -> str:
    """Returns the text of a file below a directory of sysfs. Raises SettingError."""
    try:
        return beneath.read_text(device, name).strip()
    except OSError as error:
        raise SettingError(f"{device}/{name}: {error.strerror}") from None
