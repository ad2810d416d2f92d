# SPDX-License-Identifier: BSD-2-Clause
"""Verdicts: what the pages of comparisons say, from the same code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from ninja import Query, Router
from pydantic import AfterValidator, BaseModel, Field

from perfweb.api.operations import Number, finite, read
from perfweb.api.problems import RefusedError
from perfweb.api.runs import find_run
from perfweb.counted.comparison import Verdict as Effects
from perfweb.counted.loads import unit
from perfweb.runs.judging import counted_samples
from perfweb.runs.models import Direction
from perfweb.stats import comparison as judging
from perfweb.stats.boots import Level
from perfweb.stats.comparison import DEFAULT_MARGIN, Lack, Verdict
from perfweb.stats.student import CONFIDENCE_LEVELS, DEFAULT_CONFIDENCE, checked_confidence
from perfweb.stats.summary import Summary as SampleSummary
from perfweb.verdicts import names
from perfweb.verdicts.comparisons import TestComparison, tally
from perfweb.verdicts.doubts import run_pairs, side_comparisons
from perfweb.verdicts.functions import loads_of
from perfweb.verdicts.numbers import THIN_SPACE
from perfweb.verdicts.sides import MOST_SIDES, SideError, read_sides
from perfweb.verdicts.tags import tag_of_database, tag_of_run
from perfweb.verdicts.text import comparison_text
from perfweb.verdicts.wording import difference_words, evidence_words

router = Router(tags=["comparisons"])

Confidence = Annotated[
    float, AfterValidator(checked_confidence), Field(json_schema_extra={"enum": list(CONFIDENCE_LEVELS)})
]
Address = Annotated[str, Field(pattern=r"^[^\u0000/]{1,80}/[-A-Za-z0-9_]{1,64}$")]
"""RUN/VARIANT or REVISION/VARIANT."""


class Summary(BaseModel):
    """The counted samples of one side, in the unit of the test."""

    n: int
    mean: float
    median: float
    deviation: float | None = Field(description="sample standard deviation; null for a single sample")
    minimum: float
    maximum: float


class Effect(BaseModel):
    """The change from the base, in percent of the base, with its confidence interval."""

    percent: float
    low: float
    high: float
    level: Level = Field(description="unit of observation")
    observations: list[int] = Field(description="observations of each side, the base first")
    p: float = Field(description="how often chance makes such a difference or a larger one")
    equivalence_low: float = Field(description="lower end of the interval that decides about equivalence")
    equivalence_high: float
    detectable: float | None = Field(description="the change in percent that would show in 4 runs of 5")


class TestVerdict(BaseModel):
    """The result of a comparison for one test."""

    test: str
    title: str
    unit: str
    direction: Direction = Field(description="the better direction")
    verdict: Verdict
    lack: Lack | None = Field(description="the missing condition, if there is not enough data, or no verdict")
    words: str = Field(description="the verdict; if undecided, also what would decide")
    difference: str = Field(description="the change with its interval as people read it")
    evidence: str = Field(description="evidence of the verdict")
    effect: Effect | None = Field(description="null where not even an interval can be given")
    a: Summary | None = Field(description="the samples of the base")
    b: Summary | None = Field(description="the samples of the other side")
    boots: list[int] = Field(description="how often each side was booted, the base first")
    boots_differ: bool = Field(description="whether boots of one side are not alike, so that boots are counted")
    more_boots: int | None = Field(description="number of additional boots of each side that would decide, if known")
    lean: float | None = Field(
        description="how much higher the run's sentinel stood with the boots of the other side than with those of the "
        "base, in percent, where that puts the verdict in doubt; null elsewhere"
    )
    cautions: list[str] = Field(
        description="warnings that belong beside the verdict, in words: other testbed, machine, kernel or build, boots "
        "that differ, a sentinel that moved"
    )


class Function(BaseModel):
    """A function of a counted kernel whose cost differs, with the difference for one unit."""

    name: str
    instructions: float
    locked: float = Field(description="instructions with a lock prefix")
    accesses: float = Field(description="memory accesses")


class Load(BaseModel):
    """A load of two counted kernels: instructions of one unit, and the functions that differ."""

    load: str
    unit: str = Field(description="what one unit is: a round trip")
    verdict: Effects = Field(description="what is attributed to the other side")
    base: float = Field(description="instructions of the base")
    other: float
    spread: float = Field(description="what chance explains of their difference")
    unexplained: float = Field(description="instructions of some windows only, which no function explains")
    functions: list[Function] = Field(description="the largest difference first")


class Comparison(BaseModel):
    """One side against another in every test."""

    base: str = Field(
        description="address of the side that the other is compared with: RUN/VARIANT or REVISION/VARIANT"
    )
    other: str
    confidence: float = Field(description="in percent")
    margin: float = Field(description="margin of equivalence, in percent")
    verdicts: dict[Verdict, int] = Field(description="number of tests with each verdict")
    words: str = Field(description="the same in words")
    tests: list[TestVerdict]
    loads: list[Load] = Field(description="of counted kernels, each load by function; else empty")
    text: str = Field(description="the comparison as a table for a terminal")
    page: str = Field(description="where people read it")


class Comparisons(BaseModel):
    """Every other side against the base."""

    items: list[Comparison]


class Terms(BaseModel):
    """How strictly to judge."""

    confidence: Confidence = Field(DEFAULT_CONFIDENCE, description="confidence level in percent")
    margin: float = Field(DEFAULT_MARGIN, gt=0, lt=100, description="margin of equivalence, in percent")


class Sides(BaseModel):
    """What is compared."""

    base: Address = Field(description="RUN/VARIANT or REVISION/VARIANT, such as 12/deferred", examples=["12/deferred"])
    others: list[Address] = Field(
        alias="with", min_length=1, max_length=MOST_SIDES - 1, description="the sides that are compared with it"
    )


@read(router, "runs/{number}/comparisons", Comparisons, may_lack=True, tag=tag_of_run)
def compare_run(request: HttpRequest, number: Number, terms: Query[Terms]) -> Comparisons:  # noqa: ARG001
    """Compare the baseline of a run with each of its other variants."""
    run = find_run(number)
    counted = counted_samples([run])[run.pk]
    return Comparisons(
        items=[
            _comparison(
                (f"{number}/{pair.a.name}", f"{number}/{pair.b.name}"),
                terms,
                pair.compared,
                reverse("reports:comparison", args=[number, pair.a.name, pair.b.name]),
            )
            for pair in run_pairs(run, counted, terms.confidence, terms.margin)
        ]
    )


@read(router, "comparisons", Comparisons, may_lack=True, tag=tag_of_database)
def compare_any(request: HttpRequest, wanted: Query[Sides], terms: Query[Terms]) -> Comparisons:  # noqa: ARG001
    """Compare variants of whatever runs or commits.

    A side that is named by a revision is all runs of that commit, the newest twenty.
    """
    try:
        sides = read_sides([wanted.base, *wanted.others])
    except SideError as error:
        raise RefusedError(HTTPStatus.NOT_FOUND, str(error)) from None
    base, *others = sides
    found = side_comparisons(sides, terms.confidence, terms.margin)
    page = reverse("reports:compare")
    return Comparisons(
        items=[
            _comparison(
                (base.address, other.address),
                terms,
                compared,
                f"{page}?{urlencode({'base': base.address, 'with': other.address})}",
            )
            for other, compared in zip(others, found.results, strict=True)
        ]
    )


def _loads(compared: Sequence[TestComparison]) -> list[Load]:
    return [
        Load(
            load=found.name,
            unit=unit(found.name),
            verdict=found.verdict,
            base=found.base.instructions,
            other=found.patched.instructions,
            spread=found.spread,
            unexplained=found.unexplained,
            functions=[Function(name=one.name, **one.cost._asdict()) for one in found.functions],
        )
        for found in loads_of(compared)
    ]


def _comparison(sides: tuple[str, str], terms: Terms, compared: Sequence[TestComparison], page: str) -> Comparison:
    counts = Counter(found.result.verdict for found in compared)
    parameters = {"confidence": f"{terms.confidence:g}", "margin": f"{terms.margin:g}"}
    return Comparison(
        base=sides[0],
        other=sides[1],
        confidence=terms.confidence,
        margin=terms.margin,
        verdicts={verdict: counts[verdict] for verdict in Verdict},
        words=tally(compared),
        tests=[_verdict(found) for found in compared],
        loads=_loads(compared),
        text=comparison_text(*sides, terms.confidence, compared),
        page=f"{page}{'&' if '?' in page else '?'}{urlencode(parameters)}",
    )


def _verdict(found: TestComparison) -> TestVerdict:
    result = found.result
    return TestVerdict(
        test=found.test,
        title=names.title(found.test),
        unit=found.unit,
        direction=Direction(result.direction),
        verdict=result.verdict,
        lack=result.lack,
        words=found.words,
        difference=difference_words(result),
        evidence=evidence_words(result),
        effect=_effect(result.effect) if result.effect else None,
        a=_summary(result.a),
        b=_summary(result.b),
        boots=list(result.boots),
        boots_differ=found.boots_differ,
        more_boots=result.more_boots,
        lean=found.lean,
        cautions=[caution.replace(THIN_SPACE, " ") for caution in found.cautions],
    )


def _effect(effect: judging.Effect) -> Effect:
    return Effect(
        percent=effect.interval.percent,
        low=effect.interval.low,
        high=effect.interval.high,
        level=effect.level,
        observations=list(effect.observations),
        p=effect.p,
        equivalence_low=effect.equivalence.low,
        equivalence_high=effect.equivalence.high,
        detectable=finite(effect.detectable),
    )


def _summary(summary: SampleSummary | None) -> Summary | None:
    if summary is None:
        return None
    return Summary(
        n=summary.n,
        mean=summary.mean,
        median=summary.median,
        deviation=finite(summary.deviation),
        minimum=summary.minimum,
        maximum=summary.maximum,
    )
