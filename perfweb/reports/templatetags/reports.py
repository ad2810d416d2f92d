# SPDX-License-Identifier: BSD-2-Clause
"""Filters and tags with which the templates write names, numbers, verdicts and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from perfweb.figures import plots, sparklines, svg
from perfweb.figures.levels import Shift
from perfweb.rawdata.tables import FORMATS
from perfweb.reports.overview import BriefCell
from perfweb.runs.models import Run
from perfweb.stats.comparison import Comparison, Verdict
from perfweb.verdicts import names, numbers, wording
from perfweb.verdicts.comparisons import TestComparison
from perfweb.verdicts.results import NOISY_PERCENT
from perfweb.verdicts.run_verdicts import PairVerdicts, TestVerdict

register = template.Library()
Judged = TestComparison | TestVerdict | Shift
"""What has a verdict that a cell shows."""


class HasSummary(Protocol):
    @property
    def relative_deviation(self) -> float | None: ...


class HasDeviation(Protocol):
    """A result on one variant."""

    @property
    def summary(self) -> HasSummary | None: ...

    @property
    def noisy(self) -> bool: ...


register.filter("title_of", names.title)
register.filter("anchor", names.anchor)
register.filter("short", names.short)
register.filter("topic_of", names.topic)
register.filter("change_words", wording.change_words)
register.filter("difference_words", wording.difference_words)
register.filter("evidence_words", wording.evidence_words)
register.filter("duration", numbers.duration)


@register.filter
def breakable(text: str) -> SafeString:
    """Return a name or a command with optional line breaks for narrow columns, after slashes and commas."""
    return mark_safe(re.sub(r"[/,]", r"\g<0><wbr>", escape(text)))  # noqa: S308 (was escaped)


@register.filter
def series_key(number: int) -> SafeString:
    """Return the marker of a series in its colour."""
    meta, symbol = plots.series_style(number)
    return mark_safe(f'<span class="{meta["role"]}">{svg.key(symbol)}</span>')  # noqa: S308 (holds no foreign text)


@register.filter
def percent(value: object) -> str:
    """Write a percentage without sign."""
    return numbers.percent(_number(value))


@register.filter
def share(value: float) -> str:
    """Write a fraction as a whole percentage."""
    return f"{value:.0%}".replace("%", f"{numbers.THIN_SPACE}%")


@register.filter
def signed_percent(value: object) -> str:
    """Write a percentage with its sign."""
    return numbers.percent(_number(value), signed=True)


@register.filter
def count(value: float | None) -> str:
    """Write the mean of counts, with a decimal only for small numbers."""
    if value is None:
        return numbers.NOTHING
    return numbers.grouped(value, 0 if value == int(value) or abs(value) >= 1000 else 1)


@register.filter
def signed_count(value: float | None) -> str:
    """Write a difference of counts with its sign."""
    return f"+{count(value)}" if value is not None and value > 0 else count(value)


@register.filter
def scaled(value: object, scale: numbers.Scale) -> str:
    """Write a value on a scale."""
    return scale.text(_number(value))


def _number(value: object) -> float | None:
    """Return a number unchanged, and None for the empty text that Django makes of an attribute of None."""
    return value if isinstance(value, float) else None


@register.filter
def sparkline(values: Sequence[float]) -> SafeString:
    """Draw the newest values of a series."""
    return mark_safe(sparklines.sparkline(values))  # noqa: S308 (made of numbers)


@register.filter
def mark(result: Comparison | Shift | TestVerdict) -> str:
    """Return the mark of a verdict."""
    return wording.MARKS[result.verdict]


@register.filter
def counted(pair: PairVerdicts) -> SafeString:
    """Write how many tests of a variant have each verdict, as marks with numbers."""
    return format_html_join(
        " ",
        '<span class="verdict {}" title="{}">{}{}</span>',
        ((wording.css_name(verdict), verdict, wording.MARKS[verdict], number) for verdict, number in pair.counts),
    )


@register.filter
def deviation(found: HasDeviation) -> SafeString:
    """Write the relative deviation of a set of samples, marked if it is large."""
    relative = found.summary.relative_deviation if found.summary else None
    noisy = '<small class="noisy"><span title="relative deviation of 2.5 % or more">⚠</span> '
    look = noisy if found.noisy else '<small class="muted">'
    return mark_safe(f"{look}{numbers.percent(relative)}</small>")  # noqa: S308 (made of numbers)


@register.filter
def cautions(found: Judged) -> SafeString:
    """Write the warnings that belong beside a verdict."""
    return format_html_join("", ' <small class="warn">⚠ {}</small>', ((words,) for words in found.cautions))


@register.filter
def brief(cell: BriefCell, scale: numbers.Scale) -> SafeString:
    """Write a cell of the table of many tests, because a template would take most of the page's time for it."""
    parts, look = [], ""
    if cell.summary:
        relative = cell.summary.relative_deviation
        noisy = relative is not None and relative >= NOISY_PERCENT
        look, sign = (' class="noisy"', "⚠ ") if noisy else ("", "")
        parts += [scale.text(cell.summary.mean), f"<small{look}>{sign}{numbers.percent(relative)}</small>"]
    if cell.failures:
        parts.append(f'<span class="warn">⚠ {cell.failures} failed</span>')
    elif not cell.summary:
        parts.append('<span class="warn">no sample</span>')
    found = cell.verdict
    if found:
        change = f" {numbers.percent(found.change.percent, signed=True)}" if found.change else ""
        reason = wording.lack_in_brief(found.lack)
        failed = f" {found.verdict}" if found.verdict is Verdict.FAILED else ""
        shown = f"{mark(found)}{failed}{change}{f' ({reason})' if reason else ''}"
        parts.append(f"<br>{shown}{cautions(found)}")
    verdict = f' class="verdict {css_class(found)}"' if found else ""
    return mark_safe(f"<td{verdict}>{' '.join(parts)}</td>")  # noqa: S308 (made of numbers)


@register.filter
def css_class(result: Comparison | Shift | TestVerdict) -> str:
    """Return the style sheet's class of a verdict."""
    return wording.css_name(result.verdict)


def _judged(found: Judged) -> Comparison | TestVerdict | Shift:
    return found.result if isinstance(found, TestComparison) else found


def _verdict_words(found: Judged, words: str) -> SafeString:
    return format_html("{} {}{}", mark(_judged(found)), words, cautions(found))


def _difference(found: Judged) -> str:
    """Return the size of a change with its interval, or an empty text: a standing of a tracked branch has none."""
    match found:
        case TestComparison():
            return wording.difference_words(found.result) if found.result.effect else ""
        case TestVerdict():
            return wording.change_words(found.change)
        case Shift():
            return found.size
    return ""


def _detail(text: str) -> SafeString:
    return format_html('<div class="detail">{}</div>', text) if text else mark_safe("")


@register.simple_tag
def verdict_cell(found: Judged, label: str = "", classes: str = "") -> SafeString:
    """Write a table's cell with a verdict and the size of the change. On a narrow screen `label` is its heading."""
    return format_html(
        '<td class="{}"{}>{}{}</td>',
        " ".join(filter(None, [classes, "verdict", css_class(_judged(found))])),
        format_html(' data-label="{}"', label) if label else "",
        _verdict_words(found, str(found.verdict) if isinstance(found, Shift) else found.words),
        _detail(_difference(found)),
    )


@register.simple_tag
def verdict_lines(found: TestComparison | TestVerdict) -> SafeString:
    """Write a verdict and the size of the change below the numbers of a cell."""
    words = wording.brief_words(found) if isinstance(found, TestComparison) else found.words
    look = css_class(_judged(found))
    verdict = format_html('<div class="detail verdict {}">{}</div>', look, _verdict_words(found, words))
    return verdict + _detail(_difference(found))


@register.simple_block_tag
def table(content: str, *label: object, classes: str = "", visible: bool = False) -> SafeString:
    """Write a table that scrolls inside its own box, with a label of all parts, which may be a visible caption."""
    name = "".join(map(str, label))
    return format_html(
        '<div class="scroll" tabindex="0" role="group" aria-label="{}">'
        "<table{}><caption{}>{}</caption>{}</table></div>",
        name,
        format_html(' class="{}"', classes) if classes else "",
        "" if visible else mark_safe(' class="hidden"'),
        name,
        content,
    )


@register.filter
def run_time(run: Run) -> timedelta | None:
    """Return how long a run took, None before its end or if it never began."""
    return run.ended - run.started if run.started and run.ended else None


@register.filter
def basename(name: str) -> str:
    """Return the last part of an artefact's name."""
    return name.rpartition("/")[2]


@register.filter
def utc(time: datetime | None) -> str:
    """Write a time the way logs do, to the second. static/site.js adds how long ago that is."""
    if time is None:
        return numbers.NOTHING
    day, clock = time.strftime("%Y-%m-%d"), time.strftime("%H:%M:%S")
    return format_html('<time datetime="{}T{}Z">{} {}</time>', day, clock, day, clock)


@register.simple_tag(takes_context=True)
def menu(context: Context, name: str) -> SafeString:
    """Return the address of a page of the menu as an attribute, with a mark if the reader is on that page or below
    it.
    """
    address = reverse(name)
    here = context["request"].path.startswith(address)
    return format_html('href="{}"{}', address, mark_safe(' aria-current="true"') if here else "")


@register.inclusion_tag("reports/includes/downloads.html", takes_context=True)
def downloads(context: Context, *tables: str) -> dict[str, object]:
    """Link to the tables of a page, and to its archive, which is made when all of its runs are over."""
    query = context["request"].GET.urlencode()
    variants = (variant for side in context.get("sides") or () for variant in side.variants)
    runs = [*filter(None, [context.get("run")]), *(variant.run for variant in variants)]
    archived = all(run.is_over for run in runs)
    return {"tables": tables, "forms": FORMATS, "query": f"?{query}" if query else "", "archived": archived}


@register.inclusion_tag("reports/includes/embed.html", takes_context=True)
def pictures(context: Context, label: str, *files: str) -> dict[str, object]:
    """Show the Markdown for a README with a page's images, which link to the page."""
    page, _, query = context["request"].build_absolute_uri().partition("?")
    query = f"?{query}" if query else ""
    # https://spec.commonmark.org/0.31.2/#backslash-escapes
    text = "".join(f"\\{letter}" if letter in "[]\\" else letter for letter in label)
    return {"lines": [f"[![{text}]({page}{name}{query})]({page}{query})" for name in files]}
