# SPDX-License-Identifier: BSD-2-Clause
"""Known races, which a build with -Dplanted=true has on request, and the number of schedules until a search finds each.

./dev bench races prints the table of docs/measured/simulator.md, and writes it there with --write.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.stack.builds import ROOT
from tests.stack.topology import PATIENCE, Installed

DOCUMENT = ROOT / "docs" / "measured" / "simulator.md"
BEGIN, END = "<!-- races: ./dev bench races --write -->", "<!-- end of races -->"
SEARCHES = ("random", "pct")
# Number of searches for each race, with different seeds, and max schedules of each.
SEARCHERS = 5
SCHEDULES = 1500


@dataclass(frozen=True)
class Race:
    """A race of stack/kern/planted.h, the scene in which it is searched, and a schedule that showed it once."""

    name: str
    what: str
    scene: str
    search: str
    seed: int
    points: int


RACES = (
    Race("lost_wakeup", "a sleeper releases the mutex before a waker can find it", "sleep", "pct", 10, 180),
    Race("mutex_seq", "a mutex is released between the test of it and the park", "sleep", "random", 6, 334),
    Race("callout_drain", "a callout is drained while its handler still runs", "callout", "pct", 422, 621),
    Race("clock_wake", "the clock sleeps for a tick that it found before it worked", "clock", "random", 1, 1000),
    Race("epoch_early", "retired memory is freed while a reader still uses it", "epoch", "pct", 79, 140),
    Race("depot_recheck", "a list of free mbufs is not tested again when it is locked", "mbuf", "pct", 5, 1180),
    Race("arp_free", "a neighbour is freed while a sender reads it", "neighbour", "random", 225, 9301),
    Race("pcb_free", "an entry of a pcb is freed while a packet reads it", "udp-close", "random", 2, 4067),
    Race("sblock_once", "a waiter takes a socket buffer without testing it again", "unix-share", "random", 1, 1000),
    Race("pair_order", "two pcbs are locked in the wrong order", "unix-pair", "random", 4, 1963),
    Race("pair_recheck", "the peer is not tested again when both are locked", "unix-pair", "random", 4, 1963),
    Race("sopair_order", "a socket is locked behind one that comes after it", "unix-socket", "pct", 3, 1978),
    Race("netmark_late", "a reader tests for a writer before it marks itself", "netlock", "random", 172, 5492),
    Race("gc_unlocked", "a message is read while the collector scans it", "unix-rights", "pct", 721, 1098),
    Race("accept_wake", "a listener is woken without a reference", "tcp-listen", "pct", 1164, 5884),
    Race("accept_queue", "a child joins a queue that it was removed from", "tcp-accept", "pct", 25, 11725),
    Race("copy_sleep", "accept() tests the other copies before it is seen to sleep", "tcp-copies", "pct", 957, 2637),
    Race("tcp_closed", "a segment arrives at a connection that was closed", "tcp-reset", "pct", 6, 4716),
    Race("timer_ref", "a timer has no reference to its socket", "tcp-reset", "random", 522, 8125),
    Race("backlog_leave", "the owner leaves without testing the backlog again", "tcp-backlog", "random", 3, 7820),
    Race("backlog_sleep", "the owner sleeps without testing the backlog again", "tcp-backlog", "random", 56, 8063),
    Race("fd_hold", "a closed file gets another descriptor", "fd-dup", "pct", 388, 327),
    Race("fd_reserved", "close() takes a number that accept() has reserved", "fd-reserve", "random", 1, 1000),
    Race("fd_replace", "dup2() replaces a descriptor while another one does", "fd-replace", "random", 1, 1000),
    Race("fd_exec", "numbers change while a program is executed with them", "fd-exec", "pct", 106, 603),
    Race("fd_fork", "numbers change while a process forks", "fd-fork", "pct", 90, 607),
    Race("connect_closed", "connect() uses a socket that was closed meanwhile", "fd-use", "pct", 109, 390),
    Race("hybrid_lost", "hybrid dispatch ends, and new packets stay queued", "netisr", "random", 443, 5888),
    Race("hybrid_overtake", "hybrid dispatch begins while the worker runs", "netisr", "pct", 262, 4969),
    Race("sender_lost", "a sender leaves packets that came while it handled others", "loopback", "pct", 20, 3518),
)


@dataclass(frozen=True)
class Found:
    """The result of a search: the failing schedule, or None; and its whole output."""

    at: int | None
    text: str


class Searcher:
    """simsearch in a build with planted races."""

    def __init__(self) -> None:
        self.installed = Installed("planted")
        self.program = self.installed.prefix / "bin" / "simsearch"

    def scenes(self) -> list[str]:
        """The names of all scenes."""
        listing = subprocess.run([self.program, "--help"], capture_output=True, text=True, check=True, timeout=PATIENCE)
        return re.findall(r"^  (\S+)", listing.stdout.partition("scenes:\n")[2], re.MULTILINE)

    def search(self, scene: str, how: str, *options: str, schedules: int) -> Found:
        """Search for a failing schedule."""
        argv = [str(self.program), "--scene", scene, "--search", how, "--schedules", str(schedules), *options]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=1800)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{' '.join(argv)}: {done.stderr}")
        match = re.search(r"schedule (\d+) goes wrong", done.stdout)
        return Found(int(match[1]) if match else None, done.stdout + done.stderr)

    def median(self, race: Race, how: str) -> float:
        """The number of schedules until it is found, as the median of several searches; infinity if most found
        nothing.
        """
        taken = [
            self.search(race.scene, how, "--planted", race.name, "--seed", str(1 + n * 1000000), schedules=SCHEDULES).at
            for n in range(SEARCHERS)
        ]
        return statistics.median(math.inf if at is None else at for at in taken)

    def remove(self) -> None:
        """Deletes what was installed."""
        self.installed.remove()


def table(searcher: Searcher) -> str:
    """A row for each race."""
    rows = ["| `debug.planted` | | scene | random | PCT |", "|---|---|---|---:|---:|"]
    for race in RACES:
        taken = [searcher.median(race, how) for how in SEARCHES]
        cells = [f"> {SCHEDULES}" if at == math.inf else f"{at:.0f}" for at in taken]
        rows.append(f"| `{race.name}` | {race.what} | `{race.scene}` | {cells[0]} | {cells[1]} |")
        print(rows[-1], flush=True)
    return "\n".join(rows) + "\n"


def replace_between(document: Path, begin_mark: str, end_mark: str, text: str) -> None:
    """Replace the text between two lines of a document."""
    old = document.read_text(encoding="utf-8")
    head, begin, rest = old.partition(begin_mark + "\n")
    _, end, tail = rest.partition(end_mark)
    if not begin or not end:
        raise SystemExit(f"{document}: there is no place for a table, between {begin_mark} and {end_mark}")
    document.write_text(head + begin + text + end + tail, encoding="utf-8")


def main() -> None:
    """Makes the table."""
    parser = argparse.ArgumentParser(prog="./dev bench races", description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/measured/simulator.md")
    chosen = parser.parse_args()
    searcher = Searcher()
    try:
        text = table(searcher)
    finally:
        searcher.remove()
    if chosen.write:
        replace_between(DOCUMENT, BEGIN, END, text)


if __name__ == "__main__":
    main()
