# SPDX-License-Identifier: BSD-2-Clause
"""Published tables follow from their number of samples, average and deviation; the table of critical values is
Student's.
"""

from __future__ import annotations

import pytest
from scipy import stats

from perfweb.stats.ministat import table
from perfweb.stats.student import CONFIDENCE_LEVELS, critical_value, difference
from perfweb.stats.summary import Summary

# tcpconnect, connections/s, queued and direct dispatch on FreeBSD 7 SMP: R. Watson, "Call for performance evaluation",
# freebsd-performance mailing list, 5 October 2005.
WATSON_2005 = [
    Summary(10, 5425, 5503, 5460, 5456.3, 26.284977),
    Summary(10, 6074, 6169, 6126, 6124.1, 31.606785),
]
# supersmack with 8 clients, queries/s, without and with finer locks: K. Kennaway, "Fine-grained locking for POSIX local
# sockets (UNIX domain sockets)", freebsd-current mailing list, 7 May 2006.
KENNAWAY_2006 = [
    Summary(10, 2601.46, 2700.26, 2650.52, 2653.441, 30.758034),
    Summary(10, 2240.86, 2516.87, 2496.085, 2468.468, 81.868576),
]


def test_watson_2005_direct_dispatch() -> None:
    assert table(WATSON_2005) == [
        "    N           Min           Max        Median           Avg        Stddev",
        "x  10          5425          5503          5460        5456.3     26.284977",
        "+  10          6074          6169          6126        6124.1     31.606785",
        "Difference at 95.0% confidence",
        "\t667.8 +/- 27.3121",
        "\t12.2391% +/- 0.500561%",
        "\t(Student's t, pooled s = 29.0679)",
    ]


def test_kennaway_2006_fine_grained_unix_sockets() -> None:
    assert table(KENNAWAY_2006)[3:] == [
        "Difference at 95.0% confidence",
        "\t-184.973 +/- 58.1052",
        "\t-6.97106% +/- 2.1898%",
        "\t(Student's t, pooled s = 61.8406)",
    ]


@pytest.mark.parametrize("confidence", CONFIDENCE_LEVELS[:-1])
@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 10, 30, 100])
def test_critical_values_are_those_of_the_t_distribution(degrees: int, confidence: float) -> None:
    assert critical_value(degrees, confidence) == pytest.approx(
        stats.t.ppf(0.5 + confidence / 200, degrees), abs=5.01e-4
    )


def test_the_last_column_is_two_sided_998_per_mille() -> None:
    assert critical_value(10_000, 99.5) == 3.090
    assert critical_value(20, 99.5) == pytest.approx(stats.t.ppf(0.999, 20), abs=5.01e-4)


def test_a_difference_needs_three_samples_on_both_sides() -> None:
    with pytest.raises(ValueError, match="at least 3 in each set"):
        difference(WATSON_2005[0], Summary(2, 1, 2, 1.5, 1.5, 0.7))
