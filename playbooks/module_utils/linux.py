# SPDX-License-Identifier: BSD-2-Clause
"""Settings of a Linux host that its network depends on: what they are called in a plan, how they are read and set.

A knob is a name of a plan (docs/linux.md), such as `left.link.mtu`; a setting is one thing of the host that it sets,
such as the MTU of one data link.  Each setting can be read, and set to what was read before.
"""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
"""What ethtool(8) calls them when it sets and when it shows them."""
STEERING = {"rps_cpus": "rx-*", "xps_cpus": "tx-*"}
"""Files that say which CPUs work for a queue, and whose they are (Documentation/networking/scaling.rst of Linux)."""
DEFAULT, NO_CPUS = "default", "none"

_OFFLOAD = re.compile(r"^\s*([\w-]+): (on|off)(.*)$", re.MULTILINE)
_CPUS = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", re.ASCII)
# What the kernel writes itself, what nobody shall read, and what is no value but an order.
_NOT_A_SETTING = re.compile(r"(_key|_secret|\.flush)$")
_OF_AN_INTERFACE = re.compile(r"net\.ipv[46]\.(conf|neigh)\.(.+)\.[^.]+")


class SettingError(Exception):
    """A setting cannot be read or set; the message says why, and what to do."""


def run(*argv: str) -> str:
    """What a tool prints.  Raises SettingError with its complaint."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SettingError(f"`{' '.join(argv)}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@dataclass(frozen=True)
class Setting:
    """One thing of a host; `link` is empty where it is not of an interface."""

    name: str
    link: str = ""

    def __str__(self) -> str:
        return f"{self.name} of {self.link}" if self.link else self.name

    def read(self) -> str:
        """What it is now, in the form of `canonical`.  Raises SettingError where it is not there."""
        raise NotImplementedError

    def canonical(self, value: str) -> str:
        """What `read` says when this value is set."""
        return " ".join(value.split())

    def write(self, value: str) -> None:
        """Sets it.  Raises SettingError."""
        raise NotImplementedError

    def objection(self) -> str:
        """Why what it is now could not be put back later; empty if it could."""
        return ""


class Sysctl(Setting):
    """A sysctl by its dotted name; a slash in it stands for a dot, as for sysctl(8)."""

    @property
    def path(self) -> Path:
        """Its file."""
        return SYSCTLS.joinpath(*(part.replace("/", ".") for part in self.name.split(".")))

    def read(self) -> str:
        try:
            return " ".join(self.path.read_text(encoding="utf-8", errors="replace").split())
        except OSError as error:
            raise SettingError(self._missing() if not self.path.is_file() else f"{self}: {error.strerror}") from None

    def write(self, value: str) -> None:
        if not self.path.stat().st_mode & 0o200:
            raise SettingError(f"{self} can only be read on this host, which may be a network namespace of another")
        try:
            self.path.write_text(f"{value}\n", encoding="utf-8")  # the line break makes an empty value a value
        except OSError as error:
            raise SettingError(f"{self} does not take {value!r}: {self._refusal(error)}") from None

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

    def _now(self) -> Feature:
        return offloads(self.link)[OFFLOADS[self.name]]

    def read(self) -> str:
        return self._now().state

    def write(self, value: str) -> None:
        if self._now().fixed:
            raise SettingError(f"{self} is {self._now().state} and its driver lets nobody change that")
        run("ethtool", "-K", self.link, self.name, value)


class Mtu(Setting):
    """The MTU of an interface, in bytes."""

    def read(self) -> str:
        return _attribute(DEVICES / self.link / "mtu")

    def write(self, value: str) -> None:
        run("ip", "link", "set", "dev", self.link, "mtu", value)


class Steering(Setting):
    """Which CPUs work for a queue of an interface; the name is that of its file, `rx-0/rps_cpus`."""

    @property
    def path(self) -> Path:
        """Its file."""
        return DEVICES / self.link / "queues" / self.name

    def read(self) -> str:
        try:
            return cpu_list(mask_cpus(self.path.read_text(encoding="ascii")))
        except OSError as error:
            why = "it has one queue, so there is nothing to choose" if self.path.exists() else error.strerror
            raise SettingError(f"{self}: {why}") from None

    def canonical(self, value: str) -> str:
        return cpu_list(parse_cpus(value))

    def write(self, value: str) -> None:
        try:
            self.path.write_text(cpu_mask(parse_cpus(value)), encoding="ascii")
        except OSError as error:
            there = _attribute(POSSIBLE_CPUS)
            raise SettingError(f"{self} does not take CPUs {value}: {error.strerror}; this host has {there}") from None


class Qdisc(Setting):
    """The queueing discipline of an interface, in the words of tc(8), or `default` for the one of the kernel.

    Its handle stands for the words it was made of, so that it is known again.
    """

    def read(self) -> str:
        root = next((found for found in qdiscs(self.link) if found.get("root")), {"handle": "0:"})
        return DEFAULT if root["handle"] == "0:" else f"{root['kind']} {root['handle']}"

    def canonical(self, value: str) -> str:
        return DEFAULT if value == DEFAULT else f"{value.partition(' ')[0]} {self._handle(value)}"

    def write(self, value: str) -> None:
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
        # The kernel itself takes numbers from 0x8000.
        return f"{zlib.crc32(value.encode()) % 0x7FFF + 1:x}:"


KINDS: dict[str, type[Setting]] = {kind.__name__.lower(): kind for kind in (Sysctl, Offload, Mtu, Steering, Qdisc)}


@dataclass(frozen=True)
class Feature:
    """An offload as ethtool shows it."""

    state: str
    fixed: bool


def parse_offloads(text: str) -> dict[str, Feature]:
    """The offloads in what `ethtool -k` prints, by their long names."""
    return {name: Feature(state, "[fixed]" in rest) for name, state, rest in _OFFLOAD.findall(text)}


def offloads(link: str) -> dict[str, Feature]:
    """The offloads of an interface, by their long names."""
    return parse_offloads(run("ethtool", "-k", link))


def qdiscs(link: str) -> list[dict[str, object]]:
    """The queueing disciplines of an interface; those that the kernel gave it have the handle `0:`."""
    found: list[dict[str, object]] = json.loads(run("tc", "-j", "qdisc", "show", "dev", link) or "[]")
    return found


def sysctls(links: Sequence[str]) -> dict[str, str]:
    """All of the network that can be set, by their dotted names; of single interfaces those of the links."""
    return {setting.name: value for setting, value in _sysctls(links)}


def _sysctls(links: Sequence[str]) -> Iterator[tuple[Sysctl, str]]:
    for path in sorted((SYSCTLS / "net").rglob("*")):
        name = ".".join(part.replace(".", "/") for part in path.relative_to(SYSCTLS).parts)
        interface = _OF_AN_INTERFACE.fullmatch(name)
        ours = interface is None or interface[2].replace("/", ".") in {"all", "default", *links}
        if not ours or _NOT_A_SETTING.search(name) or not path.is_file() or not path.stat().st_mode & 0o200:
            continue
        try:
            yield Sysctl(name), Sysctl(name).read()
        except SettingError:  # one that has never been set, such as a secret
            continue


def parse_cpus(text: str) -> set[int]:
    """CPUs in a list such as `0-3,8`, or `none`."""
    if text == NO_CPUS:
        return set()
    if _CPUS.fullmatch(text) is None:
        raise SettingError(f"{text!r} is no list of CPUs: use one such as 0-3,8, or {NO_CPUS}")
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return {cpu for part in ends for cpu in range(part[0], part[-1] + 1)}


def cpu_list(cpus: set[int]) -> str:
    """A list that `parse_cpus` reads, always the same for the same CPUs."""
    firsts = sorted(cpu for cpu in cpus if cpu - 1 not in cpus)
    lasts = sorted(cpu for cpu in cpus if cpu + 1 not in cpus)
    return ",".join(map(_span, firsts, lasts)) or NO_CPUS


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def cpu_mask(cpus: set[int]) -> str:
    """The CPUs as the kernel takes them: hexadecimal numbers of 32 bits, the highest first."""
    number = sum(1 << cpu for cpu in cpus)
    words = [f"{number >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(number.bit_length(), 1), 32)]
    return ",".join(reversed(words))


def mask_cpus(text: str) -> set[int]:
    """The CPUs of a mask that the kernel shows."""
    number = int(text.strip().replace(",", ""), 16)
    return {cpu for cpu in range(number.bit_length()) if number >> cpu & 1}


def own(knobs: Mapping[str, str], roles: Sequence[str]) -> dict[str, str]:
    """The knobs that are of a host with these roles: names as in the plan → names without the host."""
    found = {}
    for name in knobs:
        role, _, rest = name.partition(".")
        owner, bare = (role, rest) if role in {"left", "right"} else ("dut", name)
        if owner in roles:
            found[name] = bare
    return found


def settings_of(knob: str, links: Sequence[str]) -> list[Setting]:
    """What a knob sets, on all data links where it is one of links.  Raises SettingError."""
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


def link_knobs() -> list[str]:
    """The knobs of data links."""
    return ["link.mtu", "link.qdisc", *(f"link.{name}" for name in STEERING), *(f"link.offload.{o}" for o in OFFLOADS)]


def _queues(link: str, pattern: str) -> list[str]:
    found = sorted(path.name for path in (DEVICES / link / "queues").glob(pattern))
    if not found:
        raise SettingError(f"no interface {link}, or it has no queues {pattern}")
    return found


def _attribute(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise SettingError(f"{path}: {error.strerror}") from None
