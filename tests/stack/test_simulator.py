# SPDX-License-Identifier: BSD-2-Clause
"""The stack on the simulated machine: reproducible runs, and the gain from more CPUs there."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stack.topology import PATIENCE, Installed, run


@pytest.fixture(scope="module")
def sim() -> Iterator[Installed]:
    """The build for the simulated machine, installed."""
    build = Installed("sim")
    yield build
    build.remove()


def simstack(sim: Installed, *options: str) -> dict[str, Any]:
    """The output of a short run."""
    result = json.loads(run(f"{sim.prefix}/bin/simstack", "--json", "--ms", "1", *options))
    assert isinstance(result, dict)
    return result


def rates(sim: Installed, *options: str) -> list[float]:
    """The rate with each number of CPUs."""
    return [float(row["rate"]) for row in simstack(sim, *options)["runs"]]


def refusal(sim: Installed, *options: str) -> str:
    """The reason why a run is refused."""
    done = subprocess.run([f"{sim.prefix}/bin/simstack", *options], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode != 0
    return done.stderr


def test_its_parts_work(sim: Installed) -> None:
    sim.meson("test", "-C", str(sim.build), "--print-errorlogs")


@pytest.mark.parametrize("workload", ["forward", "unix", "tcp", "rr", "crr", "udp"])
def test_runs_with_one_seed_are_the_same(sim: Installed, workload: str) -> None:
    options = ("--workload", workload, "--cpus", "2,3")
    first, again = (simstack(sim, *options, "--seed", "7") for _ in range(2))
    assert first == again
    assert first["simulated"] is True
    assert all(row["rate"] > 0 for row in first["runs"])
    other = simstack(sim, *options, "--seed", "8")
    assert all(a["hash"] != b["hash"] for a, b in zip(first["runs"], other["runs"], strict=True))


def test_streams_with_nothing_in_common_scale_and_giant_does_not(sim: Installed) -> None:
    one, four = rates(sim, "--cpus", "1,4")
    assert four > 3 * one
    one, four = rates(sim, "--cpus", "1,4", "--set", "debug.mpsafenet=0")
    assert four < 1.3 * one


@pytest.mark.parametrize("machine", ["generic", "server-64"])
@pytest.mark.parametrize("locking", ["pair", "socket"])
def test_unix_sockets_with_their_own_locks_share_no_line(sim: Installed, machine: str, locking: str) -> None:
    options = ("--workload", "unix", "--machine", machine, "--set", f"unix.locking={locking}", "--streams", "56")
    one, many = rates(sim, *options, "--cpus", "1,64")
    assert many > 50 * one


def test_readers_of_the_net_lock_share_no_line(sim: Installed) -> None:
    options = ("--workload", "tcp", "--set", "net.inet.tcp.input=shared-socket", "--streams", "56")
    one, many = rates(sim, *options, "--cpus", "1,64")
    assert many > 35 * one


def test_round_trips_on_many_cpus_share_no_line(sim: Installed) -> None:
    one, many = rates(sim, "--workload", "rr", "--streams", "56", "--cpus", "1,64")
    assert many > 50 * one


def test_the_locks_of_two_sockets_cost_no_more_instructions_than_one_for_all(sim: Installed) -> None:
    both, single = (
        simstack(sim, "--workload", "unix", "--cpus", "1", "--set", f"unix.locking={how}")["runs"][0]["instructions"]
        for how in ("socket", "single")
    )
    assert both < 1.02 * single


@pytest.mark.parametrize("cpus", ["2", "4"])
def test_a_queue_is_emptied_beside_a_thread_that_takes_the_net_lock_again_at_once(sim: Installed, cpus: str) -> None:
    options = ("--set", "net.isr.dispatch=deferred", "--set", "net.inet.tcp.input=exclusive")
    (rate,) = rates(sim, "--workload", "forward", "--cpus", cpus, *options)
    assert rate > 100000


def test_a_forwarded_packet_costs_the_same_with_any_number_of_interfaces(sim: Installed) -> None:
    one, many = (
        simstack(sim, "--cpus", "1", "--streams", streams)["runs"][0]["instructions"] for streams in ("1", "56")
    )
    assert many < 1.02 * one


def test_blocks_have_the_instructions_of_the_program_and_not_the_estimate(sim: Installed) -> None:
    lane = json.loads(run(f"{sim.prefix}/bin/simstack", "--lane"))["lane"]
    for row in lane:
        each = row["instructions"] / row["blocks"]
        assert 4 < each < 8, row
        assert abs(each - 5) > 0.01, row


def lost(sim: Installed, *options: str) -> tuple[float, dict[str, Any]]:
    """The rate with one number of CPUs, and the explanation of where their time goes."""
    (row,) = simstack(sim, "--explain", *options)["runs"]
    return float(row["rate"]), row["explain"]


def test_an_explained_run_is_the_same(sim: Installed) -> None:
    options = ("--workload", "unix", "--cpus", "4", "--set", "unix.locking=single")
    plain, explained = simstack(sim, *options), simstack(sim, *options, "--explain")
    shares = explained["runs"][0].pop("explain")
    assert plain == explained
    named = sum(cause["share"] for cause in shares["lost"])
    assert 0.95 < shares["code"] + shares["idle"] + named < 1.02


@pytest.mark.parametrize(
    ("options", "name", "lock", "caller"),
    [
        (("unix", "16", "unix.locking=single"), "unp_mtx", "unp", "single_rcvd kern/unp_lock_single.c:"),
        (("tcp", "16", "debug.mpsafenet=0"), "giant", "Giant", "isr_handle net/netisr.c:"),
        (("tcp", "16", "net.inet.tcp.input=giant"), "giant", "Giant", "isr_handle net/netisr.c:"),
        (("tcp", "16", "net.inet.tcp.input=exclusive"), "netlock", "net", "rx_burst_open net/rx_burst.c:"),
        (("tcp", "16", "net.inet.tcp.input=shared-socket net.lock.readers=word"), "netlock", None, "rx_burst_open"),
        (("udp", "32", "net.inet.udp.pcbtable=global"), "udp_table", None, "lookup_lock netinet/in_pcbtable.c:"),
        (("crr", "32", "kern.callout.wheels=one"), "wheels", "callout", "callout_reset kern/callout.c:"),
        (("crr", "32", "kern.ipc.listeners=one"), "soalloc()+0", "socket", "solock_at kern/solock.h:"),
        (("tcp", "64", "kern.mbuf.recycle=fifo"), "depots", "mbuf", "depot_take kern/mbuf_alloc.c:"),
        (
            ("forward", "16", "net.isr.dispatch=deferred net.isr.feedback=0"),
            "streams",
            "netisr",
            "isr_stream_put net/netisr_stream.c:",
        ),
    ],
    ids=lambda value: value[2] if isinstance(value, tuple) else value,
)
def test_the_lock_of_an_old_strategy_is_named(
    sim: Installed, options: tuple[str, str, str], name: str, lock: str | None, caller: str
) -> None:
    workload, cpus, settings = options
    words = (word for setting in settings.split() for word in ("--set", setting))
    _, shares = lost(sim, "--workload", workload, "--cpus", cpus, *words)
    first, *others = shares["lost"]
    assert (first["name"], first["lock"]) == (name, lock)
    assert first["share"] > 0.2
    assert all(first["share"] > 4 * other["share"] for other in others)
    assert first["share"] == pytest.approx(sum(first[how] for how in ("transfer", "spin", "sleep")), abs=0.001)
    assert any(site["calls"].startswith(caller) for site in first["calls"])


def test_the_gain_without_a_lock_is_predicted(sim: Installed) -> None:
    options = ("--workload", "unix", "--cpus", "8", "--set")
    rate, shares = lost(sim, *options, "unix.locking=single")
    (without,) = rates(sim, *options, "unix.locking=pair")
    assert 0.6 < without / (rate * shares["lost"][0]["gain"]) < 1.6


def test_the_table_names_what_is_waited_for(sim: Installed) -> None:
    text = run(
        f"{sim.prefix}/bin/simstack", "--workload", "unix", "--cpus", "16", "--explain", "--ms", "1",
        "--set", "unix.locking=single",
    )  # fmt: skip
    assert "% of the CPUs' time is code" in text
    assert re.search(r"^ +\d+\.\d % .* unp_mtx \(lock unp\)$", text, re.MULTILINE)
    assert re.search(r"^ +Without unp_mtx: about \d+\.\d\d times the rate\.$", text, re.MULTILINE)


def test_a_log_has_every_event(sim: Installed, tmp_path: Path) -> None:
    log = tmp_path / "log"
    simstack(sim, "--cpus", "2", "--log", str(log))
    lines = log.read_text("ascii").splitlines()
    assert all(re.fullmatch(r"\d+\.\d{3} cpu[01] thread\d+ [a-z]+", line) for line in lines)
    assert {line.split()[-1] for line in lines} >= {"create", "run", "park", "timeout", "memory"}


def test_the_table_states_that_it_is_simulated(sim: Installed) -> None:
    lines = run(f"{sim.prefix}/bin/simstack", "--cpus", "2", "--ms", "1", "--machine", "four-2025").splitlines()
    assert lines[0].startswith("simulated: forward on four-2025, seed 1")
    assert re.fullmatch(r" +2 +2 +\d+ +1\.00 .* [0-9a-f]{16}", lines[2])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--cpus", "8", "--machine", "four-2025"], "the machine four-2025 has 1 to 4 CPUs, not 8"),
        (["--cpus", "0"], "has 1 to 128 CPUs, not 0"),
        (["--cpus", "many"], "not numbers of CPUs like 1,2,4: 'many'"),
        (["--machine", "/nowhere/abacus"], "/nowhere/abacus: No such file"),
        (["--machine", "/dev/null"], "/dev/null: missing line: instruction"),
        (["--machine", "abacus"], "no machine 'abacus'"),
        (["--workload", "sleep"], "no workload 'sleep'"),
        (["--set", "net.isr.dispatch"], "not name=value: 'net.isr.dispatch'"),
        (["--set", "net.isr.dispatch=never"], "simstack: net.isr.dispatch=never: "),
        (["--set", "if.tap0.inet=10.2.0.1/24"], "use interfaces in memory"),
        (["--set", "ctl.path=/tmp/x"], "has no control socket; remove ctl.path"),
        (["--ms", "0"], "simstack: --ms: '0' is not an integer from 1 to 100000"),
        (["--log", "x"], "--log needs a single run"),
        (["there"], "unexpected argument 'there'"),
    ],
)
def test_what_cannot_be_is_explained(sim: Installed, options: list[str], reason: str) -> None:
    assert reason in refusal(sim, *options)
