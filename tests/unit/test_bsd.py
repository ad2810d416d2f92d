# SPDX-License-Identifier: BSD-2-Clause
"""The playbooks for FreeBSD and OpenBSD hosts, checked without such a host; they were never run on one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from runners.ansible.server import AnsibleServer

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = ROOT / "playbooks" / "bsd"
ROLE = ROOT / "playbooks" / "roles" / "bsd"
STEPS = ("boot", "build", "collect", "measure", "prepare", "restore")
NOBODY = "ansible_host=127.0.0.1 ansible_port=1"
KEYWORDS = {"name", "loop", "register", "when", "always", "delegate_to", "become", "changed_when", "loop_control"}
KEYWORDS |= {"async", "poll", "ignore_errors", "vars"}


Ansible = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnsibleServer]:
    """An ansible-playbook that is imported once for all tests, instead of once for each play."""
    home = tmp_path_factory.mktemp("home")
    own = {"ANSIBLE_CONFIG": str(ROOT / "playbooks" / "ansible.cfg"), "ANSIBLE_HOME": str(home)}
    made = AnsibleServer(os.environ | own)
    yield made
    made.process.terminate()
    made.process.wait()


@pytest.fixture
def ansible(server: AnsibleServer, tmp_path: Path) -> Ansible:
    """Calls ansible-playbook with words, about a host that does not answer, or about this machine; its exit status and
    output.
    """

    def called(*words: str, inventory: str = NOBODY) -> tuple[int, str]:
        (tmp_path / "hosts").write_text(f"[left]\nclient {inventory}\n[dut]\nhost {inventory}\n")
        argv = server.command(["ansible-playbook", "--inventory", str(tmp_path / "hosts"), *words])
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    return called


def tasks_of(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for item in items:
        inner = [task for part in ("block", "always") for task in item.get(part, [])]
        found += tasks_of(inner) if inner else [item]
    return found


def test_each_step_has_a_playbook_with_valid_syntax_marked_as_untested(ansible: Ansible) -> None:
    paths = sorted(PLAYBOOKS.glob("*.yml"))
    assert tuple(path.stem for path in paths) == STEPS
    status, output = ansible("--syntax-check", *map(str, paths))
    assert status == 0, output
    for path in (*paths, *ROLE.glob("tasks/*.yml"), *ROLE.glob("*/main.yml")):
        assert "# UNTESTED" in path.read_text(encoding="utf-8"), path
    example = ROOT / "playbooks" / "inventories" / "bsd.yml"
    assert "# UNTESTED" in example.read_text(encoding="utf-8")


@pytest.mark.parametrize("step", STEPS)
def test_steps_use_only_what_comes_with_ansible_core(step: str) -> None:
    tasks = tasks_of(yaml.safe_load((ROLE / "tasks" / f"{step}.yml").read_text(encoding="utf-8")))
    modules = {word for task in tasks for word in task if word not in KEYWORDS}
    assert modules
    assert {module for module in modules if not module.startswith("ansible.builtin.")} == set()


@pytest.mark.parametrize(
    ("step", "values", "reason"),
    [
        ("restore", {"system": "beos"}, "value of system must be one of: freebsd, openbsd"),
        ("build", {"system": "openbsd"}, "missing required arguments: repository, version"),
        ("boot", {"system": "openbsd", "loader": {"hw.ix.rxd": "1024"}}, "OpenBSD has sysctls only"),
        ("boot", {"system": "freebsd", "sysctls": {"net.inet.tcp.sack": '1"'}}, "a value with a quote"),
    ],
)
def test_bad_values_are_refused_before_a_host_is_used(
    step: str, values: dict[str, Any], reason: str, ansible: Ansible
) -> None:
    status, output = ansible(str(PLAYBOOKS / f"{step}.yml"), "-e", json.dumps(values))
    assert status == 2
    assert reason in " ".join(output.split())
    assert "UNREACHABLE" not in output


@pytest.mark.parametrize(
    ("system", "loader", "lines"),
    [
        ("freebsd", {"net.isr.maxthreads": "4"}, ['kernel="perfweb"', 'net.isr.maxthreads="4"']),
        ("openbsd", {}, ["set image /bsd.perfweb"]),
    ],
)
def test_settings_are_written_between_marked_lines(
    system: str, loader: dict[str, str], lines: list[str], ansible: Ansible
) -> None:
    values = {"system": system, "built": True, "loader": loader, "sysctls": {"net.inet.tcp.sack": "0"}}
    words = ["--check", "--diff", str(PLAYBOOKS / "boot.yml"), "-e", json.dumps(values)]
    status, output = ansible(*words, inventory="ansible_connection=local")
    assert status == 2
    assert "would reboot the control node" in output, "it came as far as that, and no farther"
    written = [line[1:] for line in output.splitlines() if line.startswith("+") and not line.startswith("++")]
    marks = ["# BEGIN perfweb", "# END perfweb"]
    assert written == [marks[0], *lines, marks[1], marks[0], "net.inet.tcp.sack=0", marks[1]]


@pytest.fixture
def changed(tmp_path: Path) -> dict[str, Any]:
    """This machine as a host that a boot has changed, in its own files; a local connection cannot boot it."""
    kept, files = tmp_path / "kept", [tmp_path / "loader.conf", tmp_path / "sysctl.conf"]
    (kernel := tmp_path / "kernel").mkdir()
    kept.mkdir()
    for path in files:
        (kept / path.name).write_text("before\n", encoding="utf-8")
        path.write_text("before\n# BEGIN perfweb\nx=1\n# END perfweb\n", encoding="utf-8")
    return {
        "system": "freebsd", "kept": str(kept), "changed_files": [str(path) for path in files],
        "it": {"installed": str(kernel), "loader_file": str(files[0])},
    }  # fmt: skip


def restore(values: dict[str, Any], ansible: Ansible) -> tuple[int, str]:
    words = [str(PLAYBOOKS / "restore.yml"), "-e", json.dumps(values)]
    return ansible(*words, inventory="ansible_connection=local")


def left_of(values: dict[str, Any]) -> list[bool]:
    return [Path(path).exists() for path in (values["kept"], values["it"]["installed"])]


def test_restore_removes_what_was_kept_when_all_is_as_before(changed: dict[str, Any], ansible: Ansible) -> None:
    for path in changed["changed_files"]:
        Path(path).write_text("before\n", encoding="utf-8")
    status, printed = restore(changed, ansible)
    assert status == 0, printed
    assert left_of(changed) == [False, False]


def test_restore_takes_every_step_although_one_fails(changed: dict[str, Any], ansible: Ansible) -> None:
    first, second = map(Path, changed["changed_files"])
    first.unlink()
    first.mkdir()
    (Path(changed["kept"]) / "booted").touch()
    status, printed = restore(changed, ansible)
    assert status == 2
    assert "not restored: settings, boot without settings, files" in printed
    assert second.read_text(encoding="utf-8") == "before\n"
    assert left_of(changed) == [True, True], "the loader may still name the kernel"
    first.rmdir()
    first.write_text("before\n", encoding="utf-8")
    status, printed = restore(changed, ansible)
    assert "not restored: boot without settings" in printed, "no file was changed this time"
    assert left_of(changed) == [True, True]
