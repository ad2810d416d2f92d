# SPDX-License-Identifier: BSD-2-Clause
"""Search over everything that has a page: for each kind the newest items that contain all words.

Every searched text has a trigram index (https://www.postgresql.org/docs/15/pgtrgm.html), so that a part of a word is
found in any case, without reading the table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

from django.db.models import Model, Q, QuerySet
from django.urls import reverse

from perfweb.builds.models import Build
from perfweb.lab.models import Testbed
from perfweb.manual import search as manual
from perfweb.runs.catalogue import TESTS
from perfweb.runs.models import Boot, HostFacts, Measurement, Plan, Run, Variant
from perfweb.verdicts import names

MOST_HITS = 10
SHORTEST_WORD = 3
"""Letters of a word that a trigram index can find."""

MOST_WORDS = 8
"""Max number of words of a query; the page refuses more."""
LONGEST_WORD, SIMILAR = 32, 0.75
"""Max letters of a word that may be misspelt, and the min similarity of the right one (difflib)."""
_WORD = re.compile(r"[a-z]{3,}", re.ASCII)
RARE = 200
"""Max matches of which all are read to find the newest."""

RECENT = 10_000
"""Number of newest rows among which a common word is searched first."""

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Hit:
    """A search result: its name, its address, and the text around the words."""

    name: str
    address: str
    text: str = ""


@dataclass(frozen=True)
class Group:
    """The results of one kind; `more` is set if there are more."""

    title: str
    hits: list[Hit]
    more: bool


def search(query: str) -> list[Group]:
    """Find everything that contains all words of the query; a number finds its run. At most 25 queries."""
    words = [word for word in query.split() if len(word) >= SHORTEST_WORD]
    groups = [_group("Runs", _run_by_number(query))]
    if words:
        groups += [
            _group("Tests", _tests(words)),
            _group("Testbeds", _testbeds(words)),
            _group("Plans", _plans(words)),
            _group("Commits", _commits(words)),
            _group("Variants", _variants(words)),
            _group("Hosts", _hosts(words)),
            _group("Failures", _failures(words)),
            _group("Documentation", _documentation(words)),
        ]
    return [group for group in groups if group.hits]


def completions(text: str) -> list[Hit]:
    """Return what has a name with the text in it: testbeds, tests, and sections of the documentation. One query."""
    if len(text) < SHORTEST_WORD:
        return []
    found = [*_testbeds([text]), *_tests([text]), *_documentation([text])]
    return [hit for hit in found if text.lower() in hit.name.lower()][:MOST_HITS]


def suggestion(query: str) -> str:
    """Return a query without results with its unknown words replaced by similar ones of the documentation and of tests,
    an empty text if that has no results either.
    """
    known = manual.vocabulary() | {
        word for name, test in TESTS.items() for word in _WORD.findall(f"{name} {test.title}".lower())
    }
    words = [word if word.lower() in known else _similar(word.lower(), known) or word for word in query.split()]
    better = " ".join(words)
    return better if words != query.split() and search(better) else ""


def _similar(word: str, known: Collection[str]) -> str:
    if len(word) > LONGEST_WORD:
        return ""
    return next(iter(get_close_matches(word, known, n=1, cutoff=SIMILAR)), "")


def _group(title: str, hits: Iterable[Hit]) -> Group:
    found = list(hits)
    return Group(title, found[:MOST_HITS], len(found) > MOST_HITS)


def _all_words(words: list[str], *fields: str) -> Q:
    """Require each word in one of the fields."""
    condition = Q()
    for word in words:
        condition &= Q.create([(f"{field}__icontains", word) for field in fields], connector=Q.OR)
    return condition


def _newest(rows: QuerySet[Row]) -> list[Row]:
    """Return the newest matches, up to one more than are shown.

    In the order of the keys PostgreSQL would walk through a whole table when hardly anything matches, and to sort them
    it would read all matches of a common word. So a common word is searched among the newest rows first, and in the
    others only if these have too few matches.
    """
    some = list(rows.order_by()[: RARE + 1])
    if len(some) > RARE:
        newest = rows.model._default_manager.order_by("-pk").values_list("pk", flat=True)[0]
        some += rows.filter(pk__gt=newest - RECENT).order_by("-pk")[: MOST_HITS + 1]
    return sorted({row.pk: row for row in some}.values(), key=lambda row: row.pk, reverse=True)[: MOST_HITS + 1]


def _run_by_number(query: str) -> Iterable[Hit]:
    digits = query.strip().lower().removeprefix("run").strip().removeprefix("#")
    if digits.isascii() and digits.isdigit() and len(digits) < 18:
        for run in Run.objects.filter(pk=int(digits)).select_related("plan"):
            yield _run_hit(run, run.plan.title)


def _run_hit(run: Run, text: str) -> Hit:
    return Hit(f"run {run.pk}", reverse("reports:run", args=[run.pk]), text)


def _tests(words: list[str]) -> Iterable[Hit]:
    for name, test in TESTS.items():
        if all(word.lower() in f"{name} {test.title}".lower() for word in words):
            yield Hit(name, reverse("reports:test", args=[name]), names.title(name))


def _testbeds(words: list[str]) -> Iterable[Hit]:
    for testbed in Testbed.objects.filter(_all_words(words, "name", "hosts__name")).distinct()[: MOST_HITS + 1]:
        yield Hit(testbed.name, reverse("reports:testbed", args=[testbed.name]))


def _plans(words: list[str]) -> Iterable[Hit]:
    plans = {plan.pk: plan for plan in _newest(Plan.objects.filter(_all_words(words, "title", "text")))}
    for run in Run.objects.filter(plan__in=plans)[: MOST_HITS + 1] if plans else ():
        yield _run_hit(run, plans[run.plan_id].title)


def _commits(words: list[str]) -> Iterable[Hit]:
    builds = _newest(Build.objects.filter(_all_words(words, "revision")))
    latest = Variant.objects.filter(build__in=builds).order_by("build_id", "-run_id").distinct("build_id")
    variants = {variant.build_id: variant for variant in latest} if builds else {}
    for build in builds:
        if variant := variants.get(build.pk):
            address = reverse("reports:run", args=[variant.run_id])
            yield Hit(build.revision, address, f"run {variant.run_id}, variant {variant.name}")


def _variants(words: list[str]) -> Iterable[Hit]:
    for variant in _newest(Variant.objects.filter(_all_words(words, "name", "knobs"))):
        knobs = ", ".join(f"{name} {value}" for name, value in variant.tunables.items())
        yield Hit(f"{variant.name}, run {variant.run_id}", reverse("reports:run", args=[variant.run_id]), knobs)


def _hosts(words: list[str]) -> Iterable[Hit]:
    for host in _newest(HostFacts.objects.filter(_all_words(words, "name"))):
        yield Hit(f"{host.name}, run {host.run_id}", reverse("reports:run", args=[host.run_id]))


def _failures(words: list[str]) -> Iterable[Hit]:
    runs = Run.objects.filter(_all_words(words, "reason"))
    boots = Boot.objects.filter(_all_words(words, "error"))
    measurements = Measurement.objects.filter(_all_words(words, "reason")).select_related("boot")
    found = [
        *((run.pk, run.reason) for run in _newest(runs)),
        *((boot.run_id, boot.error) for boot in _newest(boots)),
        *((row.boot.run_id, f"{row.test}: {row.reason}") for row in _newest(measurements)),
    ]
    for number, text in sorted(dict.fromkeys(found), reverse=True):
        yield Hit(f"run {number}", reverse("reports:run", args=[number]), text)


def _documentation(words: list[str]) -> Iterable[Hit]:
    for found in manual.sections(words)[: MOST_HITS + 1]:
        yield Hit(found.title, found.address, found.excerpt)
