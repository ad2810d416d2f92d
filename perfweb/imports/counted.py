# SPDX-License-Identifier: BSD-2-Clause
"""The file of `./dev kernel --json`: what each boot of both kernels costs under each load, by function."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from perfweb.counted import costs
from perfweb.counted.rows import KINDS
from perfweb.imports.records import Files, Options, Record
from perfweb.jsontext import JsonError, read_json
from perfweb.lab.origins import Origin
from perfweb.measuring.tools import Value
from perfweb.runs.models import Direction

TOOL = "qemu"
LARGEST_SEED = 2**31 - 1


def read(paths: Sequence[str], options: Options, files: Files) -> Iterator[Record]:  # noqa: ARG001
    """Yield a record for each load on each boot: the cost of one unit in its lowest window.

    Its output is the cost of all functions.
    """
    if len(paths) > 1:
        files.report.add(Path(paths[1]), 0, "is a second comparison of kernels: import one at a time")
        return
    path = Path(paths[0])
    if (text := files.text(path)) is not None:
        yield from files.isolated(path, _document(path, text, files))


def _document(path: Path, text: str, files: Files) -> Iterator[Record]:
    try:
        document = read_json(text)
    except JsonError as error:
        files.report.add(path, 0, str(error))
        return
    sides = document.get("sides") if isinstance(document, dict) else None
    if not isinstance(sides, dict) or not sides or not all(isinstance(boots, list) for boots in sides.values()):
        files.report.add(path, 0, "has no boots of two kernels: write it with ./dev kernel --json")
        return
    for variant, boots in sides.items():
        seeds: set[int] = set()
        for number, boot in enumerate(boots, start=1):
            yield from _boot(path, (variant, number), boot, seeds, files)


def _boot(path: Path, name: tuple[str, int], boot: Any, seeds: set[int], files: Files) -> Iterator[Record]:
    """Yield the loads of a boot, which has a variant and a number as its name; `seeds` are those of boots before it."""
    variant, where = name[0], f"boot {name[1]} of {name[0][:40]!r}"
    seed, loads = (boot.get(field) for field in ("seed", "loads")) if isinstance(boot, dict) else (None, None)
    if type(seed) is not int or not 0 <= seed <= LARGEST_SEED or not isinstance(loads, dict):
        files.report.add(path, 0, f"{where} has no seed from 0 to {LARGEST_SEED} with loads")
        return
    if seed in seeds:
        files.report.add(path, 0, f"{where} has the seed {seed} of another boot")
        return
    seeds.add(seed)
    for load, value in loads.items():
        try:
            found = costs.read(value)
        except costs.CostError as error:
            files.report.add(path, 0, f"{where}: the load {load[:80]!r} {error}")
            continue
        values = tuple(
            Value(kind, number, KINDS[kind], Direction.LOWER) for kind, number in found.lowest._asdict().items()
        )
        yield Record(
            path, 0, variant, str(seed), load, values, tool=TOOL, command="./dev kernel", origin=Origin.COUNTED,
            seed=seed, output=json.dumps(costs.written(found)),
        )  # fmt: skip
