# SPDX-License-Identifier: BSD-2-Clause
"""Stores the samples of a run of the plan a-a-b in the format of `./dev bench stats` and tests/bench/data.

`./dev bench record [SAMPLES.csv]` runs that plan and then this module.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.request import urlopen

from perfweb.stats.samples import COLUMNS

PLAN = "a-a-b"


def fetched(address: str) -> str:
    with urlopen(address, timeout=60) as answer:  # noqa: S310 - the service that was just started
        return str(answer.read().decode("utf-8"))


def counted(lines: Iterable[str]) -> Iterator[list[str]]:
    """The columns that statistics need, with their names first, of the compared metrics."""
    yield list(COLUMNS)
    for row in csv.DictReader(lines):
        if row["primary"] == "true" and row["discarded"] == "false" and row["measurement_state"] == "ok":
            yield [row[column] for column in COLUMNS]


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench record", description=__doc__)
    parser.add_argument("--site", required=True, help="address of the service")
    parser.add_argument("file", type=Path, help="what to write")
    arguments = parser.parse_args()
    site = arguments.site.rstrip("/")
    found = json.loads(fetched(f"{site}/api/v1/runs?plan={PLAN}&state=done&limit=1"))["items"]
    if not found:
        raise SystemExit(f"no run of the plan {PLAN} has come to its end: look at {site}/runs/")
    lines = fetched(f"{site}/runs/{found[0]['number']}/samples.csv").splitlines()
    with arguments.file.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(counted(lines))
    print(f"{arguments.file}: the samples of run {found[0]['number']}")


if __name__ == "__main__":
    main()
