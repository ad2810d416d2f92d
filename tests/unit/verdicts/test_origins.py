# SPDX-License-Identifier: BSD-2-Clause
"""Results that were not measured are marked everywhere, and are never combined with those of another origin."""

import importlib
import json
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import F
from django.test import Client

from perfweb.lab.models import Testbed
from perfweb.lab.origins import Origin
from perfweb.mail import answers
from perfweb.runs.models import Boot, Measurement, Run, Sample
from perfweb.runs.summaries import summarise
from perfweb.stats.__main__ import main as recompute
from perfweb.stats.comparison import Verdict
from perfweb.submissions.models import SubmissionState
from perfweb.verdicts.comparisons import in_words
from perfweb.verdicts.sides import SideError, compare_sides, read_sides
from perfweb.verdicts.text import run_text
from perfweb.verdicts.wording import difference_words
from tests.factories import create_run, create_submission, create_testbed

pytestmark = pytest.mark.django_db
TEST = "simulated.tcp.2/host-host/ipv4"
COUNTED = "counted.tcp.rr/local/ipv4"


def simulated_run(gain: float = 1.08, noise: float = 0) -> Run:
    """A run of four seeds; with `noise` its seeds differ, and both variants are the same if `gain` is 1."""
    run = create_run(tests=[TEST], boots=4, noise=0, gain=gain)
    run.testbed = create_testbed("sim", origin=Origin.SIMULATED)
    run.save()
    for variant in run.variants.all():
        for seed, boot in enumerate(variant.boots.order_by("position"), start=1):
            Boot.objects.filter(pk=boot.pk).update(seed=seed)
            Sample.objects.filter(measurement__boot=boot).update(value=F("value") * (1 + noise * seed))
    summarise([run.pk])
    return run


def counted_run() -> Run:
    """A run whose results are numbers of instructions."""
    run = create_run(tests=["tcp.rr/host-host/ipv4"], boots=3, noise=0)
    Measurement.objects.filter(boot__run=run).update(test=COUNTED)
    run.testbed = create_testbed("emulated", origin=Origin.COUNTED)
    run.save()
    summarise([run.pk])
    return run


@pytest.fixture
def run() -> Run:
    return simulated_run()


@pytest.fixture(params=[Origin.SIMULATED, Origin.COUNTED])
def marked(request: pytest.FixtureRequest) -> Run:
    """A run that was not measured."""
    return simulated_run() if request.param == Origin.SIMULATED else counted_run()


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
        "/tests/{test}/",
        "/testbeds/",
        "/testbeds/{testbed}/",
        "/api/v1/runs/{run}/comparisons",
    ],
)
def test_the_origin_is_reported(client: Client, marked: Run, address: str) -> None:
    test = TEST if marked.testbed.origin == Origin.SIMULATED else COUNTED
    answer = client.get(address.format(run=marked.pk, test=test, testbed=marked.testbed))
    assert answer.status_code == 200
    assert marked.testbed.origin.encode() in b"".join(answer)


def test_the_list_of_tests_reports_the_origin(client: Client, run: Run) -> None:
    assert b"simulated" in client.get("/tests/").content


def test_a_comparison_explains_its_origin(client: Client, marked: Run) -> None:
    page = client.get(f"/runs/{marked.pk}/compare/deferred..direct/").content.decode()
    assert Origin(marked.testbed.origin).sentence in page


def test_a_run_on_many_cpus_shows_how_variants_scale(client: Client, run: Run) -> None:
    assert "Scaling with virtual CPUs" not in client.get(f"/runs/{run.pk}/").content.decode()
    tests = [f"simulated.tcp.{cpus}/host-host/ipv4" for cpus in (1, 2, 4, 8)]
    many = create_run(tests=tests, noise=0)
    page = client.get(f"/runs/{many.pk}/").content.decode()
    assert "Scaling with virtual CPUs" in page
    assert "No variant overtakes another" in page
    figure = client.get(f"/runs/{many.pk}/?graphs=json").json()["scaling-simulated-tcp"]
    assert figure["layout"]["xaxis"]["ticktext"] == ["1", "2", "4", "8"]
    assert {trace["name"] for trace in figure["data"]} == {"deferred", "direct"}
    assert client.get(f"/runs/{many.pk}/?graph=scaling-simulated-tcp").status_code == 200


def test_programs_are_reported(client: Client, run: Run) -> None:
    measured = create_run(tests=["tcp.rr/host-host/ipv4"])
    found = {item["number"]: item["simulated"] for item in client.get("/api/v1/runs").json()["items"]}
    assert found == {run.pk: True, measured.pk: False}
    testbeds = {item["name"]: item["simulated"] for item in client.get("/api/v1/testbeds").json()["items"]}
    assert testbeds == {"demo": False, "sim": True}
    tests = {item["name"]: item["simulated"] for item in client.get("/api/v1/tests").json()["items"]}
    assert tests[TEST]
    assert not tests["mem.tcp.1/host-host/ipv4"]


def test_programs_read_the_origin(client: Client, run: Run) -> None:
    counted, measured = counted_run(), create_run(tests=["tcp.rr/host-host/ipv4"])
    found = {item["number"]: item["origin"] for item in client.get("/api/v1/runs").json()["items"]}
    assert found == {run.pk: "simulated", counted.pk: "counted", measured.pk: "measured"}
    testbeds = {item["name"]: item["origin"] for item in client.get("/api/v1/testbeds").json()["items"]}
    assert testbeds == {"demo": "measured", "sim": "simulated", "emulated": "counted"}
    tests = {item["name"]: item["origin"] for item in client.get("/api/v1/tests").json()["items"]}
    assert (tests[TEST], tests["mem.tcp.1/host-host/ipv4"]) == ("simulated", "measured")
    assert json.loads(b"".join(client.get(f"/runs/{counted.pk}/run.json")))["origin"] == "counted"


def test_counts_are_marked_in_texts(client: Client) -> None:
    run = counted_run()
    assert run_text(run).startswith(f"Run {run.pk}: Direct against deferred dispatch (done, counted)")
    base, other = read_sides([f"{run.pk}/deferred", f"{run.pk}/direct"])
    (compared,) = compare_sides(base, other, 95, 2)
    assert ", counted: 1 " in in_words([compared])
    assert run.testbed.label == "emulated (counted)"


@pytest.mark.parametrize("first", [Origin.MEASURED, Origin.SIMULATED])
def test_counts_are_compared_with_counts_only(first: Origin) -> None:
    other = simulated_run() if first == Origin.SIMULATED else create_run(tests=["tcp.rr/host-host/ipv4"])
    counted = counted_run()
    with pytest.raises(SideError, match=r"was counted.*compare like with like"):
        read_sides([f"{other.pk}/direct", f"{counted.pk}/direct"])


@pytest.mark.django_db(transaction=True)
def test_older_testbeds_keep_their_origin() -> None:
    """The migration from a Boolean field, both ways."""
    executor = MigrationExecutor(connection)
    latest = executor.loader.graph.leaf_nodes()
    executor.migrate([("lab", "0009_sample")])
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO lab_testbed (name, inventory, simulated, sample, lab, created, faults)"
                " VALUES ('bench', '', false, '', '', now(), 0), ('sim', '', true, '', '', now(), 0)"
            )
        executor = MigrationExecutor(connection)
        executor.migrate([("lab", "0010_origin")])
        assert dict(Testbed.objects.values_list("name", "origin")) == {"bench": "measured", "sim": "simulated"}
        MigrationExecutor(connection).migrate([("lab", "0009_sample")])
        with connection.cursor() as cursor:
            cursor.execute("SELECT name FROM lab_testbed WHERE simulated")
            assert cursor.fetchall() == [("sim",)]
    finally:
        MigrationExecutor(connection).migrate(latest)


def test_texts_and_mails_state_it(run: Run) -> None:
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


def test_variants_that_agree_seed_by_seed_are_identical(client: Client) -> None:
    """The seeds scatter by more than any margin."""
    run = simulated_run(gain=1, noise=0.2)
    base, other = read_sides([f"{run.pk}/deferred", f"{run.pk}/direct"])
    (compared,) = compare_sides(base, other, 95, 2)
    assert (compared.verdict, compared.words) == (Verdict.IDENTICAL, "identical with 4 seeds")
    assert difference_words(compared.result) == "0.00\N{NARROW NO-BREAK SPACE}%"
    assert in_words([compared]) == "Identical, simulated: 1 identical"
    assert run.summaries.get(variant__name="direct").verdict == "identical"
    for address in (f"/runs/{run.pk}/", f"/runs/{run.pk}/compare/deferred..direct/", f"/runs/{run.pk}/verdicts.csv"):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "identical" in b"".join(answer).decode()
    badge = client.get(f"/runs/{run.pk}/compare/deferred..direct/badge.svg")
    assert "≡ 1 identical" in b"".join(badge).decode()


def test_a_difference_is_judged_seed_by_seed(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = simulated_run(gain=1.05, noise=0.2)
    answer = client.get(f"/api/v1/runs/{run.pk}/comparisons").json()
    (found,) = answer["items"][0]["tests"] if "items" in answer else answer[0]["tests"]
    assert found["verdict"] == "faster"
    samples = tmp_path / "samples.csv"
    samples.write_bytes(b"".join(client.get(f"/runs/{run.pk}/samples.csv")))
    assert recompute([str(samples), "--metric", "throughput"]) == 0
    text = capsys.readouterr().out
    assert "verdict            faster" in text
    assert "from 4 and 4 seeds" in text


def test_boots_of_older_versions_get_their_seeds_from_their_commands(run: Run) -> None:
    Boot.objects.update(seed=None)
    for boot in run.boots.all():
        boot.measurements.update(
            tool="simstack", command=f"simstack --json --cpus 2 --seed {boot.position + 1} --set a=1"
        )
    migration = importlib.import_module("perfweb.runs.migrations.0019_seeds")
    with connection.cursor() as cursor:
        cursor.execute(migration.OF_COMMANDS)
    assert [boot.seed for boot in run.boots.order_by("position")] == [1, 2, 3, 4, 5, 6, 7, 8]


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
