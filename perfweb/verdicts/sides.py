# SPDX-License-Identifier: BSD-2-Clause
"""The sides of a comparison: a variant of a run, or a variant of all runs of a commit.

An address names a side as `RUN/VARIANT` (`12/direct`) or `REVISION/VARIANT` (`v0.1-12-g0123abc/direct`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Q, QuerySet

from perfweb.lab.origins import Origin
from perfweb.runs.judging import (
    Missing,
    SampleSet,
    TestOnVariant,
    joined,
    missing_of,
    samples_of,
    without_samples,
    worst_missing,
)
from perfweb.runs.models import RunState, Variant
from perfweb.verdicts import names
from perfweb.verdicts.comparisons import TestComparison, compare_sets, together

MOST_SIDES = 7
"""Max number of sides, as in ministat."""

MOST_RUNS = 20
"""Max number of runs of a commit that are merged, the newest."""


class SideError(ValueError):
    """There is no such side; the message names the existing ones."""


@dataclass
class Side:
    """The samples of one or more variants that count as the same."""

    address: str
    label: str
    variants: list[Variant]
    sets: dict[str, SampleSet]
    missing: Mapping[str, Missing] = field(default_factory=dict)
    """Why tests have no samples that count."""
    measured: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """The keys of the variants that have samples of a test."""

    @property
    def tests(self) -> set[str]:
        return self.sets.keys() | self.missing.keys()

    @property
    def by_commit(self) -> bool:
        """Whether its address names the revision that was built, so that another build is what was wanted."""
        return not self.address.partition("/")[0].isdigit()

    @property
    def is_done(self) -> bool:
        """Whether all of its runs are done, without which there is no verdict."""
        return all(variant.run.state == RunState.DONE for variant in self.variants)

    def of(self, test: str) -> SampleSet:
        """Return the samples of a test, an empty set with the reason where there are none."""
        return self.sets.get(test) or without_samples(self.missing.get(test))

    @property
    def origin(self) -> Origin:
        """How its samples came about; all sides of a comparison have the same origin."""
        return Origin(self.variants[0].run.testbed.origin)

    @property
    def sample(self) -> str:
        """Where its results come from, if a testbed of samples has them; otherwise empty."""
        return max((variant.run.testbed.sample for variant in self.variants), default="")

    @property
    def runs(self) -> list[int]:
        return sorted({variant.run_id for variant in self.variants})


def read_sides(addresses: Sequence[str]) -> list[Side]:
    """Find the sides of a comparison with their samples: a query for each side, and one for the samples.

    Raises SideError.
    """
    if not 2 <= len(addresses) <= MOST_SIDES:
        raise SideError(f"a comparison takes from 2 to {MOST_SIDES} sides, and these are {len(addresses)}")
    if len(set(addresses)) < len(addresses):
        raise SideError("the same side is named twice; compare it with another one")
    found = [(address, _variants(address)) for address in addresses]
    _check_alike(found)
    one_run = len({variant.run_id for _, variants in found for variant in variants}) == 1
    return sides([(address, variants[0].name if one_run else address, variants) for address, variants in found])


def sides(named: Sequence[tuple[str, str, list[Variant]]]) -> list[Side]:
    """Return sides given as address, label and variants, with their samples: two queries."""
    every = [variant for _, _, variants in named for variant in variants]
    samples, missing = samples_of(every), missing_of(every)
    made = []
    for address, label, variants in named:
        keys = {variant.pk for variant in variants}
        tests: dict[str, dict[int, SampleSet]] = {}
        for (variant, test), found in samples.items():
            if variant in keys:
                tests.setdefault(test, {})[variant] = found
        sets = {test: joined(list(some.values())) for test, some in tests.items()}
        measured = {test: frozenset(some) for test, some in tests.items()}
        made.append(Side(address, label, variants, sets, _reasons(missing, keys, sets), measured))
    return made


def _reasons(
    missing: Mapping[TestOnVariant, Missing], keys: Collection[int], sets: Collection[str]
) -> dict[str, Missing]:
    """Why tests have no samples on any of some variants."""
    reasons: dict[str, list[Missing]] = {}
    for (variant, test), reason in missing.items():
        if variant in keys and test not in sets:
            reasons.setdefault(test, []).append(reason)
    return {test: found for test, some in reasons.items() if (found := worst_missing(*some))}


def compare_sides(base: Side, other: Side, confidence: float, margin: float) -> list[TestComparison]:
    """Compare `other` with `base` in every test that one of them has."""
    return together(
        compare_sets(test, (base.label, base.of(test)), (other.label, other.of(test)), confidence, margin)
        for test in names.in_order([*base.tests, *other.tests])
    )


def values_by_side(compared: Sequence[Side], test: str) -> dict[str, list[float]]:
    """Return the counted samples of a test by the label of each side, empty for a side that has not measured it."""
    return {side.label: side.sets[test].values if test in side.sets else [] for side in compared}


def _check_alike(found: Sequence[tuple[str, list[Variant]]]) -> None:
    """Refuse to combine results of different origins. Raises SideError."""
    by_origin = {variant.run.testbed.origin: address for address, variants in found for variant in variants}
    if len(by_origin) > 1:
        words = " and ".join(f"“{address}” was {origin}" for origin, address in sorted(by_origin.items(), reverse=True))
        raise SideError(f"{words}: compare like with like")


def _variants(address: str) -> list[Variant]:
    """The variants of an address, newest run first."""
    where, slash, name = address.rpartition("/")
    if not slash or not where or not name:
        raise SideError(f"“{address}” is no side: write RUN/VARIANT or REVISION/VARIANT, like 12/direct")
    known = Variant.objects.select_related("run__plan", "run__testbed", "build").order_by("-run_id")
    if where.isascii() and where.isdigit() and len(where) < 18:
        in_run = known.filter(run=int(where))
        return _named(in_run, name) or _missing(in_run, f"run {where}", name)
    of_commit = known.filter(build__revision=where)
    return _named(of_commit, name) or _missing(of_commit, f"commit {where}", name)


def _named(variants: QuerySet[Variant], name: str) -> list[Variant]:
    """The variants of that name in the newest runs, in those that are done if there are any."""
    found = variants.filter(name=name)
    return list(found.filter(run__state=RunState.DONE)[:MOST_RUNS]) or list(found[:MOST_RUNS])


def _missing(variants: QuerySet[Variant], place: str, name: str) -> list[Variant]:
    there = sorted(set(variants.filter(~Q(name=name)).values_list("name", flat=True)[:100]))
    if not there:
        raise SideError(f"there is no {place}")
    raise SideError(f"{place} has no variant “{name}”; its variants are: {', '.join(there)}")
