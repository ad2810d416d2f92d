# SPDX-License-Identifier: BSD-2-Clause
"""Sources from an attacker, built and booted by the real playbooks: their attempts, and the results."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playbooks.module_utils import processes
from runners.ansible import driver
from runners.ansible.driver import PlayResult
from runners.labs import netlab
from runners.labs.netlab import Lab

BUILDS = netlab.HOSTS_ROOT / "builds"
GREED = Path(__file__).parent / "hostile" / "greed.py"
OWNED = Path("/tmp/owned-by-words")  # noqa: S108

MESON = """\
project('hostile', 'c')
python = find_program('python3')
message(run_command(python, files('greed.py'), 'build', check: false).stdout())
install_data('greed.py', rename: 'bootstack', install_dir: 'bin', install_mode: 'rwxr-xr-x')
install_data('targets.json', install_dir: 'bin')
install_data('stackctl', install_dir: 'bin', install_mode: 'rwxr-xr-x')
"""
STACKCTL = r"""#!/bin/sh
printf 'id: %s\n' "$(id -u)"
printf 'network: %s\n' "$(sed -n 's/: .*//p' /proc/net/dev | tr -d ' \n')"
printf 'words: \033[31m<script>alert(1)</script> {{ lookup("pipe", "touch /tmp/owned-by-words") }}\n'
"""
# The results of attempts; "its own" and "none" are harmless.
REFUSED = {
    "user": "nobody's",
    "capabilities": "none",
    "environment": "HOME,LANG,PATH",
    "devices": "none of the host",
    "key of the lab": "No such file or directory",
    "other runs": "No such file or directory",
    "passwords": "No such file or directory",
    "home of root": "nothing",
    "socket of a service": "No such file or directory",
    "management network": "Network is unreachable",
    "processes of the host": "its own",
    "signal": "No such process",
    "trace": "Operation not permitted",
    "descriptor of another process": "Operation not permitted",
    "user namespace": "Operation not permitted",
    "io_uring": "Operation not permitted",
    "socket of a hypervisor": "Address family not supported by protocol",
    "live longer": "Read-only file system",
    "write to tools": "Read-only file system",
    "mount": "refused",
    "lift limits": "refused",
    # A host of the lab sees no control groups, because `ip netns exec` mounts /sys anew, so the limit of addresses
    # applies.
    "address space": "Cannot allocate memory",
    "open files": "16384",
    "survive others when memory runs out": "no: 1000",
    "one file": "File too large",
    "fork bomb": "below 600, then Resource temporarily unavailable",
    "fill memory": "No space left on device",
}
BUILD = {
    **REFUSED,
    "environment": "CCACHE_DEPEND,CCACHE_DIR,CCACHE_TEMPDIR,HOME,LANG,PATH",
    "write to itself": "its own",
    "fill the build": "No space left on device",
}
BOOT = {**REFUSED, "write to itself": "Read-only file system", "fill its own": "No space left on device"}


class Attacker:
    """A run of hostile sources on a lab."""

    def __init__(self, lab: Lab, directory: Path) -> None:
        self.lab = lab
        self.directory = directory
        self.run_id = f"hostile-{lab.name}"
        self.keys: list[str] = []
        self.prefix = ""

    def play(self, name: str, **values: Any) -> PlayResult:
        about = {
            "run_id": self.run_id, "boot_id": "boot", "target": "stack", "topology": "host-host", "server": "none",
            "prefix": self.prefix, "server_address": "127.0.0.1",
        }  # fmt: skip
        return driver.play(name, inventory=self.lab.inventory, extra_vars={**about, **values}, timeout=600)

    def build(self, files: dict[str, str], **values: Any) -> PlayResult:
        """Build a tree of these files under a unique name."""
        key = f"hostile-{self.lab.name}-{os.urandom(4).hex()}"
        self.keys.append(key)
        tree = self.directory / key / "stack"
        tree.mkdir(parents=True)
        for name, text in files.items():
            (tree / name).write_text(text)
        archive = self.directory / f"{key}.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(tree, "stack")
        return self.play("build", build_key=key, source_archive=str(archive), **values)

    def boot(self, conduct: str) -> PlayResult:
        return self.play("boot", tunables={"hostile": conduct})

    def stop(self) -> dict[str, Any]:
        return self.play("stop").require_ok().data

    def remaining(self) -> list[str]:
        """Return the commands of processes on the device under test, without its SSH server."""
        pids = subprocess.run(
            ["ip", "netns", "pids", self.lab.namespace("dut")], capture_output=True, text=True, check=True
        ).stdout.split()
        everything = {*map(int, pids), *(process.pid for process in processes.descendants(set(map(int, pids))))}
        found = (Path(f"/proc/{pid}/comm") for pid in everything)
        names = [path.read_text().strip() for path in found if path.exists()]
        return [name for name in names if not name.startswith("sshd")]


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[processes.Process]:
    """A process of the host, like those of the service."""
    directory = tmp_path_factory.mktemp("victim")
    process = processes.spawn(["sleep", "600"], pid_file=directory / "victim.pid", log=directory / "log")
    yield process
    processes.stop(directory / "victim.pid", grace=0)


@pytest.fixture(scope="module")
def attacker(
    lab: Lab, victim: processes.Process, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Attacker, str]]:
    """The built hostile sources, with the log of the build."""
    directory = tmp_path_factory.mktemp("hostile")
    made = Attacker(lab, directory)
    made.play("prepare").require_ok()
    with socket.create_server(("0.0.0.0", 0)) as tcp, socket.socket(socket.AF_UNIX) as local:  # noqa: S104
        local.bind(str(directory / "service.sock"))
        local.listen()
        targets = {
            "key": str(lab.keys / "client"),
            "runs": str(lab.root),
            "tools": sys.prefix,
            "socket": str(directory / "service.sock"),
            "address": f"10.{lab.net}.0.1",
            "port": str(tcp.getsockname()[1]),
            "pid": str(victim.pid),
            "pid_file": f"{victim.pid} {victim.started} {victim.session} {victim.leader_started}\n",
        }
        tree = {
            "meson.build": MESON, "greed.py": GREED.read_text(), "targets.json": json.dumps(targets),
            "stackctl": STACKCTL,
        }  # fmt: skip
        built = made.build(tree).require_ok().data
        made.prefix = built["prefix"]
        yield made, built["build_log"]
    made.play("restore").require_ok()
    for key in made.keys:
        shutil.rmtree(BUILDS / key, ignore_errors=True)


def answers(log: str) -> dict[str, str]:
    """Return the results of the attempts."""
    lines = (line.removeprefix("Message: ").split(": ", 1) for line in log.splitlines())
    return {line[0]: line[1] for line in lines if len(line) == 2 and line[0] in {*BUILD, *BOOT}}


def test_a_build_gets_nothing(attacker: tuple[Attacker, str]) -> None:
    assert answers(attacker[1]) == BUILD


def test_what_was_built_belongs_to_root(attacker: tuple[Attacker, str]) -> None:
    prefix = Path(attacker[0].prefix)
    assert {path.stat().st_uid for path in (prefix, *prefix.rglob("*"))} == {0}


def test_a_stack_gets_nothing_and_its_words_are_not_obeyed(
    attacker: tuple[Attacker, str], victim: processes.Process
) -> None:
    made, _ = attacker
    OWNED.unlink(missing_ok=True)
    booted = made.boot("greedy").require_ok().data
    assert answers(booted["boot_log"]) == {**BOOT, "other runs": f"{made.run_id}-dut"}
    assert int(booted["effective"]["id"]) >= 0x70000000, "who asks a stack runs its program, and not as root"
    assert booted["effective"]["network"] == "lo"
    counters = made.play("collect").require_ok().data["counters"]
    ended = made.stop()
    assert ended["crashed"] is False
    assert made.remaining() == []
    assert victim.alive()
    for text in (booted["boot_log"], booted["effective"]["words"], counters["sysctl"], ended["log"]):
        assert "lookup(" in text
    assert not OWNED.exists()


def test_a_stack_that_does_not_want_to_end(attacker: tuple[Attacker, str]) -> None:
    made, _ = attacker
    made.boot("stubborn").require_ok()
    assert made.stop()["exit_status"] == 128 + 9
    assert made.remaining() == []


def test_a_stack_that_floods_its_log(attacker: tuple[Attacker, str]) -> None:
    made, _ = attacker
    result = made.boot("flooding")
    assert not result.ok
    assert "stack ended with status 153" in result.failures[0].message  # SIGXFSZ
    log = made.stop()["log"]
    assert "bytes left out" in log
    assert len(log) < 2_000_000


def test_what_a_stack_leaves_misleads_nobody(attacker: tuple[Attacker, str], victim: processes.Process) -> None:
    made, _ = attacker
    made.boot("linking").require_ok()
    made.play("collect").require_ok()
    assert made.play("restore").require_ok().data["stopped"]
    assert victim.alive()
    assert not list(made.lab.root.glob(f"{made.run_id}-*"))
    made.play("prepare").require_ok()


def test_knobs_of_a_plan_reach_no_other_file(attacker: tuple[Attacker, str], tmp_path: Path) -> None:
    """The controller refuses them, and so would the guard and the module: see tests/lab/test_guard.py."""
    made, _ = attacker
    secret = tmp_path / "secret"
    secret.write_text("as it was")
    parts = [part.replace(".", "/") for part in secret.parts[1:]]
    for name in (".".join(["net", "//", "//", "//", *parts]), f"net/../../..{secret}", "net.ipv4.conf.lo.rp_filter",
                 "net.ipv4.tcp_fastopen_key"):  # fmt: skip
        result = made.play("boot", target="linux", tunables={name: "written"})
        assert not result.ok
        assert any(why in str(result.failures[0]) for why in ("not of letters, digits, dots", "may not be called with"))
    assert secret.read_text() == "as it was"


def test_words_for_a_kernel_are_not_those_of_a_stack(attacker: tuple[Attacker, str]) -> None:
    """The name has the form of a tunable, but no stack has such a tunable."""
    made, _ = attacker
    result = made.play("boot", tunables={"boot.command_line": "init=/x"})
    assert [failure.task for failure in result.failures] == ["Refuse a command line without a boot command"]


def installing(shell: str) -> str:
    """A meson.build whose installation runs shell commands in the directory of the result."""
    return f"project('x')\nmeson.add_install_script('sh', '-c', 'cd $MESON_INSTALL_DESTDIR_PREFIX && {shell}')\n"


NESTING = "import os\nfor _ in range(5000):\n    os.mkdir('d')\n    os.chdir('d')\n"


@pytest.mark.parametrize(
    ("meson", "values", "reason"),
    [
        (installing("ln -s /etc/shadow x"), {}, "'x' is a link to '/etc/shadow'"),
        (installing("ln -s .. x"), {}, "'x' is a link to '..'"),
        (installing("mkfifo x"), {}, "'x' is neither a file"),
        (installing("exec python3 $MESON_SOURCE_ROOT/nest.py"), {}, "nested deeper than 32 levels"),
        (installing('touch "$(printf "x\\\\377")"'), {}, "printable UTF-8"),
        (installing("for i in 1 2 3 4 5; do truncate -s 64M $i; done"), {}, "more than 268435456 bytes"),
        (installing("truncate -s 64M 1 && ln 1 2 && ln 1 3 && ln 1 4 && ln 1 5"), {}, "more than 268435456 bytes"),
        (installing("set -e; for i in 1 2 3 4 5; do head -c 63M /dev/zero > $i; done"), {}, "No space left"),
        (installing("exec mkdir $(seq 10001)"), {}, "No space left"),
        (installing("mkdir build.log"), {}, "build.log"),
        (installing("mkdir build.toolchain"), {}, "build.toolchain"),
        (installing("rm -rf $MESON_INSTALL_DESTDIR_PREFIX"), {}, "the build ended with status"),
        (installing("true"), {}, "it is empty"),
        ("project('x', 'c')\nexecutable('x', 'x.c')", {}, "it is empty"),
        ("project('x')\nrun_command('sleep', '600', check: true)", {"build_timeout": 5}, "the build ended after 5 s"),
        (installing("yes"), {}, "the build ended with status"),
        ("project('x')\nrun_command('sh', '-c', 'kill -KILL -1', check: true)", {}, "the build ended with status"),
    ],
    ids=[
        "link", "link upwards", "pipe", "deep", "no UTF-8", "holes", "hard links", "full", "many", "log", "toolchain",
        "no prefix", "empty", "not installed", "endless", "flood", "suicide",
    ],
)  # fmt: skip
def test_a_build_that_is_refused(
    attacker: tuple[Attacker, str], meson: str, values: dict[str, Any], reason: str
) -> None:
    made, _ = attacker
    result = made.build({"meson.build": meson, "nest.py": NESTING, "x.c": "int main(void) { return 0; }"}, **values)
    assert not result.ok
    assert reason in result.failures[0].message
    assert not list(BUILDS.glob(f"{made.keys[-1]}*"))
    assert made.remaining() == []


def test_a_result_does_not_change_when_the_build_has_ended(attacker: tuple[Attacker, str]) -> None:
    """Background processes of a build end before the result is read."""
    made, _ = attacker
    shell = 'echo first > x; chmod 0 x .; (setsid sh -c "while :; do echo later >> x; done" >/dev/null 2>&1 &)'
    prefix = Path(made.build({"meson.build": installing(shell)}).require_ok().data["prefix"])
    assert sorted(os.listdir(prefix)) == ["build.log", "build.toolchain", "x"]
    assert (prefix / "x").read_text().startswith("first\n")
    assert (prefix.stat().st_mode & 0o7777, (prefix / "x").stat().st_mode & 0o7777) == (0o755, 0o644)
    assert made.remaining() == []
    mounted = Path("/proc/self/mountinfo").read_text()
    assert f"{made.keys[-1]}.new" not in mounted


CACHED = """\
project('x', 'c')
custom_target('x', input: 'x.c', output: 'x.o', install: true, install_dir: 'lib',
  command: ['env', 'CCACHE_LOGFILE=/build/log', 'ccache', 'cc', '-c', '@INPUT@', '-o', '@OUTPUT@'])
meson.add_install_script('grep', 'Result: ', '/build/log')
"""
SPOILING = "run_command('sh', '-c', 'touch $CCACHE_DIR/evil; rm -rf $CCACHE_DIR/*', check: false)\n"


def test_a_patch_takes_the_compiled_files_of_its_base_and_cannot_change_them(attacker: tuple[Attacker, str]) -> None:
    made, _ = attacker

    def built(meson: str, base: str) -> tuple[Path, str]:
        data = made.build({"meson.build": meson, "x.c": "int x;"}, base_prefix=base).require_ok().data
        return Path(data["prefix"]), data["build_log"]

    base, log = built(CACHED, "")
    assert "Result: cache_miss" in log
    before = contents(base)
    patch, log = built(CACHED + SPOILING, str(base))
    assert "_cache_hit" in log
    assert contents(base) == before
    assert (patch / "lib" / "x.o").read_bytes() == before["lib/x.o"]
    assert sorted(os.listdir(patch)) == ["build.log", "build.toolchain", "lib"]


def contents(tree: Path) -> dict[str, bytes]:
    return {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}
