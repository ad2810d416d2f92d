# SPDX-License-Identifier: BSD-2-Clause
"""The long test: all pairs and triples of values of all knobs, and all combinations of knobs that interact.

The product of all knobs has too many rows. Failures are stored with the finished combinations; a second call continues.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.stack.combinations import SANITIZERS, TESTS, Build, FailedError, loader_conf, refused
from tests.stack.covering import Covering, Row

# Sets of combinations in which all tuples of values occur, by the size of the tuples.
STRENGTHS = {"pairs": 2, "triples": 3}
# Knobs that interact: dispatch and locks of TCP's input; of a UNIX-domain message; of a forwarded packet.
PRODUCTS = {
    "tcp": (
        "net.inet.tcp.input", "net.inet.tcp.pcbtable", "net.isr.generation", "net.isr.dispatch", "net.isr.maxthreads",
        "lock.mutex", "debug.mpsafenet", "if.mem0.transmit",
    ),
    "unix": ("unix.locking", "fd.lock", "lock.mutex", "debug.mpsafenet", "lock.giant_adaptive", "kern.smp.disabled"),
    "forward": (
        "net.inet.ip.fastforwarding", "net.isr.generation", "net.isr.dispatch", "if.mem0.transmit",
        "if.mem0.needsgiant", "net.prefetch", "kern.mbuf.recycle", "if.mem3.monitor",
    ),
}  # fmt: skip


def rows_of(name: str, knobs: Mapping[str, Sequence[str]]) -> list[Row]:
    """Return the combinations of a set: for `tcp`, `unix` or `forward` all that are not refused."""
    if name in STRENGTHS:
        # Several candidates for a row make fewer rows, and take long if there are many tuples to cover.
        return Covering(knobs, STRENGTHS[name], refused).rows(candidates=4 if name == "pairs" else 1)
    names = PRODUCTS[name]
    rows = [dict(zip(names, values, strict=True)) for values in itertools.product(*(knobs[name] for name in names))]
    tests = itertools.cycle(knobs[TESTS])
    return [{**row, TESTS: next(tests)} for row in rows if not refused(row)]


class Record:
    """The finished combinations, in a directory: a line for each, and the loader.conf and output of failed ones."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self.list = directory / "done"
        self.list.touch()
        self.done = set(self.list.read_text(encoding="ascii").split())

    def key(self, build: Build, row: Row) -> str:
        """A name for a combination in a build, which depends on its settings."""
        return hashlib.sha256(f"{build.name} {row[TESTS]}\n{loader_conf(row)}".encode()).hexdigest()[:16]

    def attempt(self, build: Build, row: Row) -> Path | None:
        """Run it; return a directory with details if it fails, which does not count as finished."""
        directory = Path(tempfile.mkdtemp(prefix="stack-test-"))
        try:
            build.carries(row, directory)
        except FailedError as failed:
            kept = self.directory / f"failed-{self.key(build, row)}"
            kept.mkdir(exist_ok=True)
            (kept / "loader.conf").write_text(loader_conf(row), encoding="utf-8")
            (kept / "result").write_text(f"{build.name}, {row[TESTS]}: {failed}\n", encoding="utf-8")
            return kept
        else:
            with self.list.open("a", encoding="ascii") as done:
                done.write(f"{self.key(build, row)}\n")
            return None
        finally:
            shutil.rmtree(directory)


def attempts(build: Build, rows: Sequence[Row], record: Record, jobs: int) -> Iterator[Path | None]:
    """Run the unfinished ones, that many in parallel."""
    with ThreadPoolExecutor(jobs) as pool:
        try:
            yield from pool.map(lambda row: record.attempt(build, row), rows)
        finally:
            pool.shutdown(cancel_futures=True)


def exhaust(build: Build, name: str, rows: Sequence[Row], record: Record, jobs: int) -> int:
    """Run a set, and print the progress every half minute; return the number of failures."""
    rest = [row for row in rows if record.key(build, row) not in record.done]
    print(f"{build.name} {name}: {len(rows)} combinations, {len(rows) - len(rest)} done before", flush=True)
    failed, printed = 0, time.monotonic()
    for number, kept in enumerate(attempts(build, rest, record, jobs), start=1):
        if kept is not None:
            failed += 1
            print(f"{build.name} {name}: one fails: {kept}", flush=True)
        if time.monotonic() - printed > 30 or number == len(rest):
            printed = time.monotonic()
            print(f"{build.name} {name}: {number} of {len(rest)}, {failed} failed", flush=True)
    return failed


def main() -> int:
    """Run the selected sets, or all; return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="./dev test-long", description=__doc__)
    parser.add_argument("sets", nargs="*", choices=[[], *STRENGTHS, *PRODUCTS], help="all unless named")
    parser.add_argument("--build", choices=SANITIZERS, help="both unless one is named")
    parser.add_argument("--state", type=Path, required=True, help="directory of what has been done")
    parser.add_argument("--jobs", type=int, default=2, help="programs at once (2)")
    options = parser.parse_args()
    record = Record(options.state)
    failed = 0
    for sanitizer in [options.build] if options.build else SANITIZERS:
        build = Build(sanitizer)
        try:
            with tempfile.TemporaryDirectory(prefix="stack-test-") as directory:
                knobs = build.knobs(Path(directory))
            for name in options.sets or ["pairs", *PRODUCTS, "triples"]:
                failed += exhaust(build, name, rows_of(name, knobs), record, options.jobs)
        finally:
            build.installed.remove()
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
