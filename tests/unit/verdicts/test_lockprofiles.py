# SPDX-License-Identifier: BSD-2-Clause
"""Profiles of locks: parsed from stacks' output, and compared side by side."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from perfweb.runs.models import ArtefactKind, Run
from perfweb.verdicts.lockprofiles import MOST_PLACES, lock_tables, read_profile
from tests.factories import create_artefact

HEAD = "max wait_max   total wait_total   count   avg wait_avg cnt_hold cnt_lock name\n"
PROFILE = f"""\
# mutex lock and unlock: 151 ns; 37 without this profile
{HEAD}\
120       90    4000        500     100    40        5        0       20 ../source/tcp/tcp_input.c:61 (tcpinp)
  3        0      10          0      40     0        0        0        0 ../../stack/kern/mbuf.h:12 (mbuf)
  3        0      10          0       2     0        0        0        0 ../../stack/kern/mbuf.h:12 (mbuf)
"""
OLD_PROFILE = """\
# mutex lock and unlock: 151 ns; 37 without this profile
    max        total       count   avg     cnt_hold     cnt_lock name
      7           70          10     7            3            1 ../../stack/kern/giant.c:40 (Giant)
"""
NUMBERS = st.integers(0, 10**15)


def line(max_: int, total: int, wait: int, count: int, contested: int, place: str) -> str:
    """A line in the format of stack/kern/lock_prof.c."""
    return f"{max_:6} {0:8} {total:12} {wait:12} {count:11} {0:5} {0:8} {0:8} {contested:10} {place}\n"


def test_a_profile_is_read_with_the_lines_of_a_place_added_up() -> None:
    assert read_profile(PROFILE) == {
        "tcp/tcp_input.c:61 (tcpinp)": {"count": 100, "cnt_hold": 0, "cnt_lock": 20, "wait_total": 500, "total": 4000},
        "kern/mbuf.h:12 (mbuf)": {"count": 42, "cnt_hold": 0, "cnt_lock": 0, "wait_total": 0, "total": 20},
    }


def test_a_profile_of_2006_does_not_know_how_long_was_waited() -> None:
    assert read_profile(OLD_PROFILE) == {
        "kern/giant.c:40 (Giant)": {"count": 10, "cnt_hold": 3, "cnt_lock": 1, "total": 70}
    }


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z_/]{0,20}\.[ch]:[1-9][0-9]{0,3} \([a-zA-Z0-9 :]{1,16}\)", fullmatch=True),
        st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    )
)
def test_a_profile_is_read_as_it_was_written(places: dict[str, tuple[int, int, int, int, int]]) -> None:
    text = HEAD + "".join(line(*numbers, place) for place, numbers in places.items())
    assert read_profile(text) == {
        place: {"count": count, "cnt_hold": 0, "cnt_lock": contested, "wait_total": wait, "total": total}
        for place, (_, total, wait, count, contested) in places.items()
    }


@given(st.text(), st.text())
def test_any_text_can_be_read(before: str, after: str) -> None:
    for numbers in read_profile(before + "\n" + HEAD + after).values():
        assert set(numbers) == {"count", "cnt_hold", "cnt_lock", "wait_total", "total"}
    read_profile(before)


def test_what_a_text_that_lost_its_middle_still_has_is_read() -> None:
    assert len(read_profile(PROFILE.replace("  3        0      10", "\n[512 bytes left out]\n 3 0 10", 1))) == 2


def test_places_that_cost_most_come_first_after_the_sum_of_all() -> None:
    cheap = HEAD + "".join(line(1, 1, 0, number + 1, 0, f"a.c:{number} (x)") for number in range(MOST_PLACES + 5))
    (table,) = lock_tables({"lockprof": [[cheap], [cheap + line(9, 9, 800, 2, 1, "b.c:1 (y)")]], "mutexprof": [[], []]})
    assert [row.place for row in table.rows[:3]] == ["all places", "b.c:1 (y)", f"a.c:{MOST_PLACES + 4} (x)"]
    assert (len(table.rows), table.left_out) == (1 + MOST_PLACES, 6)
    assert table.columns == ["acquired", "waits", "waited, µs", "held, µs"]
    assert [change for _, change in table.rows[0].sides[1]] == [2, 1, 800, 9]
    assert table.rows[1].sides == [[(0, 0)] * 4, [(2, 2), (1, 1), (800, 800), (9, 9)]]


def test_means_are_per_boot_and_a_side_without_a_profile_has_none() -> None:
    boots = [HEAD + line(1, 10, 4, 100, 3, "a.c:1 (x)"), HEAD + line(1, 20, 0, 200, 0, "b.c:1 (x)")]
    (table,) = lock_tables({"lockprof": [[], boots]})
    assert table.rows[1].place == "a.c:1 (x)"
    assert table.rows[1].sides == [[(None, None)] * 4, [(50, None), (1.5, None), (2, None), (5, None)]]
    assert lock_tables({"lockprof": [[], ["ctl: there is no lockprof\n"]]}) == []


@pytest.mark.django_db
def test_the_comparison_shows_what_boots_counted(client: Client, run: Run) -> None:
    address = f"/runs/{run.pk}/compare/deferred..direct/"
    assert 'id="locks"' not in client.get(address).content.decode()
    for boot in run.boots.all():
        text = PROFILE if boot.variant.name == "deferred" else PROFILE.replace("  500  ", " 1500  ")
        name = f"boots/{boot.position:03d}-{boot.variant.name}/counters-lockprof.txt"
        create_artefact(run, name, text, ArtefactKind.COUNTERS, boot=boot)
    html = client.get(address).content.decode()
    assert "tcp/tcp_input.c:61 (tcpinp)" in html
    assert re.search('1\u202f500\\s*<div class="detail">\\+1\u202f000</div>', html)
