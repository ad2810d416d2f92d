# SPDX-License-Identifier: BSD-2-Clause
"""A verdict as a small image for a README or a pull request, in the style of https://shields.io."""

from __future__ import annotations

from collections.abc import Sequence

from perfweb.figures.svg import escape
from perfweb.stats.comparison import Verdict
from perfweb.verdicts.comparisons import TestComparison, tally
from perfweb.verdicts.names import short
from perfweb.verdicts.numbers import percent
from perfweb.verdicts.wording import CHANGED, MARKS, brief_words, css_name, within

_HEIGHT, _PADDING, _CHARACTER = 20, 8, 6.3  # in pixels; the width of a character is that of 11 px Verdana, generously
# White on each has a contrast of 4.5 or more (WCAG 2.2, 1.4.3).
_COLOURS = {
    "faster": "#1a7431",
    "slower": "#b3261e",
    "equivalent": "#4b5563",
    "identical": "#4b5563",
    "not-enough-data": "#7a4d00",
    "not-judged": "#4b5563",
    "failed": "#b3261e",
}


def badge(subject: str, words: str, verdict: str) -> str:
    """Return the badge as an SVG file; `verdict` is the name of its colour, whose meaning its text repeats."""
    title = f"{subject}: {words}"
    left, right = (round(len(text) * _CHARACTER + 2 * _PADDING) for text in (subject, words))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}" role="img">'
        f"<title>{escape(title)}</title>"
        f'<rect width="{left}" height="{_HEIGHT}" fill="#3b4148"/>'
        f'<rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{_COLOURS[verdict]}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11">'
        f"{_text(subject, _PADDING, left)}{_text(words, left + _PADDING, right)}</g></svg>"
    )


def _text(text: str, x: int, width: int) -> str:
    """A text stretched or squeezed to its place, whatever the font is."""
    length = width - 2 * _PADDING
    return f'<text x="{x}" y="14" textLength="{length}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'


def badge_of_test(comparison: TestComparison) -> str:
    """The badge of one test: "tcp.rr direct vs deferred: +14.6 % faster"."""
    test = short(comparison.test)
    result = comparison.result
    words = f"{MARKS[result.verdict]} {brief_words(comparison)}"
    if result.effect and result.verdict in CHANGED:
        words = f"{MARKS[result.verdict]} {percent(result.effect.interval.percent, signed=True)} {result.verdict}"
    if result.verdict is Verdict.EQUIVALENT:
        words += within(result)
    words += "".join(f", ⚠ {caution}" for caution in comparison.cautions)
    return badge(f"{test} {comparison.b} vs {comparison.a}", words, css_name(result.verdict))


def badge_of_tests(subject: str, compared: Sequence[TestComparison]) -> str:
    """The badge of all tests of a comparison: how many got which verdict, with the mark and colour of the worst, which
    comes first, and the warnings of any of them.
    """
    there = {comparison.result.verdict for comparison in compared}
    worst = next((verdict for verdict in Verdict if verdict in there), Verdict.NOT_ENOUGH_DATA)
    others = dict.fromkeys(caution for comparison in compared for caution in comparison.others)
    warnings = "".join(f", ⚠ {caution}" for caution in others)
    return badge(subject, f"{MARKS[worst]} {tally(compared)}{warnings}", css_name(worst))
