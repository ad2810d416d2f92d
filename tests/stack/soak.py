# SPDX-License-Identifier: BSD-2-Clause
"""Bulk transfer between Linux and the stack for a long time: no stall, no leak.

`./dev bench soak [--seconds 600] [LEG ...]` prints one line a leg and exits 1 if one failed. A leg stalls when an
interval moved nothing, or took seconds to move anything. It leaks when the process has grown between a tenth of the
time and the end, or when buffers are left after the connection has ended.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.stack.topology import Installed, Topology

STACK = "10.99.0.2"
GROWTH_MAX = 32 << 20  # bytes: buffers of the largest windows, and the allocator's slack
STALL = 5.0  # seconds: a busy host pauses for less
BUFFERS_MAX = 32  # mbufs: spare ones of receive queues


@dataclass(frozen=True)
class Leg:
    """A server on the stack and its port, a client on Linux, and a parser of its intervals: (Mbit/s, seconds)."""

    port: int
    server: tuple[str, ...]
    client: tuple[str, ...]
    intervals: Callable[[str], list[tuple[float, float]]]


def netperf_intervals(report: str) -> list[tuple[float, float]]:
    """The interim results of netperf -D -1, which checks the clock after every call.

    With -D 1 it checks when as much has come as in the last second: a host that turns busy makes that many seconds.
    """
    found = re.findall(r"^Interim result:\s+([\d.]+) \S+ over ([\d.]+) seconds", report, re.MULTILINE)
    return [(float(rate), float(seconds)) for rate, seconds in found]


def iperf3_intervals(report: str) -> list[tuple[float, float]]:
    """The intervals of iperf3 -J."""
    document = json.loads(report)
    if "error" in document:
        raise ValueError(document["error"])
    sums = [interval["sum"] for interval in document["intervals"]]
    return [(total["bits_per_second"] / 1e6, total["seconds"]) for total in sums]


NETSERVER = ("netserver", "-D", "-4", "-f", "-p", "12865")
IPERF3 = ("iperf3", "-s", "-4", "-p", "5201")
LEGS = {
    "netperf-in": Leg(
        12865, NETSERVER, ("netperf", "-H", STACK, "-P", "0", "-D", "-1", "-t", "TCP_STREAM", "-l"), netperf_intervals
    ),
    "netperf-out": Leg(
        12865, NETSERVER, ("netperf", "-H", STACK, "-P", "0", "-D", "-1", "-t", "TCP_MAERTS", "-l"), netperf_intervals
    ),
    "iperf3-in": Leg(5201, IPERF3, ("iperf3", "-4", "-J", "-c", STACK, "-t"), iperf3_intervals),
    "iperf3-out": Leg(5201, IPERF3, ("iperf3", "-4", "-J", "-R", "-c", STACK, "-t"), iperf3_intervals),
}


def resident(pid: int) -> int:
    """Bytes of memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) << 10


def buffers(topology: Topology) -> int:
    """mbufs in use once all traffic has ended."""
    for _ in range(100):
        count = int(topology.value("mbuf.outstanding"))
        if count <= BUFFERS_MAX:
            break
        time.sleep(0.1)
    return count


def soak(topology: Topology, leg: Leg, seconds: int) -> list[str]:
    """Run one leg and print its result; return the error, if any."""
    server = topology.boot({}, leg.server)
    topology.await_port(leg.port)
    topology.set_congestion("left", "cubic")
    client = topology.start("left", *leg.client, str(seconds), log="client.log")
    time.sleep(max(2, seconds / 10))
    before = resident(server.pid)
    try:
        status = client.wait(timeout=seconds + 60)
    except subprocess.TimeoutExpired:
        return [f"the client still runs a minute after its {seconds} s: {topology.log('client.log')[-500:]}"]
    grown = resident(server.pid) - before
    if status != 0:
        return [f"the client ended with {status}: {topology.log('client.log')[-500:]}"]
    intervals, left = leg.intervals(topology.log("client.log")), buffers(topology)
    stalls = sum(rate <= 0 or length > STALL for rate, length in intervals)
    covered = sum(length for _, length in intervals)
    ordered = sorted(rate for rate, _ in intervals)
    print(f"{len(intervals)} intervals, Mbit/s min {ordered[0]:.0f} median {ordered[len(ordered) // 2]:.0f} "
          f"max {ordered[-1]:.0f}, grown by {grown >> 10} KB, {left} mbufs left", end="")  # fmt: skip
    bad = []
    if stalls or covered < 0.9 * seconds - STALL:
        bad.append(f"{stalls} intervals without data or longer than {STALL} s; all cover {covered:.0f} of {seconds} s")
    if grown > GROWTH_MAX:
        bad.append(f"the process grew by {grown >> 20} MB")
    if left > BUFFERS_MAX:
        bad.append(f"{left} mbufs are left")
    return bad


def main(argv: Sequence[str]) -> int:
    """The command line; its exit status."""
    parser = argparse.ArgumentParser(prog="./dev bench soak", description=__doc__)
    parser.add_argument("--seconds", type=int, default=600, help="of each leg")
    parser.add_argument("legs", nargs="*", metavar="LEG", help=f"{', '.join(LEGS)}; all unless named")
    options = parser.parse_args(argv)
    unknown = set(options.legs) - set(LEGS)
    if unknown:
        parser.error(f"no leg {', '.join(sorted(unknown))}; there are {', '.join(LEGS)}")
    installed, failed = Installed(), 0
    try:
        for name in options.legs or LEGS:
            print(f"{name:<12} ", end="", flush=True)
            with Topology(installed) as topology:
                bad = soak(topology, LEGS[name], options.seconds)
            print(f": {'; '.join(bad) or 'ok'}", flush=True)
            failed += bool(bad)
    finally:
        installed.remove()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
