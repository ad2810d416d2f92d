# SPDX-License-Identifier: BSD-2-Clause
"""The table of faults: what happens to a run, and how it ends; with -v the output is a report.

Those of the databases, and of a server that dies, are in test_crashes.py.
"""

import os
import re
import shutil
import signal
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path, PurePosixPath

import pytest
import yaml
from django.conf import settings
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from perfweb.builds.models import Build
from perfweb.builds.sources import SourceFile, pack
from perfweb.lab import services as lab_services
from perfweb.lab.models import Lease, Testbed
from perfweb.measuring import spool
from perfweb.runs import services
from perfweb.runs.models import Artefact, ArtefactKind, Boot, Measurement, Run, RunState, Sample
from runners import recovery, tasks
from runners.labs import netlab
from tests.integration.conftest import LabHosts, history, state_of, wait_for_state
from tests.integration.workers import Worker
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

REAL = """\
name: real
baseline: a
variants: [{name: a, target: linux}]
tests: [tcp.rr/host-host/ipv4]
samples: 1
discard: 0
boots: 1
seconds: 1
gates: off
"""
TWICE = REAL.replace("samples: 1\n", "samples: 2\n").replace("boots: 1\n", "boots: 2\n")
SMALL = """\
name: small
baseline: a
variants: [{name: a, target: sim, source: base}]
tests: [simulated.tcp.1/host-host/ipv4]
samples: 1
discard: 0
boots: 1
"""
MESON = """\
project('stack')
install_data('simstack', install_dir: 'bin', install_mode: 'rwxr-xr-x')
"""
RESULT = """{"unit": "kilobytes/s", "runs": [{"rate": 5}]}"""
# Programs that wait until a test kills their sleep, so that a slow test still finds them running.
HELD = f"sleep 600; echo '{RESULT}'"
HELD_BUILD = f"{MESON}run_command('sleep', '600')\n"
STATES = ("queued", "leased", "preparing", "building", "running", "restoring")
OVER = (RunState.DONE, RunState.FAILED)
SAMPLE = re.compile(rb"^== sample \d+: (\S+),", re.MULTILINE)
SmallStack = Callable[..., Run]


@pytest.fixture
def small_stack(testbed: Testbed, hosts: LabHosts) -> Iterator[SmallStack]:
    """Queue a run of sources that build quickly, whose one program follows `conduct`."""
    simulator = lab_services.register("sim", hosts.lab.simulator)

    def submit(conduct: str = f"echo '{RESULT}'", meson: str = MESON, plan: str = SMALL) -> Run:
        files = {
            "meson.build": f"{meson}# {uuid.uuid4()}\n",  # or it is built already
            "meson_options.txt": "option('sim', type: 'boolean')\n",
            "simstack": f"#!/bin/sh\n{conduct}\n",
        }
        store = Path(settings.PERFWEB_VAR) / "sources"
        sources = pack("stack", (SourceFile(PurePosixPath(n), t.encode(), True) for n, t in files.items()), store)
        return services.submit(plan, simulator.name, sources={"base": sources})

    yield submit
    for key in Build.objects.values_list("key", flat=True):
        shutil.rmtree(netlab.HOSTS_ROOT / "builds" / key, ignore_errors=True)


@pytest.fixture(autouse=True)
def sound(worker: Worker, hosts: LabHosts) -> Iterator[None]:
    """After each fault no lock or process is left, and no output is stored twice."""
    yield
    wait_for(lambda: not Lease.objects.filter(released__isnull=True).exists(), "the testbed to be free")
    worker.kill()
    for run in Run.objects.all():
        hosts.assert_clean(run)
        assert spool.waiting(run) + spool.unfinished(run) == []
        assert set(Counter(stored(run)).values()) <= {1}


def stored(run: Run) -> list[str]:
    """The times of the samples whose tool output is in the database."""
    outputs = Artefact.objects.filter(run=run, kind=ArtefactKind.TOOL_OUTPUT)
    return [found.decode() for output in outputs for found in SAMPLE.findall(bytes(output.content))]


def counted(run: Run) -> int:
    return Sample.objects.filter(measurement__boot__run=run).counted().count()


def ended(run: Run) -> str:
    """Wait for the end of a run; return its state and reason."""
    wait_for_state(run, *OVER)
    return f"{run.state}: {run.reason}"


def go_on(run: Run, hosts: LabHosts, *wanted: RunState) -> None:
    """Wait until a run is in one of the states, and let every suspended program continue until then."""

    def is_there() -> bool:
        if state_of(run) in wanted:
            return True
        hosts.kill("dut", "sleep")
        return False

    wait_for(is_there, f"{run} to be {' or '.join(wanted)}")


def ended_after_going_on(run: Run, hosts: LabHosts) -> str:
    """The same for a run whose programs are suspended."""
    go_on(run, hosts, *OVER)
    return ended(run)


def recover(run: Run) -> None:
    """Do what beat does every few seconds, until the expiry of a dead worker's lease was noticed."""

    def is_noticed() -> bool:
        recovery.recover()
        return run.losses.count() > before

    before = run.losses.count()
    wait_for(is_noticed, "the loss to be noticed")


@contextmanager
def no_run_leaves(state: str) -> Iterator[None]:
    """Make a transaction that stores the end of this state wait."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(1)")
        cursor.execute(
            "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END'"
        )
        cursor.execute(
            "CREATE TRIGGER hold BEFORE INSERT ON runs_runtransition FOR EACH ROW"
            f" WHEN (NEW.from_state = '{state}') EXECUTE FUNCTION hold()"
        )
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(1)")
            cursor.execute("DROP FUNCTION hold CASCADE")


def test_controller_is_killed_in_each_state(
    small_stack: SmallStack, worker: Worker, hosts: LabHosts, subtests: pytest.Subtests
) -> None:
    """One run, whose workers are killed one after the other, each at another step."""
    worker.kill()
    run = small_stack(HELD, HELD_BUILD)
    for state in STATES:
        with subtests.test(state):
            with no_run_leaves(state):
                worker.start()
                services.dispatch()
                go_on(run, hosts, RunState(state))
                if state in {"building", "running"}:
                    wait_for(lambda: hosts.runs("dut", "sleep"), "a program in its sandbox")
                worker.kill()
            if state != "queued":
                recover(run)
    worker.start()
    services.dispatch()
    assert ended_after_going_on(run, hosts) == "done: "
    assert counted(run) == 1
    assert list(run.losses.values_list("step", flat=True)) == ["leased", "preparing", "building", "boot 0", "restoring"]


def test_build_fails_and_its_words_are_kept(small_stack: SmallStack) -> None:
    run = small_stack(meson=f"{MESON}subdir('missing')")
    assert ended(run).startswith("failed: play build failed: ")
    assert "missing/meson.build" in run.reason
    assert "missing/meson.build" in Build.objects.get().log
    assert not Boot.objects.exists()


def test_boot_with_other_tunables_than_requested_is_not_measured(testbed: Testbed) -> None:
    knobs = "target: linux, tunables: {link.offload.gso: on, link.offload.sg: off}"
    run = services.submit(REAL.replace("target: linux", knobs), testbed.name)
    assert ended(run).startswith("failed: all 1 measurements failed; the first: not measured: it did not boot")
    assert "gso of data0 is off and not on" in run.reason
    assert Boot.objects.get().state == "failed"
    assert counted(run) == 0


def test_tool_that_crashes_or_prints_half_of_its_result_gives_no_sample(small_stack: SmallStack) -> None:
    half = f"printf %s '{RESULT[:-3]}'"
    conduct = f"case $* in *crash) kill -SEGV $$ ;; *half) {half} ;; *) echo '{RESULT}' ;; esac"
    variants = [
        f"{{name: {name}, target: sim, source: base, tunables: {{do.it: {name}}}}}" for name in ("a", "crash", "half")
    ]
    run = small_stack(conduct, plan=SMALL.replace("{name: a, target: sim, source: base}", ", ".join(variants)))
    assert ended(run).startswith("done: 2 of 3 measurements failed")
    reasons = dict(Measurement.objects.values_list("boot__variant__name", "reason"))
    assert "simstack ended with status 139" in reasons["crash"]
    assert "simstack printed no result" in reasons["half"]
    assert counted(run) == 1


def freed(testbed: Testbed) -> bool:
    """Do what beat does; return whether a run may have the testbed again."""
    recovery.recover()
    return not testbed.leases.filter(released__isnull=True).exists()


def test_host_that_cannot_be_reached_any_more_is_out_of_service_until_it_answers(
    testbed: Testbed, hosts: LabHosts, tmp_path: Path
) -> None:
    lab_services.register(testbed.name, impatient(hosts.lab, tmp_path / "inventory.yml"))
    run = services.submit(REAL, testbed.name)
    hosts.hold_sample(run)
    with unplugged(hosts.lab.namespace("left")):
        assert ended(run).startswith("failed: all 1 measurements failed")
        assert "the lab could not be restored" in run.reason
        assert not freed(testbed)
    wait_for(lambda: freed(testbed), "the testbed to be restored")
    assert counted(run) == 0


def test_host_that_hangs_in_a_sample_is_switched_off_and_on_for_the_next_boot(
    testbed: Testbed, hosts: LabHosts, tmp_path: Path
) -> None:
    switch, left = tmp_path / "switch", hosts.lab.namespace("left")
    switch.write_text(
        f"#!/bin/sh\nkill -KILL $(ip netns pids {left})\n"
        f"ip netns exec {left} /usr/sbin/sshd -f {hosts.lab.state}/sshd-left.conf -o PidFile=none\n"
    )
    switch.chmod(0o755)
    inventory = impatient(hosts.lab, tmp_path / "inventory.yml", left={"boot_command": [str(switch)]})
    lab_services.register(testbed.name, inventory)
    run = services.submit(TWICE, testbed.name)
    hosts.hold_sample(run)
    for pid in ssh_servers(left):
        os.kill(pid, signal.SIGSTOP)
    assert ended(run).startswith("done: 1 of 2 measurements failed")
    assert "could not be reached" in run.reason or "can be reached" in run.reason
    assert counted(run) == 1


def test_disk_of_a_host_that_is_full_fails_the_next_boot_with_words(
    testbed: Testbed, hosts: LabHosts, tmp_path: Path
) -> None:
    lab_services.register(testbed.name, impatient(hosts.lab, tmp_path / "inventory.yml"))
    with small_disk(hosts.lab.root, inside=ssh_servers(hosts.lab.namespace("dut"))[0]) as inside:
        run = services.submit(TWICE, testbed.name)
        hosts.hold_sample(run)
        fill(hosts.lab.root, *inside)
        hosts.release("left", "netperf")
        assert ended(run).startswith("done: 1 of 2 measurements failed; the first: not measured: it did not boot")
        assert re.search("disk full|No space left", run.reason)
    assert counted(run) == 1


def test_disk_of_the_controller_that_is_full_pauses_the_run_until_there_is_space(
    small_stack: SmallStack, hosts: LabHosts, worker: Worker, tmp_path: Path, settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    worker.kill()
    with small_disk(tmp_path / "var") as _:
        settings.PERFWEB_VAR = tmp_path / "var"
        monkeypatch.setenv("PERFWEB_VAR", str(tmp_path / "var"))
        worker.start()
        run = small_stack(HELD, plan=SMALL.replace("boots: 1", "boots: 2").replace("samples: 1", "samples: 2"))
        wait_for_state(run, RunState.RUNNING)
        wait_for(lambda: hosts.runs("dut", "sleep"), "the sample")
        fill(tmp_path / "var")
        go_on(run, hosts, RunState.PAUSED, *OVER)
        assert run.state == RunState.PAUSED
        assert run.reason.startswith(
            f"disk full: {tmp_path}/var has 0 MB free and 16 MB are needed; the run continues by itself"
        )
        tasks.recover()
        wait_for_state(run, RunState.PAUSED)
        (tmp_path / "var" / "filler").unlink()
        wait_for(lambda: freed(run.testbed), "the testbed to be restored")
        tasks.recover()
        assert ended_after_going_on(run, hosts) == "done: "
        assert counted(run) == 2
        worker.kill()


def test_clock_that_jumps_ends_no_run_and_keeps_none(
    small_stack: SmallStack, hosts: LabHosts, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = timezone.now
    run = small_stack(HELD)
    wait_for_state(run, RunState.RUNNING)
    wait_for(lambda: hosts.runs("dut", "sleep"), "the sample")
    monkeypatch.setattr(timezone, "now", lambda: true() + timedelta(hours=1))
    recovery.recover()
    assert run.losses.count() == 0
    worker.kill()
    monkeypatch.setattr(timezone, "now", lambda: true() - timedelta(hours=1))
    recover(run)
    monkeypatch.setattr(timezone, "now", true)
    worker.start()
    services.dispatch()
    assert ended_after_going_on(run, hosts) == "done: "
    assert counted(run) == 1


def test_controller_that_sleeps_longer_than_its_lease_leaves_the_run_to_who_took_it_up(
    small_stack: SmallStack, hosts: LabHosts, worker: Worker, tmp_path: Path
) -> None:
    run = small_stack(HELD)
    wait_for_state(run, RunState.RUNNING)
    wait_for(lambda: hosts.runs("dut", "sleep"), "the sample")
    worker.signal_all(signal.SIGSTOP)
    (tmp_path / "other").mkdir()
    other = Worker(tmp_path / "other")
    try:
        other.start()
        recover(run)
        services.dispatch()
        wait_for_state(run, RunState.RUNNING, *OVER)
        worker.signal_all(signal.SIGCONT)
        assert ended_after_going_on(run, hosts) == "done: "
        wait_for(lambda: b"run %d was " % run.number in worker.log.read_bytes(), "the first to see that it is late")
    finally:
        other.kill()
    assert history(run).count("interrupted") == 1
    assert counted(run) == 1


def ssh_servers(namespace: str) -> list[int]:
    """The SSH servers of a host, the one that listens first."""
    numbers = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True).stdout
    pids = map(int, numbers.split())
    return [pid for pid in pids if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").startswith("sshd")]


def impatient(lab: netlab.Lab, path: Path, **of_hosts: dict[str, object]) -> Path:
    """The inventory of the lab with a short time-out for hosts; with more variables of some of them."""
    inventory = yaml.safe_load(lab.inventory.read_text(encoding="utf-8"))
    ssh = (
        "-o ControlMaster=auto -o ControlPersist=60 -o ServerAliveInterval=1 -o ServerAliveCountMax=2 -o BatchMode=yes"
    )
    inventory["all"]["vars"] |= {"ansible_ssh_args": ssh, "ansible_timeout": 2, "min_free_mb": 1}
    for role, variables in of_hosts.items():
        inventory["all"]["children"][role]["hosts"][lab.host_name(role)] |= variables
    path.write_text(yaml.safe_dump(inventory), encoding="utf-8")
    return path


@contextmanager
def unplugged(link: str) -> Iterator[None]:
    subprocess.run(["ip", "link", "set", link, "down"], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "link", "set", link, "up"], check=True)


@contextmanager
def small_disk(directory: Path, inside: int | None = None) -> Iterator[list[str]]:
    """Mount a file system, optionally for one host alone; yield the prefix of commands that see it."""
    there = ["nsenter", "--mount", "--target", str(inside)] if inside else []
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run([*there, "mount", "-t", "tmpfs", "-o", "size=32m,mode=755", "none", directory], check=True)
    try:
        yield there
    finally:
        subprocess.run([*there, "umount", "--lazy", directory], check=True)


def fill(directory: Path, *there: str) -> None:
    """Fill the disk to the last page; dd then ends with the expected error."""
    argv = [*there, "dd", "if=/dev/zero", f"of={directory}/filler", "bs=4k", "status=none"]
    subprocess.run(argv, check=False, stderr=subprocess.DEVNULL)
