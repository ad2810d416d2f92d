# SPDX-License-Identifier: BSD-2-Clause
"""Samples fill a new site, are marked on its pages, cannot act, and can be removed without a trace."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import lzma
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db.models import Model
from django.test import Client
from pytest_django import Settings

from perfweb.accounts.actors import on_server
from perfweb.accounts.models import User
from perfweb.builds.models import Build, BuildState, Mirror
from perfweb.imports.records import ImportProblemsError, Options
from perfweb.imports.write import read_files
from perfweb.lab.inventory import InventoryError
from perfweb.lab.models import Host, Role, Testbed
from perfweb.lab.origins import Origin
from perfweb.lab.services import register
from perfweb.runs import services as runs
from perfweb.runs.models import Artefact, Boot, HostFacts, Import, Measurement, Run, RunState, Sample, Summary
from perfweb.runs.summaries import summarise
from perfweb.samples.bundles import FACTS, UNMARKED, SampleError, load, save
from perfweb.samples.services import BUNDLES, load_all, remove
from perfweb.submissions import services as submissions
from perfweb.submissions.models import Submission, SubmissionState, SubmissionTransition
from perfweb.tracking import services as tracking
from perfweb.tracking.models import Alert, AlertState, AlertStep, TrackedBranch
from tests.factories import PLAN_TEXT, create_artefact, create_run, create_submission, create_testbed
from tests.laboratory import Laboratory, tracked
from tests.unit.pages import page, text_of

pytestmark = pytest.mark.django_db
ORIGIN = "made up for a test"
PLAN = PLAN_TEXT + "tests: [tcp.rr/host-host/ipv4]\n"


def contents() -> dict[str, list[str]]:
    """All rows of all tables."""
    return {
        model._meta.label: sorted(map(str, model._default_manager.values_list()))
        for model in apps.get_models(include_auto_created=True)
    }


def bundle(directory: Path) -> Path:
    path = directory / "made.jsonl.xz"
    save(path, {"demo": "made"}, ORIGIN)
    return path


def texts(path: Path) -> Iterator[str]:
    """All texts of a bundle, those in base64 decoded, too."""
    lines = [json.loads(line) for line in lzma.decompress(path.read_bytes()).splitlines()]
    for line in (line for line in lines if isinstance(line, list)):
        for value in line:
            yield str(value)
            with contextlib.suppress(ValueError):
                yield base64.b64decode(str(value), validate=True).decode("latin-1")


PRIVATE = re.compile(r"""(?:^|[\s"'=])/(?!dev/|etc/|proc/|sys/|usr/)[\w.-]+/.*""", re.MULTILINE)
"""A path that exists on one machine only."""


def test_loaded_results_equal_the_saved_ones(run: Run, tmp_path: Path) -> None:
    summarise([run.pk])
    load(bundle(tmp_path))
    copy = Run.objects.get(testbed__name="sample-made")
    same = ("test", "mean", "deviation", "verdict", "change", "rules")
    rows = [
        list(Summary.objects.filter(run=one).order_by("variant__position", "test").values(*same)) for one in (run, copy)
    ]
    assert rows[0] == rows[1]
    fields = ("measurement__test", "measurement__started", "index", "metric", "value", "unit", "discarded", "void")
    order = ("measurement__boot__position", "measurement__test", "metric", "index")
    samples = [
        list(Sample.objects.filter(measurement__boot__run=one).order_by(*order).values(*fields)) for one in (run, copy)
    ]
    assert samples[0] == samples[1]
    texts = [dict(Artefact.objects.filter(run=one).values_list("name", "content")) for one in (run, copy)]
    assert {name: bytes(text) for name, text in texts[0].items()} == {
        name: bytes(text) for name, text in texts[1].items()
    }
    assert copy.created == run.created
    assert [(step.at, step.to_state) for step in copy.transitions.all()] == [
        (step.at, step.to_state) for step in run.transitions.all()
    ]
    assert set(Summary.objects.filter(run=copy).values_list("series", flat=True)) == {
        f"sample-made/{run.plan.name}/{variant.name}" for variant in run.variants.all()
    }


def test_a_branch_comes_with_its_alerts_and_does_nothing(laboratory: Laboratory, tmp_path: Path) -> None:
    shas = [laboratory.commit(number, 1.0 if number < 8 else 0.93) for number in range(16)]
    tracked(shas[0], mail_to="ada@example.org", hook="https://chat.example.org/hook")
    laboratory.rest()
    load(bundle(tmp_path))
    branch = TrackedBranch.objects.get(name="sample-head")
    alert = branch.alerts.get()
    assert alert.culprit is not None
    assert (alert.culprit.sha, AlertState(alert.state)) == (shas[8], AlertState.CONFIRMED)
    assert alert.checks.first().run.testbed.sample  # type: ignore[union-attr]
    assert branch.commits.filter(runs__testbed__sample=ORIGIN).distinct().count() == len(shas)
    assert (branch.active, branch.mail_to, branch.hook) == (False, "", "")
    assert laboratory.round() == []


def test_samples_cannot_act(run: Run, tmp_path: Path) -> None:
    User.objects.create_user("author", "ada@example.org", "secret")
    create_submission(SubmissionState.WAITING, plan=PLAN)
    load(bundle(tmp_path))
    author = User.objects.get(username="sample-author")
    assert (author.is_active, author.email, author.has_usable_password()) == (False, "", False)
    assert not Build.objects.filter(variants__run__testbed__sample=ORIGIN, state=BuildState.READY).exists()
    with pytest.raises(runs.RunError, match="holds samples"):
        runs.submit(PLAN, "sample-made")
    with pytest.raises(InventoryError, match="holds samples"):
        register("sample-made", Path("playbooks/inventories/example.yml"))
    waiting = Submission.objects.get(testbed__sample=ORIGIN)
    with pytest.raises(runs.RunError, match="holds samples"):
        submissions.approve(on_server(), waiting.pk)
    waiting.refresh_from_db()
    assert SubmissionState(waiting.state) == SubmissionState.WAITING


def test_a_bundle_does_not_describe_the_machines_it_comes_from(run: Run, tmp_path: Path) -> None:
    place = "/srv/ada/builds/1"
    Host.objects.filter(testbed=run.testbed).update(name="tiger", address="192.0.2.77")
    facts = {"hostname": "tiger", "kernel": "Linux 6.1.0-tiger #1 SMP", "address": "192.0.2.77", "cpus": 2}
    facts |= {"command_line": "root=tiger", "versions": {"netperf": f"{place}/netperf 2.7"}}
    HostFacts.objects.filter(run=run).update(name="tiger", facts=facts)
    Build.objects.update(prefix=place, log=f"$ {place}/bin/meson setup build # on tiger")
    Measurement.objects.update(command=f"{place}/bin/netperf -t TCP_RR", environment={"tool": [f"{place}/bin/netperf"]})
    Boot.objects.update(error=f"{place}/log: panic")
    create_artefact(run, "play.log", f"copied '{place}/bin/netperf' to /dev/shm\n")
    path = bundle(tmp_path)
    found = "\n".join(texts(path))
    assert not PRIVATE.search(found), PRIVATE.findall(found)[:3]
    assert "tiger" not in found
    assert "192.0.2.77" not in found
    load(path)
    copy = Run.objects.get(testbed__sample=ORIGIN)
    assert copy.host_facts.all()[0].facts == {
        "kernel": "Linux 6.1.0",
        "cpus": 2,
        "versions": {"netperf": "netperf 2.7"},
    }
    artefact = copy.artefacts.get(name="play.log")
    content = bytes(artefact.content)
    assert content == b"copied 'netperf' to /dev/shm\n"
    assert (artefact.size, artefact.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert Measurement.objects.filter(boot__run=copy)[0].command == "netperf -t TCP_RR"


def test_names_of_accounts_are_marked_wherever_they_are(laboratory: Laboratory, run: Run, tmp_path: Path) -> None:
    tracked(laboratory.commit(0, 1.0))
    laboratory.rest()
    refused = create_submission(SubmissionState.WAITING, plan=PLAN)
    submissions.refuse(on_server(), refused.pk, "no")
    Run.objects.filter(pk=run.pk).update(requested_by="ada")
    load(bundle(tmp_path))
    copies = Run.objects.filter(testbed__sample=ORIGIN)
    assert set(copies.values_list("requested_by", flat=True)) == {"sample-ada", "tracking"}
    who = Submission.objects.get(testbed__sample=ORIGIN).transitions.values_list("who", flat=True)
    assert f"sample-{on_server().name}" in who


@pytest.mark.parametrize("path", sorted(BUNDLES.iterdir()), ids=lambda path: path.name)
def test_a_shipped_bundle_names_no_machine_and_no_account(path: Path) -> None:
    found = "\n".join(texts(path))
    assert not PRIVATE.search(found), PRIVATE.findall(found)[:3]
    load(path)
    hosts = {*Host.objects.values_list("name", "address"), *HostFacts.objects.values_list("name", "run__testbed__lab")}
    assert hosts <= {(f"sample-{role}", "") for role in Role.values}
    assert not Build.objects.exclude(log="").exists()
    assert {fact for facts in HostFacts.objects.values_list("facts", flat=True) for fact in facts} <= FACTS
    named = {*Run.objects.values_list("requested_by", flat=True), *Import.objects.values_list("imported_by", flat=True)}
    named |= {*AlertStep.objects.values_list("who", flat=True)}
    named |= {*SubmissionTransition.objects.values_list("who", flat=True)}
    assert {name for name in named if not name.startswith("sample-")} <= set(UNMARKED)


def test_removal_leaves_what_was_there_before(laboratory: Laboratory, run: Run, tmp_path: Path) -> None:
    shas = [laboratory.commit(number, 1.0 if number < 8 else 0.93) for number in range(12)]
    tracked(shas[0])
    laboratory.rest()
    create_submission(SubmissionState.REFUSED)
    before = contents()
    loaded = load(bundle(tmp_path))
    assert sum(map(len, contents().values())) == sum(map(len, before.values())) + loaded.rows
    assert remove() == loaded.rows
    assert contents() == before
    assert remove() == 0


def test_a_bundle_is_loaded_whole_or_not_at_all(run: Run, tmp_path: Path) -> None:
    path = bundle(tmp_path)
    load(path)
    before = contents()
    with pytest.raises(SampleError, match="there is a testbed sample-made already"):
        load(path)
    assert contents() == before
    (tmp_path / "other.jsonl.xz").write_bytes(lzma.compress(json.dumps({"format": 2}).encode()))
    with pytest.raises(SampleError, match="no bundle of samples in format 1"):
        load(tmp_path / "other.jsonl.xz")


TAKEN: dict[str, Callable[[], Model]] = {
    "sample-author": lambda: User.objects.create_user("sample-author"),
    "sample-upstream": lambda: Mirror.objects.create(name="sample-upstream", url="https://git.example.org/stack"),
    "sample-made": lambda: create_testbed("sample-made"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_name_that_is_taken_is_refused_and_its_owner_stays(run: Run, tmp_path: Path, name: str) -> None:
    submission = create_submission(SubmissionState.REFUSED)
    submission.mirror = Mirror.objects.create(name="upstream", url="https://git.example.org/stack")
    submission.save()
    path = bundle(tmp_path)
    taken = TAKEN[name]()
    before = contents()
    with pytest.raises(SampleError, match=f"there is a [a-z]+ {name} already: rename it"):
        load(path)
    assert contents() == before
    taken.delete()
    load(path)
    remove()
    again = TAKEN[name]()
    assert remove() == 0
    again.refresh_from_db()


DAMAGED: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda content: lzma.compress(content)[:-40],
    "not compressed": lambda content: content,
    "not JSON": lambda content: lzma.compress(content + b"{"),
    "nested": lambda content: lzma.compress(content + b"[" * 100_000),
    "unknown table": lambda content: lzma.compress(content + b'{"model": "no.table", "fields": []}'),
    "no fields": lambda content: lzma.compress(content + b'{"model": "lab.host"}'),
    "short row": lambda content: lzma.compress(content + b'{"model": "lab.host", "fields": ["id"]}\n[]'),
    "long name": lambda content: lzma.compress(content.replace(b"sample-made", b"m" * 60)),
    "wrong key": lambda content: lzma.compress(
        content + b'{"model": "lab.host", "fields": ["id", "testbed_id"]}\n[1, 0]'
    ),
    "empty": lambda content: lzma.compress(content[:0]),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_bundle_is_refused_with_its_name(run: Run, tmp_path: Path, damage: str) -> None:
    path = bundle(tmp_path)
    before = contents()
    path.write_bytes(DAMAGED[damage](lzma.decompress(path.read_bytes())))
    with pytest.raises(SampleError, match=r"made\.jsonl\.xz"):
        load(path)
    assert contents() == before


def changed(path: Path, change: Callable[[list[Any]], None]) -> Path:
    """Change the lines of a bundle."""
    lines = [json.loads(line) for line in lzma.decompress(path.read_bytes()).splitlines()]
    change(lines)
    path.write_bytes(lzma.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode()))
    return path


@pytest.mark.parametrize(("simulated", "origin"), [(True, Origin.SIMULATED), (False, Origin.MEASURED)])
def test_a_bundle_of_an_older_version_keeps_the_origin(run: Run, tmp_path: Path, simulated: bool, origin: str) -> None:
    def older(lines: list[Any]) -> None:
        place = lines[1]["fields"].index("origin")
        lines[1]["fields"][place] = "simulated"
        lines[2][place] = simulated

    load(changed(bundle(tmp_path), older))
    assert Testbed.objects.get(name="sample-made").origin == origin


def test_a_bundle_with_an_unknown_column_is_refused(run: Run, tmp_path: Path) -> None:
    def newer(lines: list[Any]) -> None:
        lines[1]["fields"].append("colour")
        lines[2].append("red")

    with pytest.raises(
        SampleError, match=r"made\.jsonl\.xz is of another version: it has a column 'colour' of lab\.test"
    ):
        load(changed(bundle(tmp_path), newer))


def test_a_bundle_has_a_limit(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bundle(tmp_path)
    monkeypatch.setattr("perfweb.samples.bundles.LARGEST", 1000)
    with pytest.raises(SampleError, match="more than 1000 bytes"):
        load(path)


def test_real_results_never_join_samples(laboratory: Laboratory, tmp_path: Path) -> None:
    tracked(laboratory.commit(0, 1.0))
    laboratory.rest()
    load(bundle(tmp_path))
    with pytest.raises(tracking.TrackingError, match="is a sample"):
        tracking.pause(on_server(), "sample-head", active=True)
    plan = TrackedBranch.objects.get(name="head").plan
    with pytest.raises(tracking.TrackingError, match="is a sample"):
        tracking.track(on_server(), tracking.BranchRequest("sample-head", plan, "demo"))
    (tmp_path / "a.csv").write_text("value\n1\n")
    options = Options(plan="p", test="tcp.bulk/host-host/ipv4", columns={"value": "value"}, testbed="sample-made")
    with pytest.raises(ImportProblemsError, match="holds samples"):
        read_files("csv", [str(tmp_path / "a.csv")], options)


def test_lists_and_timelines_count_samples_only_without_other_results(client: Client, run: Run, tmp_path: Path) -> None:
    test = "tcp.rr/host-host/ipv4"
    summarise([run.pk])
    path = bundle(tmp_path)
    Run.objects.all().delete()
    load(path)
    copy = Run.objects.get()
    assert f"{copy.pk} (sample)" in text_of(page(client, "/tests/"))
    assert f"Its values were {ORIGIN}" in text_of(page(client, f"/tests/{test}/"))
    summarise([create_run(tests=[test]).pk])
    assert "(sample)" not in text_of(page(client, "/tests/"))
    series = Summary.objects.filter(run=copy, test=test).values_list("series", flat=True)[0]
    assert ORIGIN not in text_of(page(client, f"/tests/{test}/"))
    assert ORIGIN in text_of(page(client, f"/tests/{test}/?series={series}"))


def test_only_finished_runs_of_known_testbeds_are_saved(run: Run, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="there is no testbed 'nowhere'"):
        call_command("save_samples", tmp_path / "a.jsonl.xz", "nowhere", origin=ORIGIN)
    with pytest.raises(CommandError, match="ends with"):
        call_command("save_samples", tmp_path / "a.zip", "demo", origin=ORIGIN)
    Run.objects.update(state=RunState.RUNNING)
    with pytest.raises(CommandError, match="not over"):
        call_command("save_samples", tmp_path / "a.jsonl.xz", "demo", origin=ORIGIN)


def test_pages_mark_samples(client: Client, run: Run, tmp_path: Path) -> None:
    load(bundle(tmp_path))
    copy = Run.objects.get(testbed__sample=ORIGIN)
    marked = (f"A sample , loaded to show what these pages are for. Its values were {ORIGIN}", "sample-made (sample)")
    for address in (f"/runs/{copy.pk}/", "/testbeds/sample-made/"):
        text = text_of(page(client, address))
        assert all(words in text for words in marked), address
    assert marked[0] in text_of(page(client, f"/runs/{copy.pk}/compare/deferred..direct/"))
    for address in (f"/runs/{run.pk}/", "/testbeds/demo/", f"/runs/{run.pk}/compare/deferred..direct/"):
        assert marked[0] not in text_of(page(client, address))
    assert marked[1] in text_of(page(client, "/runs/"))


def test_only_real_alerts_count_once_there_are_some(
    client: Client, laboratory: Laboratory, settings: Settings, tmp_path: Path
) -> None:
    settings.PERFWEB_VAR = tmp_path
    shas = [laboratory.commit(number, 1.0 if number < 8 else 0.93) for number in range(16)]
    tracked(shas[0])
    laboratory.rest()
    path = bundle(tmp_path)
    runs_done = Run.objects.filter(state=RunState.DONE).count()
    load(path)
    Alert.objects.filter(branch__testbed__sample=ORIGIN).update(state=AlertState.NOT_A_BUG)
    assert "Confirmed alerts: 1. Caused by the software: 0." in text_of(page(client, "/tracking/"))
    metrics = client.get("/metrics").content.decode()
    assert f'perfweb_alerts{{state="{AlertState.NOT_A_BUG}"}} 0.0' in metrics
    assert f'perfweb_runs{{state="done"}} {runs_done}.0' in metrics
    Alert.objects.filter(branch__testbed__sample="").delete()
    assert "Confirmed alerts: 1. Caused by the software: 1." in text_of(page(client, "/tracking/"))


def test_a_testbed_of_samples_is_none_for_runs(client: Client, run: Run, tmp_path: Path) -> None:
    load(bundle(tmp_path))
    text = text_of(page(client, "/testbeds/sample-made/"))
    assert "holds samples" in text
    assert "device under test" in text
    assert "device under test," not in text, "hosts of samples have no address"
    assert "imported results only" not in text
    with pytest.raises(runs.RunError, match=r"no testbed 'nowhere'; registered: demo$"):
        runs.submit(PLAN, "nowhere")


def test_the_first_page_shows_samples_until_there_is_a_real_result(client: Client, run: Run, tmp_path: Path) -> None:
    summarise([run.pk])
    path = bundle(tmp_path)
    Run.objects.all().delete()
    load(path)
    text = text_of(page(client, "/"))
    assert "This site has samples" in text
    assert "sample-made (sample)" in text
    create_run(tests=["tcp.rr/host-host/ipv4"])
    summarise(list(Run.objects.filter(testbed__name="demo").values_list("pk", flat=True)))
    text = text_of(page(client, "/"))
    assert "sample-made" not in text
    assert "demo" in text


def test_the_shipped_samples_have_one_of_everything(client: Client) -> None:
    assert sum(path.stat().st_size for path in BUNDLES.iterdir()) < 5_000_000
    call_command("load_samples")
    states = set(Submission.objects.values_list("state", flat=True))
    assert states == set(SubmissionState.values) - {SubmissionState.RECEIVED}
    branch = TrackedBranch.objects.get()
    assert branch.commits.count() == 40
    alerts = {AlertState(alert.state) for alert in branch.alerts.all()}
    assert alerts == {AlertState.CONFIRMED, AlertState.REFUTED, AlertState.INFRASTRUCTURE}
    confirmed = branch.alerts.filter(state=AlertState.CONFIRMED).exclude(culprit=None)
    assert {alert.movements.first().better for alert in confirmed} == {False, True}  # type: ignore[union-attr]
    assert Testbed.objects.filter(sample="").count() == 0
    for name, origin in Testbed.objects.values_list("name", "origin"):
        assert (origin == Origin.SIMULATED) == (name == "sample-sim")
    for run in Run.objects.all()[:60]:
        assert client.get(f"/runs/{run.pk}/").status_code == 200
    for address in ("/", "/tests/", "/tracking/", f"/tracking/{branch.name}/", "/submissions/", "/runs/", "/testbeds/"):
        assert "sample" in page(client, address), address
    with pytest.raises(SampleError):
        load_all()
    call_command("load_samples", remove=True)
    assert not Run.objects.exists()
    assert not User.objects.exists()
