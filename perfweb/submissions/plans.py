# SPDX-License-Identifier: BSD-2-Clause
"""The plans that compare a patch with its base, made from a named matrix of tests and the knobs of the boots."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

import yaml

from perfweb.builds.kinds import LINUX as LINUX_KIND
from perfweb.counted.loads import NAMES
from perfweb.lab.origins import Origin
from perfweb.measuring.planner import estimate, plan_boots
from perfweb.plaintext import shown
from perfweb.runs.catalogue import TESTS
from perfweb.runs.linuxknobs import COMMAND_LINE, HOSTS
from perfweb.runs.planfile import (
    BASE,
    LINUX,
    MOST_SAMPLES,
    PATCH,
    SIM,
    STACK,
    TUNABLE,
    TUNABLE_VALUE,
    TUNABLE_VALUE_RULE,
    PlanSpec,
    read_plan,
    resized,
)

BUILD_SECONDS = 40.0
"""Seconds of building one variant; only for estimates."""


class KnobError(ValueError):
    """A line that sets no tunable; the message has the format."""


@dataclass(frozen=True)
class HostChange:
    """A change of a host by a variant, outside of any sandbox."""

    variant: str
    host: str
    name: str
    value: str


def host_changes(spec: PlanSpec) -> list[HostChange]:
    """Return all changes of hosts by a plan, words for a kernel's command line first: a maintainer sees them at
    approval.
    """
    found = [
        HostChange(variant.name, *_split(name), value)
        for variant in spec.variants
        if variant.target == LINUX
        for name, value in variant.tunables.items()
    ]
    return sorted(found, key=lambda change: change.name != COMMAND_LINE)


def _split(knob: str) -> tuple[str, str]:
    """Split a knob into the host and the name of the knob on that host."""
    host, _, rest = knob.partition(".")
    return (host, rest) if host in HOSTS else ("dut", knob)


@dataclass(frozen=True)
class Matrix:
    """Tests that are measured together, their sizes, and what both variants are built with."""

    name: str
    title: str
    tests: tuple[str, ...]
    boots: int = 4
    samples: int = 16
    build: tuple[str, ...] = ()

    @property
    def choice(self) -> tuple[str, str]:
        """Return the matrices for a list of choices, with the time that a patch takes."""
        return self.name, f"{self.name}: {self.title}; about {round(_usual_seconds(self) / 60)} min"

    @property
    def origin(self) -> Origin:
        """The origin of the results of its tests."""
        return TESTS[self.tests[0]].measure.origin

    @property
    def target(self) -> str:
        """The target of its variants."""
        return str(_TARGETS[self.origin]["target"])


@dataclass(frozen=True)
class Part:
    """Boots that follow each other with the same topology and server: the variants in `order`, and all `tests` on each
    of them. `samples` of a test are taken on a boot, or one less. All of it takes `seconds`.
    """

    topology: str
    order: list[str]
    tests: list[str]
    samples: int
    seconds: float


def parts(spec: PlanSpec) -> list[Part]:
    """Return what a run of a plan does, in order. The order of variants is an example if the plan has it random."""
    found = []
    for (topology, _), group in groupby(plan_boots(spec, 0), lambda boot: boot.group):
        boots = list(group)
        planned = boots[0].measurements
        found.append(
            Part(
                topology,
                [boot.variant for boot in boots],
                [one.test.name for one in planned],
                max(one.samples for one in planned),
                estimate(boots, spec.seconds),
            )
        )
    return found


_RELEASE = {"build": ["-Dbuildtype=release"]}
_TARGETS: Mapping[Origin, Mapping[str, object]] = {
    Origin.MEASURED: {"target": STACK, **_RELEASE},
    Origin.SIMULATED: {"target": SIM, **_RELEASE},
    Origin.COUNTED: {"target": LINUX},
}
"""The target of variants, and how it is built, by the origin of their results."""


def _each(*measures: str, topology: str = "host-host", families: Sequence[str] = ("ipv4",)) -> tuple[str, ...]:
    return tuple(f"{measure}/{topology}/{family}" for measure in measures for family in families)


_TCP = ("tcp.rr", "tcp.stream", "tcp.crr")
_UDP = ("udp.rr", "udp.stream")
_BOTH = ("ipv4", "ipv6")
MATRICES = {
    matrix.name: matrix
    for matrix in (
        Matrix("tcp-quick", "TCP, IPv4", _each(*_TCP)),
        Matrix("udp-quick", "UDP, IPv4", _each(*_UDP)),
        Matrix("quick", "TCP and UDP, IPv4 and IPv6", _each(*_TCP, *_UDP, families=_BOTH)),
        Matrix(
            "forward", "forwarding of TCP and UDP", _each("tcp.rr", "tcp.stream", "udp.rr", topology="host-router-host")
        ),
        Matrix("unix", "UNIX-domain sockets", ("unix.mysql.8/host-host/ipv4", "unix.mysql.11/host-host/ipv4")),
        Matrix(
            "sim",
            "simulated: TCP, UNIX sockets, forwarding; 1 to 4 CPUs",
            _each(*(f"simulated.{load}.{cpus}" for load in ("tcp", "unix", "forward") for cpus in (1, 2, 4))),
            samples=4,
        ),
        Matrix(LINUX_KIND.matrix, "counted: a Linux kernel's instructions by function", NAMES, boots=3, samples=3),
        Matrix(
            f"{LINUX_KIND.name}-patch-debug",
            "a Linux kernel's checks of locks, sleeping and lists",
            NAMES,
            boots=1,
            samples=1,
            build=("debug",),
        ),
        Matrix("full", "TCP and UDP, IPv4 and IPv6, 8 boots", _each(*_TCP, *_UDP, families=_BOTH), boots=8, samples=40),
    )
}


def plan_text(matrix: Matrix, name: str, title: str, tunables: Mapping[str, str], patches: int, *, each: bool) -> str:
    """Return the plan that compares the base with a series, or with `each` of its stages."""
    sources = [BASE, *(f"{PATCH} {number}" for number in range(1, patches + 1))] if each else [BASE, PATCH]
    variants = [
        {
            "name": source.replace(" ", "-"),
            "source": source,
            **_TARGETS[matrix.origin],
            **({"build": list(matrix.build)} if matrix.build else {}),
            **({"tunables": dict(tunables)} if tunables else {}),
        }
        for source in sources
    ]
    plan = {
        "name": name,
        "title": title,
        "baseline": BASE,
        "variants": variants,
        "tests": list(matrix.tests),
        "samples": matrix.samples,
        "boots": matrix.boots,
        "order": "abba",
    }
    return yaml.safe_dump(plan, sort_keys=False, allow_unicode=True, width=200)


def with_boots(text: str, boots: int) -> str:
    """Return the text of a plan with that many boots of each variant, each with the same number of samples as
    before. Raises PlanError.
    """
    spec = read_plan(text)
    samples = min(math.ceil(boots * spec.samples / spec.boots), MOST_SAMPLES)
    return resized(text, {"boots": str(boots), "samples": str(samples)})


def machine_seconds(spec: PlanSpec) -> int:
    """The testbed time of a plan."""
    measuring = 60 * spec.budget if spec.budget else estimate(plan_boots(spec, 0), spec.seconds)
    return round(measuring + BUILD_SECONDS * len(spec.variants))


@cache
def _usual_seconds(matrix: Matrix) -> int:
    return machine_seconds(read_plan(plan_text(matrix, matrix.name, matrix.title, {}, 1, each=False)))


def read_knobs(text: str) -> dict[str, str]:
    """Parse tunables from lines `name=value`, as in loader.conf and sysctl. Raises KnobError."""
    knobs: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = (part.strip().strip('"') for part in line.partition("="))
        if not equals or TUNABLE.fullmatch(name) is None:
            raise KnobError(f"“{shown(line)}” is no knob: write lines such as net.isr.dispatch=direct")
        if TUNABLE_VALUE.fullmatch(value) is None:
            raise KnobError(f"“{shown(value)}” is no value of {shown(name)}; allowed: {TUNABLE_VALUE_RULE}")
        if name in knobs:
            raise KnobError(f"{shown(name)} is set twice")
        knobs[name] = value
    return knobs
