# SPDX-License-Identifier: BSD-2-Clause
"""One query for many keys returns the rows of one query for each key."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Func, QuerySet
from pytest_django import DjangoAssertNumQueries

from perfweb.figures.lateral import of_each
from perfweb.runs.models import Summary
from tests.factories import DEMO_TESTS, create_history


def _newest(test: str | Func, series: str | Func) -> QuerySet[Summary, Any]:
    """The two newest means of a line that are above zero."""
    rows = Summary.objects.filter(test=test, series=series, mean__gt=0)
    return rows.order_by("-run_id").values_list("series", "test", "run_id", "mean")[:2]


@pytest.mark.django_db
def test_each_key_has_the_rows_of_its_own_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    create_history(3, DEMO_TESTS[:2])
    lines = sorted(set(Summary.objects.order_by().values_list("test", "series")))
    assert len(lines) == 4
    single = [row for line in lines for row in _newest(*line)]
    assert len(single) == 8
    with django_assert_num_queries(1):
        assert sorted(of_each(lines, _newest)) == sorted(single)


@pytest.mark.django_db
@pytest.mark.parametrize("odd", ["'", "%s", "{}", '"a",b', "\\", "NULL", "é\N{SNOWMAN}"])
def test_a_key_may_be_any_text(odd: str) -> None:
    create_history(1, DEMO_TESTS[:1])
    Summary.objects.filter(series__endswith="direct").update(series=odd)
    keys = [(test, series) for test in DEMO_TESTS for series in ("", "other", odd)]
    assert [row[:2] for row in of_each(keys, _newest)] == [(odd, DEMO_TESTS[0])]


@pytest.mark.django_db
def test_no_keys_need_no_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        assert of_each([], _newest) == []
