# SPDX-License-Identifier: BSD-2-Clause
"""Results of the simulated machine say so wherever they are read, and never stand beside measured ones."""

import pytest
from django.test import Client

from perfweb.mail import answers
from perfweb.runs.models import Run
from perfweb.runs.summaries import summarise
from perfweb.submissions.models import SubmissionState
from perfweb.verdicts.comparisons import in_words
from perfweb.verdicts.sides import SideError, compare_sides, read_sides
from perfweb.verdicts.text import run_text
from tests.factories import create_run, create_submission, create_testbed

pytestmark = pytest.mark.django_db
TEST = "simulated.tcp.2/host-host/ipv4"


@pytest.fixture
def run() -> Run:
    run = create_run(tests=[TEST], boots=4, noise=0)
    run.testbed = create_testbed("sim", simulated=True)
    run.save()
    summarise([run.pk])
    return run


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/runs/",
        "/runs/{run}/",
        "/runs/{run}/compare/deferred..direct/",
        "/runs/{run}/compare/deferred..direct/badge.svg",
        "/runs/{run}/compare/deferred..direct/graph.svg",
        "/runs/{run}/run.json",
        "/runs/{run}/samples.csv",
        "/runs/{run}/samples.json",
        "/runs/{run}/verdicts.csv",
        "/compare/?base={run}/deferred&with={run}/direct",
        "/tests/",
        "/tests/" + TEST + "/",
        "/testbeds/",
        "/testbeds/sim/",
        "/api/v1/runs/{run}/comparisons",
    ],
)
def test_it_is_said(client: Client, run: Run, address: str) -> None:
    answer = client.get(address.format(run=run.pk))
    assert answer.status_code == 200
    assert b"simulated" in b"".join(answer)


def test_a_run_on_many_cpus_shows_how_variants_scale(client: Client, run: Run) -> None:
    assert "Over the number of virtual CPUs" not in client.get(f"/runs/{run.pk}/").content.decode()
    tests = [f"simulated.tcp.{cpus}/host-host/ipv4" for cpus in (1, 2, 4, 8)]
    many = create_run(tests=tests, noise=0)
    page = client.get(f"/runs/{many.pk}/").content.decode()
    assert "Over the number of virtual CPUs" in page
    assert "No variant overtakes another" in page
    figure = client.get(f"/runs/{many.pk}/?graphs=json").json()["scaling-simulated-tcp"]
    assert figure["layout"]["xaxis"]["ticktext"] == ["1", "2", "4", "8"]
    assert {trace["name"] for trace in figure["data"]} == {"deferred", "direct"}
    assert client.get(f"/runs/{many.pk}/?graph=scaling-simulated-tcp").status_code == 200


def test_programs_are_told(client: Client, run: Run) -> None:
    measured = create_run(tests=["tcp.rr/host-host/ipv4"])
    found = {item["number"]: item["simulated"] for item in client.get("/api/v1/runs").json()["items"]}
    assert found == {run.pk: True, measured.pk: False}
    testbeds = {item["name"]: item["simulated"] for item in client.get("/api/v1/testbeds").json()["items"]}
    assert testbeds == {"demo": False, "sim": True}
    tests = {item["name"]: item["simulated"] for item in client.get("/api/v1/tests").json()["items"]}
    assert tests[TEST]
    assert not tests["mem.tcp.1/host-host/ipv4"]


def test_texts_and_mails_say_it(run: Run) -> None:
    assert run_text(run).startswith(f"Run {run.pk}: Direct against deferred dispatch (done, simulated)")
    base, other = read_sides([f"{run.pk}/deferred", f"{run.pk}/direct"])
    (compared,) = compare_sides(base, other, 95, 2)
    assert in_words([compared]) == "Faster, simulated: 1 faster"
    assert f"direct/{TEST}.txt" in compared.ministat
    submission = create_submission(SubmissionState.APPROVED, testbed=run.testbed)
    submission.runs.add(run)
    letter = answers.result([submission], "sim", trailer=False)
    assert "Faster, simulated: 1 faster" in letter
    assert "boots of each on sim (simulated)" in letter


def test_what_was_simulated_is_not_compared_with_what_was_measured(client: Client, run: Run) -> None:
    measured = create_run(tests=["tcp.rr/host-host/ipv4"])
    with pytest.raises(SideError, match=r"direct” was simulated and .*direct” was measured: compare like with like"):
        read_sides([f"{run.pk}/direct", f"{measured.pk}/direct"])
    # Both are of the same commit.
    with pytest.raises(SideError, match="compare like with like"):
        read_sides(["v0.1-12-g0123abc/deferred", "v0.1-12-g0123abc/direct"])
    answer = client.get(f"/compare/?base={run.pk}/direct&with={measured.pk}/direct")
    assert answer.status_code == 400
    assert "compare like with like" in answer.content.decode()
