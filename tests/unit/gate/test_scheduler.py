# SPDX-License-Identifier: BSD-2-Clause
"""The scheduler of jobs: slots, order, failures, and an interrupt that leaves nothing running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from playbooks.module_utils import processes
from tests.gate.scheduler import Argv, Job, Scheduler, longest_chain_first, run_jobs

ROOT = Path(__file__).resolve().parents[3]


def shell(script: str, *words: str) -> Argv:
    return ("sh", "-c", script, "sh", *words)


def meet(number: int, folder: Path) -> tuple[Argv, ...]:
    """Commands of a job that ends only once `number` jobs of this kind have begun."""
    script = 'touch "$1/$$"; until [ "$(ls "$1" | wc -l)" -ge "$2" ]; do sleep 0.01; done'
    folder.mkdir(exist_ok=True)
    return (shell(script, str(folder), str(number)),)


def alone(folder: Path) -> tuple[Argv, ...]:
    """Commands of a job that fails if another of this kind runs meanwhile."""
    return (shell('mkdir "$1/taken" && sleep 0.05 && rmdir "$1/taken"', str(folder)),)


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def scheduler(tmp_path: Path, lines: list[str]) -> Scheduler:
    return Scheduler(2, 1, tmp_path / "log", lines.append, grace=20)


def test_jobs_run_on_all_slots_at_once(scheduler: Scheduler, tmp_path: Path) -> None:
    jobs = [Job(name, meet(2, tmp_path / "met")) for name in ("a", "b")]
    assert all(outcome.passed for outcome in run_jobs(scheduler, jobs))


def test_a_light_job_needs_no_slot(scheduler: Scheduler, tmp_path: Path) -> None:
    jobs = [Job(name, meet(3, tmp_path / "met"), cpus=name != "light") for name in ("a", "b", "light")]
    assert all(outcome.passed for outcome in run_jobs(scheduler, jobs))


def test_the_end_of_each_of_many_jobs_is_noticed_at_once(tmp_path: Path) -> None:
    scheduler = Scheduler(2, 38, tmp_path / "log", list[str]().append)
    second = meet(40, tmp_path / "met")
    jobs = [Job(str(number), (("true",), *second), cpus=number < 2) for number in range(40)]
    assert all(outcome.passed for outcome in run_jobs(scheduler, jobs))


@pytest.mark.parametrize("cpus", [2, 9])
def test_a_job_that_needs_all_slots_or_more_runs_alone(scheduler: Scheduler, tmp_path: Path, cpus: int) -> None:
    jobs = [Job(name, alone(tmp_path), cpus=cpus) for name in ("a", "b", "c")]
    assert all(outcome.passed for outcome in run_jobs(scheduler, jobs))


def test_light_jobs_have_a_limit_of_their_own(scheduler: Scheduler, tmp_path: Path) -> None:
    jobs = [Job(name, alone(tmp_path), cpus=0) for name in ("a", "b", "c")]
    assert all(outcome.passed for outcome in run_jobs(scheduler, jobs))


def test_a_job_starts_after_those_that_it_names_even_if_they_failed(scheduler: Scheduler, tmp_path: Path) -> None:
    jobs = [
        Job("second", (shell('test -e "$1"', str(tmp_path / "made")),), after=("first", "not in this run")),
        Job("first", (shell('touch "$1"; exit 4', str(tmp_path / "made")),)),
    ]
    outcomes = run_jobs(scheduler, jobs)
    assert [(outcome.job.name, outcome.status) for outcome in outcomes] == [("first", 4), ("second", 0)]


def test_jobs_that_wait_for_each_other_are_refused(scheduler: Scheduler) -> None:
    jobs = [Job("a", (("true",),), after=("b",)), Job("b", (("true",),), after=("a",))]
    with pytest.raises(ValueError, match="jobs that wait for each other: a, b"):
        run_jobs(scheduler, jobs)


def test_the_longest_chain_starts_first() -> None:
    jobs = [
        Job("short", (), weight=2),
        Job("long", (), weight=5),
        Job("leads", (), weight=1),
        Job("last", (), weight=4, after=("middle", "not in this run")),
        Job("middle", (), weight=3, after=("leads",)),
        Job("equal", (), weight=5),
    ]
    names = [job.name for job in longest_chain_first(jobs)]
    assert names == ["leads", "middle", "long", "equal", "last", "short"]


def test_a_job_ends_with_its_first_failure_and_is_cleaned_up(scheduler: Scheduler, lines: list[str]) -> None:
    steps = (shell("echo one; echo error >&2"), shell("exit 3"), shell("echo never"))
    job = Job("job", steps, cleanup=(shell("echo cleaned $OF"),), environment={"OF": "up"})
    [outcome] = run_jobs(scheduler, [job])
    assert outcome.status == 3
    text = outcome.log.read_text()
    assert "one\nerror\n" in text
    assert "\nnever" not in text
    assert text.endswith("cleaned up\n")
    assert lines[:2] == ["job: started", "job: FAILED with status 3 in 0 s; 0 waiting"]
    assert lines[2].startswith("job: end of its output\n")
    assert lines[2].endswith("cleaned up")


def test_a_job_that_hangs_is_interrupted_cleaned_up_and_has_failed(scheduler: Scheduler) -> None:
    scheduler.limit = 0.5
    hang = shell('trap "echo interrupted while waiting; exit 1" INT; while :; do sleep 0.01; done')
    [outcome] = run_jobs(scheduler, [Job("job", (hang, ("echo", "never")), cleanup=(("echo", "cleaned"),))])
    assert outcome.status == 124
    text = outcome.log.read_text()
    assert "interrupted while waiting\n" in text
    assert "not ended after 0.5 s: interrupted" in text
    assert "\nnever" not in text
    assert text.endswith("cleaned\n")


def test_a_command_that_is_not_there_fails_its_job_alone(scheduler: Scheduler) -> None:
    outcomes = run_jobs(scheduler, [Job("absent", (("/nowhere/program",),)), Job("present", (("true",),))])
    assert {outcome.job.name: outcome.status for outcome in outcomes} == {"absent": 127, "present": 0}
    assert "/nowhere/program: No such file or directory" in scheduler.logs.joinpath("absent.log").read_text()


def test_a_command_that_a_signal_ends_has_the_status_of_a_shell(scheduler: Scheduler) -> None:
    [outcome] = run_jobs(scheduler, [Job("killed", (shell("kill -KILL $$"),))])
    assert outcome.status == 137


def test_a_job_has_the_cpu_seconds_of_its_commands_and_their_children(scheduler: Scheduler) -> None:
    burn = "import os\nwhile sum(os.times()[:2]) < 0.2: pass"
    child = (sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])")
    [outcome] = run_jobs(scheduler, [Job("job", (child, (sys.executable, "-c", burn)))])
    assert outcome.cpu_seconds >= 0.4


SUPERVISED = """\
import sys
from pathlib import Path
from tests.gate.scheduler import Job, Scheduler, run_jobs
folder = Path(sys.argv[1])
polite = f'trap "echo tidied; exit 0" INT; sleep 600 & echo $! >{folder}/polite.new; mv {folder}/polite.new {folder}/polite; wait'
stubborn = f'trap "" INT; sleep 600 & echo $! >{folder}/stubborn.new; mv {folder}/stubborn.new {folder}/stubborn; wait'
clean = ("sh", "-c", f"echo cleaned >>{folder}/cleaned")
jobs = [Job(name, (("sh", "-c", script),), cleanup=(clean,)) for name, script in {"p": polite, "s": stubborn}.items()]
try:
    run_jobs(Scheduler(2, 1, folder / "log", print, grace=1), [*jobs, Job("never", (("touch", f"{folder}/never"),))])
except KeyboardInterrupt:
    sys.exit(130)
"""  # noqa: E501


def wait_for_number(path: Path) -> processes.Process:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path.name}"
        time.sleep(0.01)
    found = processes.identify(int(path.read_text()))
    assert found is not None
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_everything_and_prints_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """Also commands that ignore the signal, and background processes; later signals change nothing."""
    argv = ["env", "--default-signal=INT", sys.executable, "-c", SUPERVISED, str(tmp_path)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as supervisor:
        children = [wait_for_number(tmp_path / name) for name in ("polite", "stubborn")]
        os.kill(supervisor.pid, number)
        os.kill(supervisor.pid, number)
        output, _ = supervisor.communicate(timeout=60)
    assert supervisor.returncode == 130
    assert output == "p: started\ns: started\n"
    assert "tidied" in (tmp_path / "log" / "p.log").read_text()
    assert (tmp_path / "cleaned").read_text() == "cleaned\n" * 2
    assert not any(child.alive() for child in children)
    assert not (tmp_path / "never").exists()
