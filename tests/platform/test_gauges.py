# SPDX-License-Identifier: BSD-2-Clause
"""Gauges of this machine: CPU time is attributed to processes, and missing gauges are left out."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from playbooks.module_utils import gauges
from playbooks.module_utils.ethtool import driver_counters, pause_frames
from playbooks.module_utils.gauges import UNITS, Look, Observer, Usage, between, spent

BURN = "import time\nbegin = time.process_time()\nwhile time.process_time() < begin + 0.5: pass\n"
IN_CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', {BURN!r}])\n"
WRITE_PID = "import os, pathlib, sys, time\npathlib.Path(sys.argv[1]).write_text(str(os.getpid()))\n"
LINGER = "pathlib.Path(sys.argv[2]).write_text('burnt')\ntime.sleep(60)\n"


class Burner:
    """A program of another user that uses half a second of CPU on request, and then sleeps."""

    def __init__(self, folder: Path, work: str) -> None:
        self.pid_file, self.go, self.done = folder / "pid", folder / "go", folder / "done"
        program = folder / "burner"
        program.symlink_to(Path(sys.executable).resolve())
        wait = f"while not pathlib.Path({str(self.go)!r}).exists(): time.sleep(0.01)\n"
        script = WRITE_PID + wait + work + LINGER
        subprocess.run(
            ["setsid", "--fork", program, "-S", "-c", script, self.pid_file, self.done],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        wait_for_text(self.pid_file)
        self.pid = int(self.pid_file.read_text())

    def burn(self) -> None:
        self.go.touch()
        wait_for_text(self.done)


def wait_for_text(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline, f"{path} does not come"
        time.sleep(0.01)


@pytest.fixture(params=[BURN, IN_CHILD], ids=["itself", "child"])
def burner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Burner]:
    made = Burner(tmp_path, request.param)
    yield made
    os.kill(made.pid, signal.SIGKILL)


def used(found: dict[str, float | str], name: str) -> float:
    """Seconds of CPU."""
    return float(found[name]) * float(found["seconds"])


def test_time_of_another_process_and_of_its_children_that_ended_is_foreign(burner: Burner) -> None:
    observer = Observer([], [], [], pause_frames)
    before = observer.look()
    burner.burn()
    found = between(before, observer.look())
    assert used(found, "foreign") >= 0.4
    assert used(found, "own") < 0.4
    assert found["foreign_program"]


def test_time_of_what_belongs_to_the_run_is_its_own(burner: Burner) -> None:
    observer = Observer([], [], [burner.pid], pause_frames)
    before = observer.look()
    burner.burn()
    found = between(before, observer.look())
    assert used(found, "own") >= 0.4
    assert found.get("foreign_program") != "burner"


def test_time_of_a_command_that_was_run_is_its_own() -> None:
    observer = Observer([], [], [], pause_frames)
    before = observer.look()
    subprocess.run([sys.executable, "-S", "-c", BURN], check=True)
    found = between(before, observer.look())
    assert used(found, "own") >= 0.4
    assert used(found, "busy") >= 0.4
    assert int(found["context_switches"]) > 0


def usages(*rows: tuple[int, int, int]) -> dict[int, Usage]:
    """Processes from number, parent and ticks."""
    return {number: Usage("x", parent, number, 0, ticks) for number, parent, ticks in rows}


@pytest.mark.parametrize(
    ("before", "after", "ticks"),
    [
        (usages((1, 0, 10), (2, 1, 5)), usages((1, 0, 10), (2, 1, 8)), {1: 0, 2: 3}),
        (usages((1, 0, 10)), usages((1, 0, 10), (2, 1, 8)), {1: 0, 2: 8}),
        # A child with a past ends after four more ticks; a child of that child, too.
        (usages((1, 0, 10), (2, 1, 50)), usages((1, 0, 64)), {1: 4}),
        (usages((1, 0, 10), (2, 1, 50), (3, 2, 7)), usages((1, 0, 71)), {1: 4}),
        # It was not reaped: what others have used is not less for that.
        (usages((1, 0, 10), (2, 1, 50), (4, 0, 1)), usages((1, 0, 12), (4, 0, 6)), {1: 0, 4: 5}),
    ],
)
def test_what_ended_in_between_is_counted_once(
    before: dict[int, Usage], after: dict[int, Usage], ticks: dict[int, int]
) -> None:
    assert spent(before, after) == ticks


def test_only_what_happens_on_the_cpus_of_the_run_counts() -> None:
    """Two CPUs, the run is pinned to the second: half a second of it is stolen, and a foreign process has a fifth of
    it.
    """
    ticks = os.sysconf("SC_CLK_TCK")
    idle = [0, 0, 0, 7, 0, 0, 0, 0]
    busy, stolen = [ticks, 0, 0, 7, 0, 0, 0, 0], [ticks // 2, 0, 0, 7, 0, 0, 0, ticks // 2]
    others = {5: Usage("elsewhere", 1, 5, 0, 0), 6: Usage("here", 1, 6, 1, 0)}
    later = {5: Usage("elsewhere", 1, 5, 0, ticks), 6: Usage("here", 1, 6, 1, ticks // 5)}
    before = Look(10.0, {0: idle, 1: idle}, [1], 0.0, others, {}, {})
    found = between(before, Look(11.0, {0: busy, 1: stolen}, [1], 0.3, later, {}, {}))
    assert found == {
        "seconds": 1.0, "steal": 0.5, "busy": 1.5, "own": 0.3, "foreign": 0.2, "foreign_program": "here"
    }  # fmt: skip


def test_every_gauge_has_a_unit_and_none_is_made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gauges, "CPU_DIRECTORY", str(tmp_path))
    observer = Observer(["lo", "no-such-link"], [], [], pause_frames)
    found = between(observer.look(), observer.look())
    assert found.keys() <= UNITS.keys()
    assert {"steal", "foreign", "load", "interrupts", "retransmits", "interface_errors"} <= found.keys()
    assert not {"frequency", "throttles", "pause_frames", "slowdown"} & found.keys()
    assert 0 <= float(found["steal"]) <= 1


def test_frequency_is_that_of_the_cpus_in_question_and_throttling_that_of_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gauges, "CPU_DIRECTORY", str(tmp_path))
    files = {"cpu0/cpufreq/scaling_cur_freq": "1000000", "cpu1/cpufreq/scaling_cur_freq": "3000000"}
    files |= {f"cpu{cpu}/thermal_throttle/core_throttle_count": "7" for cpu in (0, 1)}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    observer = Observer([], [1], [], pause_frames)
    before = observer.look()
    (tmp_path / "cpu0/thermal_throttle/core_throttle_count").write_text("9\n")
    found = between(before, observer.look())
    assert (found["frequency"], found["throttles"]) == (3000.0, 2)
    both = Observer([], [], [], pause_frames)
    assert between(both.look(), both.look())["frequency"] == 2000.0


def test_looks_report_the_slowdown_of_the_cpus() -> None:
    requested, lost = [], [0.0, 0.3, 0.1]

    def slowdown(cpus: Collection[int]) -> float:
        requested.append(set(cpus))
        return lost.pop(0)

    observer = Observer([], [], [], pause_frames, slowdown)
    looks = [observer.look() for _ in range(3)]
    assert [between(*pair)["slowdown"] for pair in itertools.pairwise(looks)] == [0.3, 0.3]
    assert requested == [os.sched_getaffinity(0)] * 3


def test_drivers_without_counters_have_none() -> None:
    assert driver_counters("lo") == {}
    assert driver_counters("no-such-link") == {}
    assert pause_frames("lo") is None


def test_pause_frames_are_those_of_all_data_links_whose_drivers_count_them() -> None:
    counts = {"data0": [3, 10], "data1": [4, 4]}
    observer = Observer([*counts, "lo"], [], [], lambda name: counts[name].pop(0) if name in counts else None)
    assert between(observer.look(), observer.look())["pause_frames"] == 7
