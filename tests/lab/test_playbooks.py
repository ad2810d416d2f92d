# SPDX-License-Identifier: BSD-2-Clause
"""The playbooks against a real lab: their outputs, and the state that they leave."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perfweb.measuring import tools
from perfweb.runs.catalogue import MEASURES
from playbooks.module_utils import processes
from playbooks.module_utils.gauges import UNITS
from runners.ansible import driver
from runners.ansible.driver import Listener, PlayCancelledError, PlayResult, PlayTimeoutError
from runners.labs import netlab
from runners.labs.netlab import Lab
from tests.lab.measuring import measured
from tests.waiting import wait_for

RUN = "testrun"
BUILDS = netlab.HOSTS_ROOT / "builds"
SLEEP = {"test": "sleep", "argv": ["sleep", "60"], "samples": 1}
NUMBERS = itertools.count(1)
LIMIT_SECONDS = 300
"""Max seconds of any wait, generous because a busy machine must not fail a test."""
Play = Callable[..., PlayResult]


@pytest.fixture(scope="module")
def run_id(lab: Lab) -> Iterator[str]:
    """A unique name of a run on this machine; the run is restored when all tests have ended."""
    name = f"{RUN}-{lab.name}"
    yield name
    restore(lab, name)


@pytest.fixture
def boot_id() -> str:
    """A unique name of a boot of the run."""
    return f"boot{next(NUMBERS)}"


@pytest.fixture
def play(lab: Lab, run_id: str, boot_id: str) -> Play:
    """Plays with the names of the run."""

    def _play(name: str, *, limit: float = LIMIT_SECONDS, **values: Any) -> PlayResult:
        about = {"run_id": run_id, "boot_id": boot_id, "target": "linux", "topology": "host-host", "server": "none"}
        settings = {key: values.pop(key) for key in ("cancelled", "listener") if key in values}
        return driver.play(name, inventory=lab.inventory, extra_vars={**about, **values}, timeout=limit, **settings)

    return _play


@pytest.fixture
def prepared(play: Play, lab: Lab, run_id: str) -> None:
    """Prepare the run, unless an earlier test has."""
    if not is_prepared(lab, run_id):
        play("prepare").require_ok()


@pytest.fixture
def restored(lab: Lab, run_id: str) -> None:
    """Remove what earlier tests left."""
    if is_prepared(lab, run_id):
        restore(lab, run_id)


def is_prepared(lab: Lab, run_id: str) -> bool:
    return any(lab.root.glob(f"{run_id}-*"))


def restore(lab: Lab, run_id: str) -> None:
    driver.play("restore", inventory=lab.inventory, extra_vars={"run_id": run_id}, timeout=LIMIT_SECONDS).require_ok()


def commands_on(lab: Lab, host: str) -> list[str]:
    """Return the programs that run on a host, without its SSH servers."""
    numbers = subprocess.run(["ip", "netns", "pids", lab.namespace(host)], capture_output=True, text=True, check=True)
    names = []
    for number in numbers.stdout.split():
        path = Path("/proc") / number / "comm"
        names.append(path.read_text().strip() if path.exists() else "")
    return [name for name in names if name and not name.startswith("sshd")]


def netperf(address: str, test: str) -> list[str]:
    return ["netperf", "-H", address, "-t", test, "-l", "1", "-P", "0"]


def test_a_run_on_the_kernel_from_prepare_to_restore(play: Play, lab: Lab, run_id: str) -> None:
    facts = play("prepare").require_ok().data["facts"]
    assert set(facts) == {lab.namespace(host) for host in ("left", "dut", "right")}
    dut = facts[lab.namespace("dut")]
    assert dut["group"] == "dut"
    assert dut["kernel"].startswith("Linux ")
    assert dut["congestion_control"] == "cubic"
    assert dut["links"]["data0"]["tcp-segmentation-offload"] == "on"
    allowed = subprocess.run(["unshare", "--user", "true"], capture_output=True, check=False).returncode == 0
    assert dut["sandbox"] == "bubblewrap" + ("" if allowed else ", no user namespace of its own")

    booted = play("boot", server="netserver").require_ok().data
    assert booted["commands"]["server"][-5:] == ["netserver", "-D", "-f", "-p", "12865"]
    assert commands_on(lab, "dut") == ["sh", "bwrap", "bwrap", "netserver"]

    address = lab.links("dut")[0].address.split("/")[0]
    cpus, samples = measured(play, ["nproc"], netperf(address, "TCP_RR"), samples=2)
    assert [sample["stdout"] for sample in cpus] == ["1\n", "1\n"]
    assert [sample["rc"] for sample in samples] == [0, 0]
    assert all(float(sample["stdout"].split()[5]) > 0 for sample in samples)

    counters = play("collect").require_ok().data["counters"]
    assert "TcpInSegs" in counters["nstat"]

    stopped = play("stop").require_ok().data
    assert stopped["crashed"] is False
    assert stopped["exit_status"] == 128 + signal.SIGTERM
    assert "Starting netserver" in stopped["log"]

    play("restore").require_ok()
    assert commands_on(lab, "dut") == []
    assert not list(lab.root.glob(f"{run_id}-*"))
    addresses = subprocess.run(
        ["ip", "-n", lab.namespace("dut"), "-br", "-4", "address"], capture_output=True, text=True
    )
    assert "data0" not in addresses.stdout


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize(("server", "family"), [("iperf3", "address"), ("iperf3-6", "address6")])
def test_the_kernel_as_a_router_with_the_server_behind_it(play: Play, lab: Lab, server: str, family: str) -> None:
    play("boot", server=server, topology="host-router-host").require_ok()
    assert "iperf3" in commands_on(lab, "right")
    assert "iperf3" not in commands_on(lab, "dut")
    address = getattr(lab.links("right")[0], family).split("/")[0]
    client = ["iperf3", "-c", address, "-t", "1", "-J"]
    (good,), (bad,) = measured(play, client, ["false"])
    assert (good["rc"], bad["rc"]) == (0, 1)
    assert '"bits_per_second"' in good["stdout"]
    assert play("stop").require_ok().data["ended"]["server"]["crashed"] is False


@pytest.mark.usefixtures("prepared")
def test_a_command_that_takes_too_long_is_killed_and_its_output_is_kept(play: Play, lab: Lab) -> None:
    slow = ["sh", "-c", "echo first; echo second >&2; sleep 60 & sleep 60"]
    ((sample,),) = measured(play, slow, timeout=5)
    assert sample["timed_out"] is True
    assert sample["rc"] == -signal.SIGKILL
    assert (sample["stdout"], sample["stderr"]) == ("first\n", "second\n")
    assert commands_on(lab, "left") == []


@pytest.mark.usefixtures("prepared")
def test_a_command_that_is_sent_away_comes_again(play: Play, lab: Lab) -> None:
    answers = ["busy", "42", "42"] * 2

    def answer(server: socket.socket) -> None:
        for word in answers:
            client, _ = server.accept()
            with client:
                client.sendall(f"{word}\n".encode())

    with socket.create_server((f"10.{lab.net}.0.1", 0)) as server:
        threading.Thread(target=answer, args=[server], daemon=True).start()
        there = f"/dev/tcp/10.{lab.net}.0.1/{server.getsockname()[1]}"
        command = ["bash", "-c", f"read word <{there}; echo $word; [ $word = 42 ]"]
        first, second = measured(play, command, command, samples=2, order={"busy": ["busy"], "patience": 60})
    samples = first + second
    assert [(sample["rc"], sample["stdout"], sample["refused"]) for sample in samples] == [
        (0, "42\n", 1),
        (0, "42\n", 0),
    ] * 2


def burner_on(lab: Lab, cpu: int) -> subprocess.Popen[bytes]:
    """Run a busy loop on a CPU of the lab's machine, with a higher priority than others."""
    argv = ["taskset", "-c", str(cpu), "nice", "-n", "-10", "sh", "-c", "while :; do :; done"]
    return subprocess.Popen(argv, start_new_session=True)


@pytest.mark.usefixtures("prepared")
def test_a_program_that_takes_the_cpu_of_the_samples_fires_the_gate_unless_it_is_the_runs(
    play: Play, lab: Lab, run_id: str, boot_id: str
) -> None:
    ((pinned,),) = measured(play, ["grep", "Cpus_allowed_list", "/proc/self/status"])
    burner = burner_on(lab, int(pinned["stdout"].split()[1]))
    # A tenth of a CPU: other load of the machine takes its part of the busy loop's CPU.
    rule: dict[str, Any] = {"samples": 2, "timeout": 30, "order": {"voids_allowed": 1}, "limits": {"foreign": 0.1}}
    try:
        (foreign,) = measured(play, ["sleep", "1"], **rule)
        home = lab.root / f"{run_id}-dut" / boot_id
        home.mkdir()
        found = processes.identify(burner.pid)
        assert found is not None
        processes.write_pid_file(home / "server.pid", found)
        (own,) = measured(play, ["sleep", "1"], **rule)
    finally:
        burner.kill()
        burner.wait()
    assert len(foreign) == 3, "one is taken again"
    assert all("foreign: in " in sample["void"] for sample in foreign)
    # How much CPU the busy loop gets depends on other load of the machine.
    assert max(sample["gauges"]["own"] for sample in foreign) < min(sample["gauges"]["own"] for sample in own)


@pytest.mark.usefixtures("prepared")
def test_cpus_slower_than_they_were_in_this_run_fire_the_gate_that_tries_them(
    play: Play, lab: Lab, run_id: str
) -> None:
    limits = {"slowdown": 0.9}
    ((usual,),) = measured(play, ["true"], limits=limits)
    assert 0 <= usual["gauges"]["slowdown"] < 1
    (best,) = lab.root.glob(f"{run_id}-*/best-cpu-speed")
    best.write_text(f"{1000 * float(best.read_text())}\n")
    (slow,) = measured(play, ["true"], order={"voids_allowed": 1}, limits=limits)
    assert len(slow) == 2, "one is taken again"
    assert all("slowdown: in " in sample["void"] for sample in slow)


@pytest.mark.usefixtures("prepared")
def test_gauges_come_with_every_sample_in_known_units(play: Play, lab: Lab) -> None:
    gauges = [sample["gauges"] for samples in measured(play, ["true"], ["false"], samples=2) for sample in samples]
    assert len(gauges) == 4
    for found in gauges:
        assert found.keys() <= UNITS.keys()
        assert found["congestion_control"] == "cubic"
        assert found["interface_errors"] == 0
        assert found["seconds"] > 0


@pytest.mark.usefixtures("prepared")
def test_time_of_a_tool_in_its_sandbox_is_the_runs(play: Play) -> None:
    burn = ["/usr/bin/python3", "-S", "-c", "import time\nwhile time.process_time() < 0.5: pass"]
    (samples,) = measured(play, burn, samples=3, timeout=30)
    used = [sample["gauges"]["own"] * sample["gauges"]["seconds"] for sample in samples]
    assert all(seconds >= 0.4 for seconds in used), used


def test_counters_of_a_driver_are_those_that_ethtool_shows(lab: Lab) -> None:
    inside = ["ip", "netns", "exec", lab.namespace("left")]
    shown = subprocess.run([*inside, "ethtool", "-S", "data0"], capture_output=True, text=True, check=True).stdout
    names = [line.rpartition(":")[0].strip() for line in shown.splitlines()[1:]]
    script = "from playbooks.module_utils.ethtool import driver_counters; print(*driver_counters('data0'), sep='\\n')"
    own = subprocess.run([*inside, sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert names
    assert own.splitlines() == names


@pytest.mark.usefixtures("prepared")
def test_a_server_that_stays_busy_is_not_polled_forever(play: Play) -> None:
    busy = ["sh", "-c", "echo busy; exit 1"]
    ((patient,),) = measured(play, busy, order={"busy": ["busy"], "patience": 5})
    assert (patient["rc"], patient["stdout"]) == (1, "busy\n")
    assert patient["refused"] >= 1
    ((impatient,),) = measured(play, busy, order={"busy": ["busy"]})
    assert (impatient["rc"], impatient["refused"]) == (1, 0)


@pytest.mark.usefixtures("prepared")
def test_iperf3_comes_again_when_its_server_has_another_client(play: Play, lab: Lab) -> None:
    play("boot", server="iperf3").require_ok()
    address = lab.links("dut")[0].address.split("/")[0]
    measure = next(measure for measure in MEASURES if measure.name == "iperf3.1")
    other = ["setsid", "--fork", "iperf3", "-c", address, "-t", "2"]
    order = {"busy": list(tools.busy(measure)), "patience": 60}
    _, (sample,) = measured(play, other, tools.command(measure, address, 1, ""), order=order)
    assert tools.parse(measure, sample["stdout"])[0].value > 0
    play("stop").require_ok()


# Serves one client of iperf3, from the moment when it has refused one.
LATE_SERVER = """
resets() { nstat -asz TcpOutRsts; }
before=$(resets)
while [ "$(resets)" = "$before" ]; do sleep 0.1; done
exec iperf3 -s -1
"""


@pytest.mark.usefixtures("prepared")
def test_iperf3_comes_again_while_its_server_opens_a_new_socket(play: Play, lab: Lab) -> None:
    play("boot", server="none").require_ok()
    address = lab.links("dut")[0].address.split("/")[0]
    measure = next(measure for measure in MEASURES if measure.name == "iperf3.1")
    order = {"busy": list(tools.busy(measure)), "patience": 60}
    with subprocess.Popen(["ip", "netns", "exec", lab.namespace("dut"), "sh", "-c", LATE_SERVER]) as server:
        ((sample,),) = measured(play, tools.command(measure, address, 1, ""), order=order)
        server.kill()
    assert tools.parse(measure, sample["stdout"])[0].value > 0
    assert sample["refused"] >= 1
    play("stop").require_ok()


@pytest.mark.usefixtures("prepared")
def test_output_that_is_no_text_and_programs_that_do_not_exist_are_reported(play: Play) -> None:
    words = ["printf", "%s ", "1", "false", "1e3", "", "\u0394\U0001f600"]
    (raw,), (quoted,), (missing,) = measured(play, ["printf", r"\377{{ x }}\n"], words, ["/no/such/program"])
    assert raw["stdout"] == "\\xff{{ x }}\n"
    assert quoted["stdout"] == "1 false 1e3  \u0394\U0001f600 "
    assert missing["rc"] == 127
    assert "/no/such/program" in missing["stderr"]


@pytest.mark.usefixtures("prepared")
def test_each_sample_is_reported_at_once_and_nothing_follows_a_failed_one(play: Play, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    there: list[tuple[str, int, bool]] = []
    journal.write_text("{}\n")
    measurements = [
        {"test": name, "argv": argv, "samples": 2}
        for name, argv in (("good", ["true"]), ("bad", ["false"]), ("never", ["true"]))
    ]

    def on_report(entry: dict[str, Any]) -> None:
        there.append((entry["test"], entry["left"], "sample" in entry))

    values = {"measurements": measurements, "timeout": 5, "listener": Listener(report=on_report, journal=journal)}
    play("measure", **values).require_ok()
    assert there == [
        ("good", 2, False), ("good", 1, True), ("good", 0, True), ("bad", 2, False), ("bad", 1, True), ("bad", 0, True),
    ]  # fmt: skip
    assert len(journal.read_text().splitlines()) == 7


@pytest.mark.usefixtures("prepared")
def test_what_a_listener_raises_ends_the_play(play: Play, lab: Lab) -> None:
    def on_report(entry: dict[str, Any]) -> None:
        raise KeyError(entry["test"])

    with pytest.raises(KeyError, match="sleep"):
        play("measure", measurements=[SLEEP], timeout=70, listener=Listener(report=on_report))
    wait_for(lambda: commands_on(lab, "left") == [], "the end of all commands")


@pytest.mark.usefixtures("prepared")
def test_cancelling_a_play_leaves_no_process(play: Play, lab: Lab, var: Path) -> None:
    with pytest.raises(PlayCancelledError, match="measure was cancelled"):
        play(
            "measure",
            measurements=[SLEEP],
            timeout=70,
            cancelled=lambda: "sleep" in commands_on(lab, "left"),
        )
    wait_for(lambda: commands_on(lab, "left") == [], "the end of all commands")
    assert list((var / "plays").iterdir()) == []


@pytest.mark.usefixtures("prepared")
def test_a_play_that_takes_too_long_is_ended_and_leaves_no_process(lab: Lab, run_id: str) -> None:
    values = {"run_id": run_id, "boot_id": "b", "measurements": [SLEEP], "timeout": 70}
    with pytest.raises(PlayTimeoutError, match="longer than 4 s"):
        driver.play("measure", inventory=lab.inventory, extra_vars=values, timeout=4)
    wait_for(lambda: commands_on(lab, "left") == [], "the end of all commands")


@pytest.mark.usefixtures("prepared")
def test_a_controller_that_is_killed_leaves_no_process(play: Play, lab: Lab, run_id: str, var: Path) -> None:
    program = (
        "from pathlib import Path; from runners.ansible import driver;"
        f"driver.play('measure', inventory=Path({str(lab.inventory)!r}), timeout=80, extra_vars=dict("
        f"run_id={run_id!r}, boot_id='b', measurements=[{SLEEP!r}], timeout=70))"
    )
    controller = subprocess.Popen([sys.executable, "-c", program], cwd=driver.ROOT)
    wait_for(lambda: "sleep" in commands_on(lab, "left"), "a client")
    words = ["ps", "-o", "pid=", "--ppid", str(controller.pid)]
    children = [processes.identify(int(pid)) for pid in subprocess.check_output(words, text=True).split()]
    assert len(children) == 2  # the Ansible server, and its client
    controller.kill()
    controller.wait()
    wait_for(lambda: commands_on(lab, "left") == [], "the end of all commands")
    wait_for(lambda: not any(child and child.alive() for child in children), "the end of the play")
    # The next play removes what the killed one could not.
    assert len(list((var / "plays").iterdir())) == 1
    play("stop").require_ok()
    assert list((var / "plays").iterdir()) == []


@pytest.mark.usefixtures("restored")
def test_restore_ends_what_a_crashed_run_has_left(play: Play, lab: Lab, run_id: str) -> None:
    play("prepare").require_ok()
    play("boot", server="netserver").require_ok()
    restored = play("restore").require_ok().data
    assert [Path(path).name for path in restored["stopped"]] == ["server.pid"]
    assert commands_on(lab, "dut") == []
    assert play("restore").require_ok().data["stopped"] == []


@pytest.mark.usefixtures("prepared")
def test_a_server_that_dies_is_reported_as_crashed(play: Play, lab: Lab, run_id: str, boot_id: str) -> None:
    play("boot", server="netserver").require_ok()
    server = processes.running(lab.root / f"{run_id}-dut" / boot_id / "server.pid")
    assert server is not None
    processes.signal_process(server, signal.SIGSEGV)
    wait_for(lambda: not server.alive(), "the end of the server")
    stopped = play("stop").require_ok().data
    assert stopped["crashed"] is True
    assert stopped["exit_status"] == 128 + signal.SIGSEGV


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("prepare", {"run_id": "../etc"}, "is none: use letters"),
        ("prepare", {"stack_uid": 4294967295}, "may not be called with uid=4294967295 on"),
        ("prepare", {"stack_uid": 0}, "may not be called with uid=0 on"),
        ("boot", {"target": "beos"}, "value of target must be one of: stack, linux"),
        ("boot", {"tunables": {"link.mtu; reboot": "1500"}}, "whose name is not of letters, digits, dots"),
        ("measure", {"measurements": [{**SLEEP, "argv": []}], "timeout": 1}, "an empty command"),
        ("measure", {"measurements": [{"test": "x", "argv": ["true"]}], "timeout": 1}, "arguments: samples"),
    ],
)
def test_bad_values_are_refused_with_a_reason(play: Play, name: str, values: dict[str, Any], reason: str) -> None:
    result = play(name, **values)
    assert not result.ok
    assert reason in "; ".join(map(str, result.failures))


def test_a_host_that_does_not_answer_is_named(lab: Lab, tmp_path: Path, run_id: str) -> None:
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(lab.inventory.read_text().replace(lab.management("dut"), f"10.{lab.net}.0.99"))
    result = driver.play("restore", inventory=inventory, extra_vars={"run_id": run_id}, timeout=LIMIT_SECONDS)
    assert not result.ok
    assert [failure.host for failure in result.failures] == [lab.namespace("dut")]
    assert "ssh" in result.failures[0].message.lower()


def test_a_playbook_or_an_inventory_that_is_not_there_is_named(lab: Lab, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nonsense\.yml"):
        driver.play("nonsense", inventory=lab.inventory, extra_vars={}, timeout=1)
    with pytest.raises(FileNotFoundError, match="raise the lab first"):
        driver.play("restore", inventory=tmp_path / "none.yml", extra_vars={}, timeout=1)


def test_events_name_host_and_task(play: Play, lab: Lab) -> None:
    events: list[driver.Event] = []
    play("restore", listener=Listener(event=events.append)).require_ok()
    seen = {(event.what, event.host, event.task) for event in events}
    assert ("started", lab.namespace("dut"), "Return the data links") in seen
    assert ("ok", lab.namespace("dut"), "Return the data links") in seen


def archive(path: Path, meson_build: str) -> Path:
    """A source archive with a meson.build and one program."""
    source = path / "stack"
    source.mkdir(parents=True)
    (source / "meson.build").write_text(f"project('stack', 'c')\n{meson_build}\n")
    (source / "hello.c").write_text("int main(void) { return (0); }\n")
    with tarfile.open(path / "stack.tar.gz", "w:gz") as tar:
        tar.add(source, "stack")
    return path / "stack.tar.gz"


@pytest.fixture
def build_key(lab: Lab) -> Iterator[str]:
    """The name of a build that does not exist yet, and that is removed afterwards."""
    key = f"test-{lab.name}-{os.urandom(4).hex()}"
    yield key
    subprocess.run(["rm", "-rf", *(str(BUILDS / name) for name in (key, f"{key}-other"))], check=True)


def builds_of(key: str) -> list[str]:
    return sorted(path.name for path in BUILDS.glob(f"{key}*"))


def test_a_build_is_made_once(play: Play, tmp_path: Path, build_key: str) -> None:
    source = archive(tmp_path, "executable('bootstack', 'hello.c', install: true)")
    first = play(
        "build", build_key=build_key, source_archive=str(source), meson_options=["-Db_ndebug=true"]
    ).require_ok()
    assert (Path(first.data["prefix"]) / "bin" / "bootstack").exists()
    assert "-Db_ndebug=true" in first.data["build_log"]
    assert first.data["cached"] is False
    second = play("build", build_key=build_key, source_archive=str(source), meson_options=[]).require_ok()
    assert second.data["cached"] is True
    assert second.data["build_log"] == first.data["build_log"]
    assert builds_of(build_key) == [build_key]


def test_a_build_of_another_compiler_is_made_anew(play: Play, tmp_path: Path, build_key: str) -> None:
    source = archive(tmp_path, "executable('bootstack', 'hello.c', install: true)")
    given = {"build_key": build_key, "source_archive": str(source), "meson_options": []}
    prefix = Path(play("build", **given).require_ok().data["prefix"])
    versions = (prefix / "build.toolchain").read_text()
    assert subprocess.check_output(["cc", "--version"], text=True).splitlines()[0] in versions
    for change in (lambda path: path.write_text(f"{versions}x"), Path.unlink):
        change(prefix / "build.toolchain")
        assert play("build", **given).require_ok().data["cached"] is False
        assert (prefix / "build.toolchain").read_text() == versions
    assert play("build", **given).require_ok().data["cached"] is True
    assert builds_of(build_key) == [build_key]


def test_a_build_that_fails_reports_the_reason_and_leaves_no_files(play: Play, tmp_path: Path, build_key: str) -> None:
    source = archive(tmp_path, "executable('bootstack', 'missing.c', install: true)")
    result = play("build", build_key=build_key, source_archive=str(source))
    assert not result.ok
    assert "missing.c" in result.failures[0].message
    assert builds_of(build_key) == []


def test_an_interrupted_build_has_held_up_no_other_and_leaves_nothing_that_looks_complete(
    play: Play, lab: Lab, tmp_path: Path, build_key: str
) -> None:
    slow = archive(tmp_path / "slow", "run_command('sleep', '600')")
    other = archive(tmp_path / "other", "executable('bootstack', 'hello.c', install: true)")

    def goes_on() -> bool:
        # Its processes are in a separate network; only its supervisor is on the host.
        return any("bwrap" in commands_on(lab, host) for host in ("left", "dut", "right"))

    def is_overtaken() -> bool:
        built = goes_on() and play("build", build_key=f"{build_key}-other", source_archive=str(other)).ok
        return built and goes_on()

    with pytest.raises(PlayCancelledError):
        play("build", build_key=build_key, source_archive=str(slow), cancelled=is_overtaken)
    wait_for(lambda: not any(commands_on(lab, host) for host in ("left", "dut", "right")), "the end of all commands")
    assert builds_of(build_key) == [f"{build_key}-other"]


def programs(prefix: Path, **scripts: str) -> None:
    """A build of shell scripts, by name."""
    (prefix / "bin").mkdir(parents=True)
    for name, script in scripts.items():
        path = prefix / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


def test_a_stack_that_does_not_come_up_fails_the_boot_with_its_last_words(
    play: Play, build_key: str, prepared: None
) -> None:
    programs(BUILDS / build_key, bootstack='echo "$2: line 1: unknown name net.isr.nonsense" >&2; exit 2')
    result = play("boot", target="stack", prefix=str(BUILDS / build_key), tunables={"net.isr.nonsense": "1"})
    assert not result.ok
    assert "ended with status 2" in result.failures[0].message
    assert "unknown name net.isr.nonsense" in result.failures[0].message


def test_a_stack_that_is_not_ready_in_time_is_left_for_the_debugger_until_it_is_stopped(
    play: Play, build_key: str, prepared: None
) -> None:
    programs(BUILDS / build_key, bootstack="echo begun; exec sleep 60", stackctl="echo asked; exec sleep 60")
    result = play("boot", target="stack", prefix=str(BUILDS / build_key), boot_timeout=5)
    assert "stack was not ready after 5 s; its last lines:\nbegun" in result.failures[0].message
    debugger = play("debugger", prefix=str(BUILDS / build_key)).require_ok().data["debugger"]
    assert "ctl.sock ps\nasked\nNo response within 3 s." in debugger
    assert "comm: sleep\n" in debugger
    stopped = play("stop").require_ok().data
    assert (stopped["log"], stopped["exit_status"]) == ("begun\n", 128 + signal.SIGTERM)


@pytest.mark.usefixtures("restored")
def test_a_host_is_checked_before_a_run(play: Play, lab: Lab, run_id: str) -> None:
    """The lab is fit after its start, and unfit while another run has left a process, or without disk space."""
    fit = play("health").require_ok().data["health"]
    assert {host: found["problems"] for host, found in fit.items()} == {
        lab.namespace(host): [] for host in ("left", "dut", "right")
    }
    assert fit[lab.namespace("dut")]["facts"]["free_mb"][str(lab.root)] > 0
    play("prepare").require_ok()
    play("boot", server="netserver").require_ok()
    left = play("health").require_ok().data["health"]
    assert left[lab.namespace("dut")]["problems"] == [f"{run_id}-dut has left something running"]
    play("restore").require_ok()
    full = play("health", min_free_mb=10**9).require_ok().data["health"]
    assert all("1000000000 are needed" in found["problems"][0] for found in full.values())
