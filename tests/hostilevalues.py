# SPDX-License-Identifier: BSD-2-Clause
"""Parameter sets for modules of the playbooks: valid ones, and mutations that know paths and sysctls."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Values = dict[str, Any]
UID = 1879048200


def valid(runs: str, builds: str) -> dict[str, Values]:
    """A valid call of each module on a host with these directories and the links data0 and data1."""
    boot, prefix = f"{runs}/run-dut/boot1", f"{builds}/k3y"
    box: Values = {"uid": UID, "reads": [prefix, f"{boot}/stack.own", "/usr"], "network": f"{runs}/dut.net"}
    wire = {"interface": "data0", "address": "10.77.1.2/24", "address6": "fd00::2/64"}
    stackctl = [f"{prefix}/bin/stackctl", "-s", f"{boot}/stack.own/ctl.sock", "ps"]
    return {
        "thread_states": {
            "commands": [stackctl], "timeout": 3, "uid": UID, "reads": [prefix], "pid_file": f"{boot}/stack.pid",
            "pid_directory": f"{runs}/run-dut",
        },
        "boot_words": {"words": "mitigations=off isolcpus=1,2"},
        "build": {
            "root": builds, "key": "k3y", "meson": "/opt/meson", "options": ["-Dbuildtype=release"], "timeout": 600.0,
            "uid": UID, "sources": "QUJD",
        },
        "daemon": {
            **box, "name": "stack", "directory": boot, "argv": [f"{prefix}/bin/bootstack", "-c", f"{boot}/loader.conf"],
            "files": {"loader.conf": 'net.isr.dispatch="direct"\n'}, "devices": ["/dev/net/tun"], "cpus": [0, 1],
            "ready": "^stack: up", "timeout": 10, "state": "started",
        },
        "data_path": {
            "owner": "stack", "links": [wire], "uid": UID, "memory": f"{runs}/dut.data_path",
            "namespace": f"{runs}/dut.net",
        },
        "host_environment": {
            "tools": ["ip", "tc"], "links": [wire], "uid": UID, "addressed": False, "tunnels": ["gif"],
        },
        "host_health": {
            "root": runs, "builds": builds, "group": "dut", "links": ["data0"], "namespace": f"{runs}/dut.net",
            "min_free_mb": 500,
        },
        "host_state": {
            "state": "recorded", "links": ["data0"], "namespace": f"{runs}/dut.net", "record": f"{runs}/dut.before",
        },
        "linux_knobs": {
            "knobs": {
                "net.ipv4.tcp_sack": "0", "net.ipv4.conf.data0.rp_filter": "0", "left.link.mtu": "1400",
                "link.rps_cpus": "0-1", "link.qdisc": "pfifo limit 9", "link.offload.gro": "off",
            },
            "roles": ["dut"], "links": ["data0"], "machine": "", "memory": f"{runs}/dut.knobs",
        },
        "measure": {
            "measurements": [{"test": "tcp.rr/host-host/ipv4", "argv": ["netperf", "-H", "10.77.1.2"], "samples": 3}],
            "timeout": 11, "limits": {"steal": 0.05}, "cpus": [0], "uid": UID, "reads": [builds],
            "environment": {"STACK_CTL": f"{boot}/stack.own/ctl.sock"}, "pid_directory": f"{runs}/run-left",
            "interfaces": ["data0", "perfweb0"], "own": f"{runs}/run-*/boot1/*.pid",
        },
        "reachable": {"address": "10.77.1.2", "port": 12865, "interface": "data0", "timeout": 10},
        "run_directory": {"root": runs, "name": "run-dut", "state": "present"},
        "supervised_command": {**box, "commands": [stackctl], "timeout": 10, "pid_directory": f"{runs}/run-dut"},
        "tunnel": {"kind": "gif", "role": "left", "link": "data0", "ours": "10.77.1.1", "theirs": "10.77.1.2"},
    }  # fmt: skip


LINKS_INTO = ("link", "run-dut/link", "evil", "evil.knobs", "run-link", "data0/queues/rx-1")
"""Names of symbolic links in each directory of a jail that lead out of it."""
FRAGMENTS = (
    "..", ".", "/", "//", "../", "/..", "/../..", "\0", "\n", "\t", " ", "-", "--", "=", "~", "$HOME", "*", ":", "\\",
    "\u2024\u2024", "\uff0f", "\u2215", "\u202e", "\u0430", "\u0660", "\ud800", "%2e%2e", "x" * 300, "net.", ".conf.",
    "/proc/self/root", "/proc/1/root/", "/dev/fd/0", ".own/", "stack.pid", ".knobs", ".net", "init=/x", "rd.break", '"',
)  # fmt: skip
ODD: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: True, lambda: 0, lambda: -1, lambda: 10**30, lambda: 2**32 - 1, lambda: float("nan"),
    lambda: float("inf"), lambda: -0.0, lambda: "", lambda: "0", lambda: "1879048200", lambda: "true", list, dict,
    lambda: [[[[]]]], lambda: {"a": {"b": {}}}, lambda: ["data0"], lambda: {"interface": "data0"}, lambda: 1.5,
)  # fmt: skip


class Mutator:
    """Makes parameter sets from one seed; `outside` must not be touched, `tops` are where values may lead."""

    def __init__(self, seed: int, examples: dict[str, Values], tops: list[str], outside: Path) -> None:
        self.random = random.Random(seed)
        self.examples = examples
        self.tops = tops
        self.outside = outside

    def call(self) -> tuple[str, Values]:
        """A module and its parameters, with up to four mutations."""
        module = self.random.choice(list(self.examples))
        values = copy.deepcopy(self.examples[module])
        for _ in range(self.random.choice((0, 1, 1, 1, 1, 2, 2, 3, 4))):
            self._mutate(values)
        return module, values

    def _mutate(self, values: Values) -> None:
        spots = list(_spots(values))
        if not spots or self.random.random() < 0.05:
            name = self.random.choice(["_raw_params", "creates", "uid", "network", "path", "knobs", self.text()])
            values[name] = self.value("")
            return
        holder, key = self.random.choice(spots)
        if self.random.random() < 0.15 and isinstance(holder, dict):
            holder[self.key(key)] = holder.pop(key)
        elif self.random.random() < 0.1 and isinstance(holder, list):
            holder.append(self.value(holder[key]))
        else:
            holder[key] = self.value(holder[key])

    def key(self, old: Any) -> Any:
        return self.sysctl() if self.random.random() < 0.6 else self.spliced(str(old))

    def value(self, old: Any) -> Any:
        chance = self.random.random()
        if chance < 0.25:
            return self.random.choice(ODD)()
        if chance < 0.5:
            return self.path()
        if chance < 0.6:
            return self.sysctl()
        if isinstance(old, str) and chance < 0.9:
            return self.spliced(old)
        return self.text()

    def spliced(self, old: str) -> str:
        place = self.random.randrange(len(old) + 1)
        return old[:place] + self.random.choice(FRAGMENTS) + old[place + self.random.randrange(3) :]

    def text(self) -> str:
        return "".join(self.random.choice(FRAGMENTS) for _ in range(self.random.randrange(1, 5)))

    def path(self) -> str:
        """A path that leads out of the service's directories, or through a link in one."""
        top = self.random.choice(self.tops)
        climb = "/".join([".."] * self.random.randrange(1, 12))
        return self.random.choice(
            (
                f"{self.outside}/secret", f"{top}/{climb}{self.outside}/secret", f"{top}/{self.outside.name}",
                f"{top}/../{self.outside.name}/secret", f"{top}/{self.random.choice(LINKS_INTO)}",
                f"{top}/{self.random.choice(LINKS_INTO)}/secret", f"{top}/run-dut/link/boot1", "/etc/shadow", "/",
                f"{top}/evil.{self.random.choice(('knobs', 'net', 'before', 'data_path'))}", f"{top}/run-link/boot1",
            )
        )  # fmt: skip

    def sysctl(self) -> str:
        """A name whose parts lead out of a directory, with one of the encodings of a dot."""
        climb = self.random.choice(("//", "/.", "./", "..", "/", "\uff0e\uff0e"))
        parts = [climb] * self.random.randrange(0, 12) + [part.replace(".", "/") for part in self.outside.parts[1:]]
        words = ".".join(("net", *parts, "secret"))
        role = self.random.choice(("", "left.", "net.", "dut."))
        names = (
            role + words,
            "net.ipv4.evil",
            "net.ipv4.link.secret",
            "net.ipv4.conf.mgmt0.x",
            "link.qdisc",
            "net/ipv4",
        )
        return self.random.choice(names)


def _spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in nested values that can be replaced."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _spots(value[key])
