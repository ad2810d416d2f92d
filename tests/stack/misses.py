# SPDX-License-Identifier: BSD-2-Clause
"""`./dev bench misses`: instructions and cache misses of a packet on each path through the stack, simulated.

If the CPU counts its misses, `stackctl top` reports them; a virtual machine seldom does. So each row boots the stack
twice under cachegrind, with a source in memory of few packets and of many, and divides the difference. The simulated
caches have the sizes of this CPU's, are empty at the start and have one user. There is no prefetching and no other
writer, so the misses of a device that writes past the caches are missing. The numbers show the order of paths, not
their cost.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.stack.topology import Installed, run

FEW, MANY = 20_000, 120_000
SECONDS = 120
RECEIVED = {"if.mem0.inet": "10.9.0.1/24", "machine.spin_us": "0"}
FORWARDED = {**RECEIVED, "if.mem1.inet": "10.9.1.1/24", "net.inet.ip.forwarding": "1"}


@dataclass(frozen=True)
class Row:
    """A path of packets from 10.9.0.2 to an address."""

    name: str
    to: str
    tunables: Mapping[str, str]


ROWS = (
    Row("received by UDP, nobody there", "10.9.0.1", RECEIVED),
    *(Row(f"monitor {at}", "10.9.0.1", {**RECEIVED, "if.mem0.monitor": at}) for at in ("header", "top", "queue")),
    Row("forwarded", "10.9.1.2", FORWARDED),
    Row("fast-forwarded", "10.9.1.2", {**FORWARDED, "net.inet.ip.fastforwarding": "1"}),
    Row("fast-forwarded, fifo", "10.9.1.2",
        {**FORWARDED, "net.inet.ip.fastforwarding": "1", "kern.mbuf.recycle": "fifo"}),
)  # fmt: skip


class Cost(NamedTuple):
    """The costs of one packet: instructions, and misses of the first and the last data cache."""

    instructions: float
    first: float
    last: float


def main() -> None:
    installed = Installed()
    try:
        print("simulated by cachegrind, not counted by this CPU")
        print(f"{'':32}{'instructions':>14}{'first-level misses':>20}{'last-level misses':>19}  a packet")
        for row in ROWS:
            cost = measure(installed.prefix, row)
            print(f"{row.name:32}{cost.instructions:14.0f}{cost.first:20.2f}{cost.last:19.2f}", flush=True)
    finally:
        installed.remove()


def measure(prefix: Path, row: Row) -> Cost:
    """The cost of one more packet."""
    few, many = (_simulate(prefix, row, count) for count in (FEW, MANY))
    return Cost(*((b - a) / (MANY - FEW) for a, b in zip(few, many, strict=True)))


def _simulate(prefix: Path, row: Row, count: int) -> tuple[int, int, int]:
    with tempfile.TemporaryDirectory(prefix="misses-") as directory:
        out, conf, ctl = (Path(directory) / name for name in ("cachegrind.out", "loader.conf", "ctl"))
        source = f"from=10.9.0.2 to={row.to} flows=64 count={count}"
        lines = {"ctl.path": str(ctl), "if.mem0.source": source, **row.tunables}
        conf.write_text("".join(f'{name}="{value}"\n' for name, value in lines.items()), encoding="ascii")
        words = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", f"--cachegrind-out-file={out}"]
        words += [f"{prefix}/bin/bootstack", "-c", str(conf)]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            try:
                _await_packets(prefix, ctl, count)
            finally:
                child.terminate()
        return events(out.read_text(encoding="ascii"))


def _await_packets(prefix: Path, ctl: Path, count: int) -> None:
    until = time.monotonic() + SECONDS
    while True:
        time.sleep(0.5)
        output = run(f"{prefix}/bin/stackctl", "-s", str(ctl), "sysctl", "if.mem0.stats.ipackets", check=False)
        if output and int(output.split()[1]) >= count:  # the reply to a request for a link address is one more
            return
        if time.monotonic() > until:
            sys.exit(f"misses: {count} packets took more than {SECONDS} s under valgrind; is it installed?")


def events(text: str) -> tuple[int, int, int]:
    """Instructions, and misses of the first and of the last data cache, in an output file of cachegrind."""
    lines = {name: re.search(rf"^{name}: (.*)$", text, re.MULTILINE) for name in ("events", "summary")}
    names, values = (line[1].split() if line else [] for line in lines.values())
    counted = {name: int(value) for name, value in zip(names, values, strict=True)}
    return counted["Ir"], counted["D1mr"] + counted["D1mw"], counted["DLmr"] + counted["DLmw"]


if __name__ == "__main__":
    main()
