# SPDX-License-Identifier: BSD-2-Clause
"""A checked replay bundle: docs/reference/data.md has its members."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from perfweb.inputlimits import PLAN_CHARACTERS
from perfweb.jsontext import JsonError, read_json
from perfweb.rawdata.archives import MANIFEST
from perfweb.rawdata.bodies import BUNDLE_FORMAT
from perfweb.rawdata.replay.tarwalk import BundleError, Found, walk
from perfweb.runs.judging import Missing
from perfweb.runs.models import RunState
from perfweb.stats.comparison import checked_margin
from perfweb.stats.samples import Metric, parse_samples
from perfweb.stats.student import checked_confidence

_READ = {
    "bundle.json": 4 << 20,
    "plan.yaml": 4 * PLAN_CHARACTERS,
    "samples.csv": 256 << 20,
    "verdicts.json": 64 << 20,
    MANIFEST: 64 << 20,
}
"""Members that are read, and their max bytes."""

MOST_VARIANTS = 64
MOST_TESTS = 1000
LONGEST_WORD = 200

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SUM = re.compile(r"([0-9a-f]{64})  (\S+)", re.ASCII)
Value = TypeVar("Value")


@dataclass(frozen=True)
class BundledVariant:
    """A variant of the run; `revision` is that of its sources, empty if unknown."""

    name: str
    baseline: bool
    revision: str


@dataclass(frozen=True)
class Bundle:
    """A bundle whose members all have the listed hashes.

    `tests` are the measured ones, and `metrics` their counted samples. `missing` has variant, test and reason of those
    without counted samples. `verdicts` are the rows of the table of verdicts. `done` is whether the run is done.
    `confidence` and `margin` are those of the stored verdicts, in percent. `plan` may be an invalid plan.
    """

    number: int
    title: str
    testbed: str
    seed: int
    confidence: float
    margin: float
    patches: int
    variants: tuple[BundledVariant, ...]
    tests: tuple[str, ...]
    missing: tuple[tuple[str, str, Missing], ...]
    done: bool
    plan: str
    metrics: list[Metric]
    verdicts: list[dict[str, Any]]
    members: int


def read_bundle(path: Path) -> Bundle:
    """Read and check a bundle. Raises BundleError, or OSError for a file that cannot be read."""
    found = {member.name: member for member in walk(path, _READ.get)}
    _check_sums(found)
    head = _json(found, "bundle.json")
    read = _Reader("bundle.json", head)
    if (version := read.whole("format")) != BUNDLE_FORMAT:
        read.reject(f"has format {version}; this program reads format {BUNDLE_FORMAT}")
    run = read.inside("run")
    try:
        confidence, margin = checked_confidence(read.number("confidence")), checked_margin(read.number("margin"))
    except ValueError as error:
        read.reject(str(error))
    return Bundle(
        number=run.whole("number"),
        title=run.inside("plan").word("title"),
        testbed=run.word("testbed"),
        seed=run.whole("seed"),
        confidence=confidence,
        margin=margin,
        patches=len(read.list("patches", 1000)),
        variants=_variants(run),
        tests=tuple(read.checked_word(test, "tests") for test in read.list("tests", MOST_TESTS)),
        missing=tuple(_missing(read)),
        done="missing" not in head or run.word("state") == RunState.DONE,  # older versions judged all runs
        plan=_text(found, "plan.yaml"),
        metrics=_metrics(found),
        verdicts=_verdicts(found),
        members=len(found),
    )


def _variants(run: _Reader) -> tuple[BundledVariant, ...]:
    variants = []
    for item in run.list("variants", MOST_VARIANTS):
        variant = _Reader(run.where, item)
        build = variant.need("build", dict | None)
        revision = _Reader(run.where, build).word("revision") if build else ""
        variants.append(BundledVariant(variant.word("name"), variant.need("baseline", bool), revision))
    if len({variant.name for variant in variants}) < len(variants):
        run.reject("names a variant twice")
    if not variants:
        run.reject("has no variant")
    return tuple(variants)


def _missing(read: _Reader) -> Iterator[tuple[str, str, Missing]]:
    """Tests without a sample that counts; bundles of older versions do not list them."""
    for item in read.list("missing", MOST_TESTS * MOST_VARIANTS) if "missing" in read.values else []:
        one = _Reader(read.where, item)
        reason = one.word("reason")
        if reason not in set(Missing):
            read.reject(f"has an unknown reason why a test is missing: {reason!r}")
        yield one.word("variant"), one.word("test"), Missing(reason)


def _check_sums(found: Mapping[str, Found]) -> None:
    """Check that the list of hashes has every member with its hash, and no others."""
    listed: dict[str, str] = {}
    for number, line in enumerate(_text(found, MANIFEST).splitlines(), start=1):
        match = _SUM.fullmatch(line)
        if not match:
            raise BundleError(f"{MANIFEST}, line {number}: a line is a SHA-256 hash, two blanks and a name")
        listed[match[2]] = match[1]
    for name, member in found.items():
        if name != MANIFEST and name not in listed:
            raise BundleError(f"{name} is not in {MANIFEST}")
        if name != MANIFEST and listed[name] != member.sha256:
            raise BundleError(f"{name} differs from {MANIFEST}: its hash is {member.sha256}")
    if missing := sorted(set(listed) - set(found)):
        raise BundleError(f"{missing[0]} is in {MANIFEST}, but not in the bundle")


def _metrics(found: Mapping[str, Found]) -> list[Metric]:
    try:
        metrics = parse_samples(io.StringIO(_text(found, "samples.csv"), newline=""), "samples.csv")
    except ValueError as error:
        raise BundleError(str(error)) from None
    primary = [metric for metric in metrics if metric.primary]
    if len({metric.test for metric in primary}) < len(primary):
        raise BundleError("samples.csv: a test has two primary metrics")
    return primary


def _verdicts(found: Mapping[str, Found]) -> list[dict[str, Any]]:
    rows = _json(found, "verdicts.json")
    if not isinstance(rows, list):
        raise BundleError("verdicts.json is no list of verdicts")
    for row in rows:
        if not isinstance(row, dict) or any(isinstance(value, dict | list) for value in row.values()):
            raise BundleError("verdicts.json has a row that is no object with plain values")
    return rows


def _text(found: Mapping[str, Found], name: str) -> str:
    if name not in found:
        raise BundleError(f"{name} is missing: this is not the raw.tar of a run")
    try:
        return (found[name].content or b"").decode()
    except UnicodeDecodeError as error:
        raise BundleError(f"{name} is not UTF-8: byte {error.start}") from None


def _json(found: Mapping[str, Found], name: str) -> Any:
    try:
        return read_json(_text(found, name))
    except JsonError as error:
        raise BundleError(f"{name} {error}") from None


class _Reader:
    """Reads values of the required types from an object."""

    def __init__(self, where: str, value: object) -> None:
        self.where = where
        if not isinstance(value, dict):
            self.reject("has something else where an object should be")
        self.values: dict[str, Any] = value

    def reject(self, problem: str) -> NoReturn:
        raise BundleError(f"{self.where} {problem}")

    def need(self, name: str, kind: Any) -> Any:
        value = self.values.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.reject(f"has no {name} of the right type")
        return value

    def whole(self, name: str) -> int:
        value: int = self.need(name, int)
        if not 0 <= value < 2**63:
            self.reject(f"has {value} as {name}, which cannot be")
        return value

    def number(self, name: str) -> float:
        return float(self.need(name, int | float))

    def word(self, name: str) -> str:
        return self.checked_word(self.need(name, str), name)

    def checked_word(self, word: object, name: str) -> str:
        """Return a text for a terminal: short, and without control characters."""
        if not isinstance(word, str) or len(word) > LONGEST_WORD or _CONTROL.search(word):
            self.reject(f"has a {name} that is no text of at most {LONGEST_WORD} characters without control characters")
        return word

    def list(self, name: str, most: int) -> list[Any]:
        items: list[Any] = self.need(name, list)
        if len(items) > most:
            self.reject(f"has {len(items)} {name}; at most {most} are read")
        return items

    def inside(self, name: str) -> _Reader:
        return _Reader(self.where, self.need(name, dict))
