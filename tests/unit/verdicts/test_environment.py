# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import pytest

from perfweb.runs.models import HostFacts, Run
from perfweb.verdicts.environment import fact_changes, host_table, tunable_rows
from perfweb.verdicts.results import run_results
from tests.factories import create_queued_run, create_variants

pytestmark = pytest.mark.django_db


def test_tunables_that_differ_come_first_with_effective_values(run: Run) -> None:
    rows = tunable_rows(run_results(run))
    assert [(row.name, row.values, row.differs) for row in rows] == [
        ("net.isr.dispatch", ["deferred", "direct"], True),
        ("debug.mpsafenet", ["1", "1"], False),
    ]


def test_before_the_first_boot_tunables_are_those_requested() -> None:
    run = create_queued_run()
    create_variants(run)
    assert tunable_rows(run_results(run))[0].values == ["deferred", "direct"]


def test_load_that_older_runs_have_among_their_facts_is_no_change_of_the_host() -> None:
    before = {"dut": {"kernel": "6.1", "load_average": "0.1 0.1 0.1 1/100 7"}}
    assert fact_changes(before, {"dut": {"kernel": "6.1", "load_average": "9.0 8.0 7.0 1/100 9"}}) == []
    assert [row.name for row in fact_changes(before, {"dut": {"kernel": "6.2"}})] == ["kernel of dut"]


def test_facts_of_hosts_are_words_in_an_order_that_helps() -> None:
    run = create_queued_run()
    facts = {"mitigations": {"mds": "Not affected"}, "extra": None, "cpus": 2, "pinned_to": [0, 1], "kernel": "Linux 6"}
    HostFacts.objects.create(run=run, role="dut", name="d", facts=facts)
    HostFacts.objects.create(run=run, role="left", name="l", facts={**facts, "cpus": 4})
    hosts, rows = host_table(run)
    assert hosts == ["l: left (runs the client)", "d: device under test"]
    assert [row.name for row in rows] == ["kernel", "cpus", "pinned to", "extra", "mitigations"]
    values = {row.name: row.values for row in rows}
    assert values["cpus"] == ["4", "2"]
    assert values["pinned to"] == ["0, 1", "0, 1"]
    assert values["mitigations"] == ["mds Not affected"] * 2
    assert not rows[0].differs
