# SPDX-License-Identifier: BSD-2-Clause
"""KCIDB reports have the shape of the published schema (kcidb-io, version 5.3): fields, required ones and patterns."""

from __future__ import annotations

import io
import json
from typing import Any

import jsonschema
import pytest
from django.core.management import CommandError, call_command

from perfweb.builds.models import Mirror
from perfweb.runs.models import Boot, BootState, Measurement, MeasurementState, Run, RunState
from perfweb.submissions.kcidb import report
from perfweb.submissions.models import Submission, SubmissionState
from tests.factories import create_build, create_run, create_submission

pytestmark = pytest.mark.django_db
TEXT = {"type": "string", "pattern": r"^[^\0]*$"}
EXCERPT = {**TEXT, "maxLength": 16384}
URI = {"type": "string", "pattern": "^https?://"}
TIME = {"type": "string", "format": "date-time"}
ORIGIN = {"type": "string", "pattern": "^[a-z0-9_]+$"}
IDENTITY = {"type": "string", "pattern": r"^[a-z0-9_]+:[^\0]*$"}
STATUS = {"enum": ["FAIL", "ERROR", "MISS", "PASS", "DONE", "SKIP"]}
RESOURCE = {"type": "string", "pattern": r"^[^/\0]+$"}
TESTS = ["tcp.rr/host-host/ipv4", "tcp.stream/host-host/ipv4"]


def closed(required: list[str], **properties: object) -> dict[str, object]:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


def listed(item: object) -> dict[str, object]:
    return {"type": "array", "items": item}


FILES = listed(closed(["name", "url"], name=RESOURCE, url=URI))
SCHEMA = closed(
    ["version"],
    version=closed(["major"], major={"const": 5}, minor={"type": "integer", "minimum": 0}),
    checkouts=listed(
        closed(
            ["id", "origin"], id=IDENTITY, origin=ORIGIN, tree_name=TEXT, comment=TEXT, start_time=TIME,
            git_repository_url={"type": "string", "pattern": r"^https://[^\0]*$"}, git_commit_name=TEXT,
            git_commit_hash={"type": "string", "pattern": "^[0-9a-f]{40}$"}, patchset_files=FILES,
            patchset_hash={"type": "string", "pattern": "^$|^[0-9a-f]{64}$"}, valid={"type": "boolean"},
        )
    ),
    builds=listed(
        closed(
            ["checkout_id", "id", "origin"], id=IDENTITY, checkout_id=IDENTITY, origin=ORIGIN, config_name=TEXT,
            architecture={"type": "string", "pattern": "^[a-z0-9_]*$"}, duration={"type": "number"}, log_url=URI,
            log_excerpt=EXCERPT, status=STATUS, misc={"type": "object"},
        )
    ),
    tests=listed(
        closed(
            ["build_id", "id", "origin"], id=IDENTITY, build_id=IDENTITY, origin=ORIGIN, comment=TEXT, log_url=URI,
            path={"type": "string", "pattern": r"^([a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*)?$"}, log_excerpt=EXCERPT,
            environment=closed([], comment=TEXT, misc={"type": "object"}), status=STATUS, start_time=TIME,
            number=closed(["value"], value={"type": "number"}, unit=TEXT),
        )
    ),
)  # fmt: skip


def measured(gain: float) -> Run:
    """A finished run of a submission, whose patch is `gain` times as fast."""
    made = create_run(tests=TESTS, boots=4, gain=gain, build=create_build())
    made.variants.exclude(baseline=True).update(name="patch")
    create_submission(SubmissionState.APPROVED).runs.add(made)
    return made


@pytest.fixture
def run() -> Run:
    return measured(0.9)


def checked(run: Run, origin: str = "perfweb") -> dict[str, Any]:
    """The report of a run, by the schema; items refer to each other."""
    found = report([run], origin)
    jsonschema.validate(found, SCHEMA, format_checker=jsonschema.FormatChecker())
    assert {build["checkout_id"] for build in found["builds"]} == {one["id"] for one in found["checkouts"]}
    assert {test["build_id"] for test in found.get("tests", [])} <= {build["id"] for build in found["builds"]}
    return found


def test_a_run_is_checkouts_builds_and_tests(run: Run) -> None:
    found = checked(run)
    base, patched = found["checkouts"]
    assert (base["patchset_hash"], "patchset_files" in base) == ("", False)
    assert patched["patchset_files"][0]["url"].endswith("/patch.mbox")
    assert base["git_commit_hash"] == patched["git_commit_hash"] == Submission.objects.get().base
    assert statuses(found, 1) == {
        "boot": "PASS", "perfweb.tcp.rr.host-host.ipv4": "FAIL", "perfweb.tcp.stream.host-host.ipv4": "FAIL"
    }  # fmt: skip
    of_base = [test for test in found["tests"] if test["build_id"] == found["builds"][0]["id"]]
    assert {test["status"] for test in of_base if test["path"] != "boot"} == {"DONE"}
    assert all(test["number"]["value"] > 0 for test in of_base if test["path"] != "boot")


def statuses(found: dict[str, Any], build: int) -> dict[str, str]:
    """The status of each test of a build, by its path."""
    key = found["builds"][build]["id"]
    return {test["path"]: test["status"] for test in found["tests"] if test["build_id"] == key}


def test_a_faster_patch_passes() -> None:
    assert set(statuses(checked(measured(1.1)), 1).values()) == {"PASS"}


def test_a_test_without_a_number_is_missing(run: Run) -> None:
    of_base = Measurement.objects.filter(boot__variant__baseline=True, test=TESTS[0])
    of_base.update(state=MeasurementState.FAILED, reason="no connection")
    assert statuses(checked(run), 0)["perfweb.tcp.rr.host-host.ipv4"] == "MISS"


def test_a_run_that_is_not_over_is_not_reported(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    assert set(report([Run.objects.get(pk=run.pk)], "perfweb")) == {"version"}


def test_variants_are_in_their_order(run: Run) -> None:
    base, patch = run.variants.order_by("position")
    run.variants.filter(pk=base.pk).update(position=7)
    first, second = checked(run)["checkouts"]
    assert first["id"].endswith(f"/{patch.name}")
    assert second["id"].endswith(f"/{base.name}")


def test_a_stage_of_a_series_has_no_file_of_its_own(run: Run) -> None:
    run.variants.filter(name="patch").update(name="patch-2")
    _, stage = checked(run)["checkouts"]
    assert not {"patchset_hash", "patchset_files"} & set(stage)


@pytest.mark.parametrize(("url", "public"), [("https://example.org/linux", True), ("/srv/linux", False)])
def test_only_a_public_address_of_a_repository_is_named(run: Run, url: str, public: bool) -> None:
    mirror = Mirror.objects.create(name="linux", url=url, kind="linux")
    Submission.objects.update(mirror=mirror)
    for checkout in checked(run)["checkouts"]:
        assert checkout["tree_name"] == "linux"
        assert checkout.get("git_repository_url") == (url if public else None)


def test_a_patch_whose_boots_fail_has_built(run: Run) -> None:
    Boot.objects.filter(variant__name="patch").update(state=BootState.CRASHED, error="panic: lock order")
    found = checked(run)
    assert [build["status"] for build in found["builds"]] == ["PASS", "PASS"]
    assert not any("log_excerpt" in build for build in found["builds"])
    assert statuses(found, 1)["boot"] == "FAIL"
    assert [test["log_excerpt"] for test in found["tests"] if "log_excerpt" in test] == ["panic: lock order"]


def test_a_build_that_fails_has_its_log_and_no_tests(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=RunState.FAILED)
    run.variants.exclude(baseline=True).update(build=broken())
    found = checked(Run.objects.get(pk=run.pk))
    assert [build["status"] for build in found["builds"]] == ["PASS", "FAIL"]
    assert found["builds"][1]["log_excerpt"].startswith("net/x.c:3: error: no")
    assert {test["build_id"] for test in found["tests"]} == {found["builds"][0]["id"]}


def broken() -> Any:
    made = create_build("another")
    made.state, made.log, made.key = "failed", "net/x.c:3:1: error: no\n", "f" * 32
    made.save()
    return made


def test_other_origins_are_refused(run: Run) -> None:
    assert checked(run, "my_site")["builds"][0]["origin"] == "my_site"
    with pytest.raises(ValueError, match="is no origin"):
        report([run], "My site")


def test_the_command_prints_the_report(run: Run) -> None:
    printed = io.StringIO()
    call_command("kcidb", str(run.pk), stdout=printed)
    assert json.loads(printed.getvalue()) == json.loads(json.dumps(report([run], "perfweb")))
    with pytest.raises(CommandError, match=f"run {run.pk + 1} is no finished run"):
        call_command("kcidb", str(run.pk + 1))
