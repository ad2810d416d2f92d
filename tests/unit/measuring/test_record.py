# SPDX-License-Identifier: BSD-2-Clause
"""Results of a tool as rows; a missing or invalid one as a failed measurement with the tool's output."""

import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from perfweb.faults.models import Fault
from perfweb.measuring import record, spool, spool_replay
from perfweb.measuring.planner import PlannedBoot
from perfweb.measuring.raw import RawMeasurement, RawSample
from perfweb.runs.models import Artefact, Boot, BootState, Measurement, MeasurementState, Run, Sample
from tests.factories import create_queued_run, create_variants

pytestmark = pytest.mark.django_db

TEST = "tcp.rr/host-host/ipv4"
GOOD = "THROUGHPUT=5000\nTHROUGHPUT_UNITS=Trans/s\nP99_LATENCY=120\n"


@pytest.fixture
def boot() -> Boot:
    run = create_queued_run()
    return record.boot_started(
        run, create_variants(run)[0], PlannedBoot(0, 0, "deferred", "host-host", "netserver", ())
    )


def output(stdout: str = GOOD, **changes: object) -> dict[str, Any]:
    usual = {"rc": 0, "stdout": stdout, "stderr": "", "started": 1.8e9, "seconds": 1.01, "timed_out": False}
    return usual | changes


def measured(boot: Boot, *outputs: dict[str, Any], reason: str = "") -> RawMeasurement:
    argv = ["netperf", "-H", "10.0.0.2"]
    samples = list(map(RawSample.read, outputs))
    return RawMeasurement(boot.pk, TEST, 1, argv, {"client": "0", "server": "1"}, samples, reason)


def test_samples_command_pinning_and_output(boot: Boot) -> None:
    made = record.measurement(measured(boot, output(), output(GOOD.replace("5000", "5100"))))
    assert (made.state, made.reason) == (MeasurementState.OK, "")
    assert made.command == "netperf -H 10.0.0.2"
    assert made.pinning == {"client": "0", "server": "1"}
    primary = Sample.objects.filter(measurement=made).primary()
    assert [(sample.value, sample.discarded) for sample in primary] == [(5000.0, True), (5100.0, False)]
    assert made.samples.filter(metric="latency.p99").count() == 2
    kept = bytes(made.artefacts.get().content).decode()
    assert kept.startswith("== sample 0: 2027-01-15T08:00:00.000+00:00, 1.010 s, status 0\n")
    assert "THROUGHPUT=5100" in kept


def test_interim_results_of_a_tool_are_kept_with_its_sample(boot: Boot) -> None:
    lines = "  100  1000000  80.000  100.00% \nConn: 1\n  300  1000000  40.000  100.00% \n"
    record.measurement(replace(measured(boot, output(lines), output("")), test="tcpbench.1/host-host/ipv4"))
    assert Measurement.objects.get().interim == [[[0.1, 80_000_000], [0.3, 40_000_000]], []]
    assert record.measurement(measured(boot, output())).interim == []


def test_output_has_the_number_of_refusals_by_a_busy_server(boot: Boot) -> None:
    made = record.measurement(measured(boot, output(refused=0), output(refused=2)))
    assert made.state == MeasurementState.OK
    first, second = bytes(made.artefacts.get().content).decode().split("== sample ")[1:]
    assert "sent away" not in first
    assert second.splitlines()[0].endswith("status 0, sent away 2 times before")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (output("", rc=1, stderr="connect: refused\n"), "netperf ended with status 1: connect: refused"),
        (output("", rc=-9, timed_out=True), "netperf did not end in time"),
        (output("THROUGHPUT=0\nTHROUGHPUT_UNITS=Trans/s\n"), "THROUGHPUT is 0, which cannot be measured"),
        (output(""), "netperf printed no THROUGHPUT"),
        (output("\0\udcff", rc=2), "netperf ended with status 2: ??"),
    ],
)
def test_one_bad_sample_fails_the_measurement_and_is_never_a_zero(boot: Boot, bad: dict[str, Any], reason: str) -> None:
    made = record.measurement(measured(boot, output(), bad, output()))
    assert made.state == MeasurementState.FAILED
    assert made.reason == f"1 of 3 samples failed; sample 1: {reason}"
    assert [sample.index for sample in Sample.objects.filter(measurement=made).primary()] == [0, 2]
    assert not Sample.objects.filter(measurement=made).counted().exists()
    assert "== sample 1" in bytes(made.artefacts.get().content).decode()


STOLEN = "steal: the hypervisor took 12.3 % of the CPUs' time"


def gated(boot: Boot, outputs: list[dict[str, Any]], voids: list[str]) -> Measurement:
    judged = [RawSample.read({**made, "void": void}) for made, void in zip(outputs, voids, strict=True)]
    return record.measurement(RawMeasurement(boot.pk, TEST, 1, ["netperf"], {}, judged))


def test_void_samples_are_kept_with_the_reason_and_do_not_count(boot: Boot) -> None:
    gauges = {"seconds": 1.01, "steal": 0.123, "clocksource": "tsc"}
    made = gated(boot, [output(), output(), output(gauges=gauges), output()], ["", "", STOLEN, ""])
    assert (made.state, made.reason, made.voids) == (MeasurementState.OK, "", 1)
    assert made.gauges == [{}, {}, gauges, {}]
    assert set(made.samples.filter(index=2).values_list("metric", "void")) == {
        ("transactions", STOLEN), ("latency.p99", STOLEN)
    }  # fmt: skip
    assert [sample.index for sample in Sample.objects.filter(measurement=made).counted()] == [1, 3]
    text = bytes(made.artefacts.get().content).decode()
    assert f"1.010 s, status 0, void: {STOLEN}\n" in text
    assert "-- gauges\nseconds: 1.01 s\nsteal: 0.123 of the CPUs' time\nclocksource: tsc\n== sample 3" in text


@pytest.mark.parametrize(("void", "state"), [(2, MeasurementState.OK), (3, MeasurementState.VOID)])
def test_a_measurement_more_of_which_is_void_than_counts_is_void(
    boot: Boot, void: int, state: MeasurementState
) -> None:
    made = gated(boot, [output()] * 5, ["", *[STOLEN] * void, *[""] * (4 - void)])
    assert made.state == state
    assert made.reason == ("" if void == 2 else f"3 of 4 samples are void; sample 1: {STOLEN}")


def test_a_sample_whose_client_waited_is_void_unless_it_is_warm_up(boot: Boot) -> None:
    stalled, good = (f"{GOOD}MEAN_LATENCY={latency}\n" for latency in (20, 195))
    made = record.measurement(measured(boot, output(stalled), output(good), output(stalled), output(good)))
    assert (made.state, made.voids) == (MeasurementState.OK, 1)
    primary = Sample.objects.filter(measurement=made).primary().order_by("index")
    assert [sample.void.partition(":")[0] for sample in primary] == ["", "", "stall", ""]
    assert (
        record.measurement(replace(measured(boot, *[output(stalled)] * 3), test="udp.rr/host-host/ipv4")).state
        == MeasurementState.VOID
    )


def test_a_sample_that_failed_fails_the_measurement_whatever_is_void(boot: Boot) -> None:
    made = gated(boot, [output(), output(), output("", rc=1)], ["", STOLEN, ""])
    assert made.state == MeasurementState.FAILED
    assert made.reason.startswith("1 of 3 samples failed; sample 2: ")


def test_what_an_older_version_has_spooled_is_stored(boot: Boot) -> None:
    made = record.measurement(measured(boot, output(), output()))
    assert (made.state, made.voids, made.samples.exclude(void="").count()) == (MeasurementState.OK, 0, 0)


def test_play_that_failed_is_a_failed_measurement(boot: Boot) -> None:
    made = record.measurement(measured(boot, reason="play measure failed: left: unreachable"))
    assert (made.state, made.reason) == (MeasurementState.FAILED, "play measure failed: left: unreachable")
    made = record.measurement(measured(boot))
    assert Measurement.objects.count() == 1


def test_nothing_measured_without_a_reason_is_still_a_failure(boot: Boot) -> None:
    assert record.measurement(measured(boot)).reason == "nothing was measured"


def test_spool_is_replayed_once(boot: Boot, settings: Settings, tmp_path: Path) -> None:
    settings.PERFWEB_VAR = tmp_path
    document = measured(boot, output())
    spool.put(boot.run, document)
    spool_replay.replay(boot.run)
    spool.put(boot.run, document)  # the worker died after the transaction, before it removed the file
    spool_replay.replay(boot.run)
    assert Measurement.objects.count() == 1
    assert spool.waiting(boot.run) == []


def test_samples_that_a_worker_received_before_it_died_are_kept_and_taken_again(
    boot: Boot, settings: Settings, tmp_path: Path
) -> None:
    settings.PERFWEB_VAR = tmp_path
    tests = (TEST, "udp.rr/host-host/ipv4", "tcp.crr/host-host/ipv4")
    begun = [RawMeasurement(boot.pk, test, 0, ["netperf"], {}) for test in tests]
    journal = spool.begin(boot.run, boot.pk, begun)
    lines = [
        {"test": TEST, "left": 2}, {"test": TEST, "left": 1, "sample": output()},
        {"test": TEST, "left": 0, "sample": output()}, {"test": tests[1], "left": 2},
        {"test": tests[1], "left": 1, "sample": output()},
    ]  # fmt: skip
    with journal.open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)
        file.write('{"test": "udp.rr/host-host/ipv4", "left": 0, "sam')
    spool_replay.replay(boot.run)
    spool_replay.replay(boot.run)
    whole, cut = Measurement.objects.order_by("pk")
    assert (whole.test, whole.state, whole.samples.counted().count()) == (TEST, MeasurementState.OK, 2)
    assert (cut.state, cut.reason) == (MeasurementState.FAILED, "the worker died with 1 samples to take")
    assert cut.samples.primary().count() == 1
    assert spool.unfinished(boot.run) == []


@pytest.mark.parametrize("line", ["\0" * 40, "{", "[]", '{"test": "another"}', '{"left": 1}', "[" * 5000, "\udcff"])
def test_a_line_of_a_journal_that_cannot_be_read_costs_no_other(
    boot: Boot, settings: Settings, tmp_path: Path, line: str
) -> None:
    """After a crash of the machine a block of a file may hold zeros."""
    settings.PERFWEB_VAR = tmp_path
    journal = spool.begin(boot.run, boot.pk, [RawMeasurement(boot.pk, TEST, 0, ["netperf"], {})])
    sample = json.dumps({"test": TEST, "left": 0, "sample": output()})
    with journal.open("a", errors="surrogateescape") as file:
        file.write(f"{sample}\n{line}\n{sample}\n")
    spool_replay.replay(boot.run)
    assert Measurement.objects.get().samples.counted().count() == 2
    assert Fault.objects.get().item.endswith(".journal.unread")
    assert len(spool.aside()) == 1


def test_a_journal_of_an_older_version_is_read(boot: Boot, settings: Settings, tmp_path: Path) -> None:
    settings.PERFWEB_VAR = tmp_path
    journal = spool.begin(boot.run, boot.pk, [RawMeasurement(boot.pk, TEST, 0, ["netperf"], {})])
    with journal.open("a") as file:
        file.write(json.dumps({"test": TEST, "left": 0, "sample": output()}) + "\n")
    journal.rename(journal.with_suffix(".told"))
    spool_replay.replay(boot.run)
    assert Measurement.objects.get().samples.counted().count() == 1
    assert spool.unfinished(boot.run) == []


def test_a_journal_that_cannot_be_read_is_set_aside(boot: Boot, settings: Settings, tmp_path: Path) -> None:
    settings.PERFWEB_VAR = tmp_path
    journal = spool.begin(boot.run, boot.pk, [])
    journal.write_text("nonsense\n")
    spool_replay.replay(boot.run)
    assert [path.read_text() for path in journal.parent.iterdir()] == ["nonsense\n"]
    assert spool.unfinished(boot.run) == []


@pytest.mark.parametrize(
    "text", ['{"test": "tcp.old/host-host/ipv4", "boot": %d}', '{"boot": 0}', "{", "[]", "\xff", "[" * 5000]
)
def test_what_cannot_be_stored_is_set_aside_and_holds_up_nothing(
    boot: Boot, settings: Settings, tmp_path: Path, text: str
) -> None:
    settings.PERFWEB_VAR = tmp_path
    bad = spool.put(boot.run, replace(measured(boot), test="a"))
    bad.write_text(text.replace("%d", str(boot.pk)), encoding="latin-1")
    spool.put(boot.run, measured(boot, output()))
    content = bad.read_bytes()
    spool_replay.replay(boot.run)
    assert spool.waiting(boot.run) == []
    assert Measurement.objects.get().test == TEST
    (kept,) = bad.parent.iterdir()
    assert kept.read_bytes() == content
    assert Fault.objects.get(lasting=True).item == str(kept.relative_to(tmp_path))
    assert "manage.py spool retry" in Fault.objects.get().advice


def test_a_spooled_result_is_on_disk_with_the_names_that_lead_to_it(
    boot: Boot, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PERFWEB_VAR = tmp_path
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    path = spool.put(boot.run, measured(boot, output()))
    assert synced == [place.stat().st_ino for place in (path, *path.parents[:3])]


def test_the_spool_of_an_earlier_database_is_not_read(boot: Boot, settings: Settings, tmp_path: Path) -> None:
    settings.PERFWEB_VAR = tmp_path
    spool.put(boot.run, measured(boot, output()))
    Run.objects.filter(pk=boot.run_id).update(created=boot.run.created + timedelta(seconds=1))
    spool_replay.replay(Run.objects.get(pk=boot.run_id))
    assert not Measurement.objects.exists()


def test_boot_that_is_done_again_is_another_attempt(boot: Boot) -> None:
    again = record.boot_started(boot.run, boot.variant, PlannedBoot(0, 0, "deferred", "host-host", "netserver", ()))
    assert (boot.attempt, again.attempt) == (1, 2)
    assert record.boot_folder(boot) == "boots/000-deferred"
    assert record.boot_folder(again) == "boots/000-deferred-2"


def test_log_of_the_whole_boot_replaces_the_one_from_its_start(boot: Boot) -> None:
    outcome = {"commands": {"stack": ["bootstack", "-c", "a b"]}, "boot_log": "stack: up\n", "loader_conf": 'a="1"\n'}
    record.boot_up(boot, outcome, {"a": "1"})
    assert boot.command == "bootstack -c 'a b'"
    record.boot_ended(boot, BootState.CRASHED, "it ended by itself", "stack: up\npanic\n")
    logs = Artefact.objects.filter(boot=boot, kind="boot-log")
    assert [bytes(log.content) for log in logs] == [b"stack: up\npanic\n"]
    assert Artefact.objects.filter(boot=boot, kind="tunables").count() == 2


def test_huge_output_loses_its_middle_with_a_notice(boot: Boot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "LONGEST_ARTEFACT", 10)
    record.counters(boot, {"all": "a" * 6 + "b" * 10 + "c" * 6})
    assert bytes(Artefact.objects.get().content) == b"aaaaa\n[12 bytes left out]\nccccc"


def test_results_that_were_set_aside_are_stored_after_a_repair(
    boot: Boot, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PERFWEB_VAR = tmp_path
    spool.put(boot.run, measured(boot, output()))
    journal = spool.begin(boot.run, boot.pk, [replace(measured(boot), test="udp.rr/host-host/ipv4")])
    with journal.open("a") as file:
        file.write(json.dumps({"test": "udp.rr/host-host/ipv4", "left": 0, "sample": output()}) + "\n")
    with monkeypatch.context() as broken:
        broken.setattr(json, "loads", lambda *_, **__: 1 // 0)
        spool_replay.replay(boot.run)
    assert (spool.waiting(boot.run), spool.unfinished(boot.run), Measurement.objects.count()) == ([], [], 0)
    call_command("spool", "list")
    assert "2 results are set aside" in capsys.readouterr().out
    assert Fault.objects.count() == 2
    call_command("spool", "retry")
    assert capsys.readouterr().out == "2 results are stored\n"
    assert (Measurement.objects.count(), Fault.objects.count(), spool.aside()) == (2, 0, [])
    journal.with_name("1-bad.json.unread").write_text("{")
    with pytest.raises(CommandError, match="1 results cannot be stored"):
        call_command("spool", "retry")
