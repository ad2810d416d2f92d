# SPDX-License-Identifier: BSD-2-Clause
"""Checks the locked distributions: `./dev audit`.

Offline: each has hashes, and a licence that is allowed here. Online: pip-audit queries the package index for published
advisories. pip-audit exits with 0 even if it could query nothing, so what it skipped is counted. uv resolves the
lock once more, installs nothing, and warns of distributions that were yanked (PEP 592) after they were locked.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any

from runners.dependencies.sbom import LOCKS, ROOT, Locked, licence_of, locked

TIME_LIMIT = 600.0
"""Max seconds of pip-audit's queries."""

ALLOWED = re.compile("Apache|BSD|MIT|ISC|MPL-2|Mozilla Public|PSF|Python Software Foundation|LGPL-3|Zlib|CNRI|Artistic")
EXCEPTIONS = {
    "ansible-core": "GPL-3.0-or-later: plays run in processes of their own",
    "djlint": "GPL-3.0-or-later: a linter, in no process of the service",
    "imapclient": "BSD-3-Clause, which its metadata does not state",
}
"""Distributions whose licence is allowed although the pattern does not match it, with the reason."""
_YANKED = re.compile(r'warning: `([^`]+)` is yanked(?: \(reason: "(.*)"\))?')


class Outcome(IntEnum):
    """The exit status: an unreachable database is neither of the first two."""

    CLEAN = 0
    FOUND = 1
    UNREACHABLE = 3


def offline(distributions: Iterable[Locked]) -> list[str]:
    """Return the faults of locked distributions, a sentence each."""
    wrong = []
    for one in distributions:
        if not one.hashes:
            wrong.append(f"{one.lock}: {one.name} {one.version} has no hash: run ./dev lock")
        licence = licence_of(one.name)
        if one.name not in EXCEPTIONS and not ALLOWED.search(licence):
            wrong.append(f"{one.lock}: {one.name} {one.version}: the licence “{licence}” is not allowed")
    return wrong


def judge(report: dict[str, Any]) -> tuple[Outcome, list[str]]:
    """Judge a report of pip-audit in JSON: the outcome, and a line for each advisory and for what was skipped."""
    rows = report["dependencies"]
    lines = [
        f"{row['name']} {row['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'no version'}"
        for row in rows
        for found in row.get("vulns", [])
    ]
    skipped = [row["name"] for row in rows if "skip_reason" in row]
    if lines:
        return Outcome.FOUND, lines
    if len(skipped) == len(rows):
        return Outcome.UNREACHABLE, ["no advisory database can be reached: nothing is known about any distribution"]
    if skipped:
        return Outcome.UNREACHABLE, [f"the advisory database does not answer about {', '.join(skipped)}"]
    return Outcome.CLEAN, []


def _audit(lock: str) -> tuple[Outcome, list[str]]:
    words = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--progress-spinner", "off", "-f", "json"]
    try:
        done = subprocess.run(
            [*words, "-r", lock], check=False, cwd=ROOT, capture_output=True, text=True, timeout=TIME_LIMIT
        )
        return judge(json.loads(done.stdout))
    except (subprocess.TimeoutExpired, ValueError):
        return Outcome.UNREACHABLE, ["no advisory database can be reached: pip-audit gave no report"]


def yanked(lock: str, *options: str) -> tuple[Outcome, list[str]]:
    """Return a line for each distribution of a lock file that its authors have yanked; `options` are for uv."""
    words = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--dry-run", "--reinstall", "--no-deps"]
    words += ["--color", "never", "--python", sys.executable, "-r", lock, *options]
    unknown = Outcome.UNREACHABLE, ["the package index does not answer: whether a distribution was yanked is not known"]
    try:
        done = subprocess.run(words, check=False, cwd=ROOT, capture_output=True, text=True, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return unknown
    if done.returncode != 0:
        return unknown
    found = filter(None, map(_YANKED.fullmatch, done.stderr.splitlines()))
    lines = [f"{one[1]} was yanked: {one[2] or 'no reason is given'}; run ./dev lock" for one in found]
    return (Outcome.FOUND if lines else Outcome.CLEAN), lines


def main() -> int:
    """Print the faults; return an Outcome."""
    distributions = locked()
    wrong = offline(distributions)
    print(*wrong, f"{len(distributions)} locked distributions: {len(wrong)} problems of hashes and licences", sep="\n")
    outcomes = [Outcome.FOUND if wrong else Outcome.CLEAN]
    for lock in LOCKS:
        for ask, nothing in ((_audit, "no advisory is known"), (yanked, "no distribution was yanked")):
            outcome, lines = ask(lock)
            outcomes.append(outcome)
            print(*(f"{lock}: {line}" for line in lines or [nothing]), sep="\n")
    return Outcome.FOUND if Outcome.FOUND in outcomes else max(outcomes)


if __name__ == "__main__":
    sys.exit(main())
