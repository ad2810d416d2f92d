# SPDX-License-Identifier: BSD-2-Clause
"""The limits of the service's key on a host of the lab. All other tests of labs show what it can do."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from playbooks.guard import LIMIT, REFUSED
from runners.ansible import guard
from runners.ansible.driver import play
from runners.labs.common import ssh_options
from runners.labs.netlab import Lab
from tests.guarded import CALL, SHARED, program

UID = 1879048200


def ask(lab: Lab, *words: str, content: bytes = b"", tool: str = "ssh") -> subprocess.CompletedProcess[bytes]:
    """Send a command with the service's key and `content`; return the result."""
    argv = [tool, *ssh_options(lab), "-o", "BatchMode=yes", "-i", str(lab.keys / "client"), *words]
    return subprocess.run(argv, input=content, capture_output=True, check=False)


def on(lab: Lab) -> str:
    return f"root@{lab.management('dut')}"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "this key has no shell"),
        (["cat", "/etc/shadow"], "this key only calls modules of the service"),
        (["cat", "/proc/cmdline;", "id"], "this key only calls modules"),
        (["/bin/sh -c 'id'"], "this key only calls modules"),
        (["/bin/sh -c 'echo ~ && sleep 0'"], "this key only calls modules"),
        (["scp", "-t", "/root"], "this key only calls modules"),
    ],
)
def test_what_is_no_module_is_refused(lab: Lab, words: list[str], why: str) -> None:
    done = ask(lab, on(lab), *words)
    assert (done.returncode, done.stdout) == (REFUSED, b"")
    assert f"refused: {why}" in done.stderr.decode()


@pytest.mark.parametrize("option", ["-O", "-s"])
def test_no_file_is_copied(lab: Lab, option: str, tmp_path: Path) -> None:
    (tmp_path / "sent").write_text("x", encoding="ascii")
    done = ask(lab, option, str(tmp_path / "sent"), f"{on(lab)}:{tmp_path}/came", tool="scp")
    assert done.returncode != 0
    assert not (tmp_path / "came").exists()
    assert ask(lab, "-s", on(lab), "sftp").returncode == REFUSED


EVIL = b"import os; os.system('touch {mark}')\n"


def test_modules_that_are_not_installed_so_are_refused_and_not_run(lab: Lab, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    evil = EVIL.replace(b"{mark}", str(mark).encode())
    run = {"root": str(lab.root), "name": "none", "state": "absent"}
    for sent, why in (
        (evil, "what was sent is no module of Ansible's"),
        (b"", "what was sent is no module"),
        (b"\xff" * 1000, "what was sent is no module"),
        (program("run_directory", run)[:-200], "what was sent is no module"),
        (program("evil", {}, changed={"ansible/legacy/evil.py": evil}), "there is no module ansible.legacy.evil"),
        (program("run_directory", run, changed={"ansible/legacy/run_directory.py": evil}), "install the guard anew"),
        (program("run_directory", run, changed={SHARED: evil}), "install the guard anew"),
        (program("run_directory", run, changed={"sitecustomize.py": evil}), "install the guard anew"),
        (program("run_directory", run, changed={"sitecustomize.pyc": evil}), ""),
        (program("run_directory", run, prefix=evil.decode()), ""),
    ):
        done = ask(lab, on(lab), CALL, content=sent)
        assert why in done.stderr.decode()
        assert (done.returncode == REFUSED) == bool(why), done
        assert b'"failed": true' in done.stdout if why else b'"stopped": []' in done.stdout
    assert not mark.exists()


def test_too_much_is_refused(lab: Lab) -> None:
    done = ask(lab, on(lab), CALL, content=bytes(LIMIT + 1))
    assert f"a module of more than {LIMIT} bytes" in done.stderr.decode()


def test_root_runs_no_program_of_the_keys(lab: Lab, tmp_path: Path) -> None:
    argv = ["touch", str(tmp_path / "ran")]
    home = {"directory": f"{lab.root}/run-dut/boot", "name": "x", "argv": argv}
    for module, values, why in (
        ("supervised_command", {"commands": [argv], "timeout": 5}, "root runs only fixed commands"),
        ("supervised_command", {"commands": [argv], "timeout": 5, "uid": 0}, "may not be called with uid=0"),
        ("daemon", home, "missing arguments if state is started: uid"),
        ("measure", {"measurements": [], "timeout": 5, "pid_directory": f"{lab.root}/run"}, "required arguments: uid"),
        ("daemon", {**home, "uid": UID, "directory": "/etc/cron.d"}, "may not be called with directory"),
    ):  # fmt: skip
        done = ask(lab, on(lab), CALL, content=program(module, values))
        assert why in done.stdout.decode().replace("\\", "")
    assert not (tmp_path / "ran").exists()


def test_a_sysctl_is_no_other_file(lab: Lab, tmp_path: Path) -> None:
    """A slash in the name of a sysctl represents a dot, so that two of them would be the parent directory."""
    secret = tmp_path / "secret"
    secret.write_text("as it was")
    parts = [part.replace(".", "/") for part in secret.parts[1:]]
    memory = lab.root / "x.knobs"
    state = {"roles": ["dut"], "links": ["data0"], "memory": str(memory)}
    for name in (".".join(["net", "//", "//", "//", *parts]), ".".join(["net", "ipv4", *["//"] * 4, *parts])):
        for knobs in ({name: "written"}, {f"left.{name}": "written"}):
            values = {**state, "knobs": knobs, "roles": ["left", "dut"]}
            done = ask(lab, on(lab), CALL, content=program("linux_knobs", values))
            assert done.returncode == REFUSED
            assert b"may not be called with knobs" in done.stdout
    assert secret.read_text() == "as it was"
    assert not memory.exists()


def test_what_a_module_remembers_is_no_order(lab: Lab, tmp_path: Path) -> None:
    """Also if another fault lets a program write the file of old values, or put a link in its place."""
    secret = tmp_path / "secret"
    secret.write_text("as it was")
    outside = ".".join(["net", "//", "//", "//", *(part.replace(".", "/") for part in secret.parts[1:])])
    link, uid = {"interface": "data0", "address": lab.links("dut")[0].address}, UID
    knobs: dict[str, Any] = {"roles": ["dut"], "links": ["data0"], "memory": f"{lab.root}/x.knobs"}
    links = {"owner": "nobody", "links": [link], "uid": uid, "memory": f"{lab.root}/x.data_path"}
    links["namespace"] = f"{lab.root}/x.net"
    state = {"state": "proven", "links": ["data0"], "namespace": f"{lab.root}/x.net", "record": f"{lab.root}/x.before"}
    for module, values, content in (
        ("linux_knobs", knobs, [["sysctl", outside, "", "written"]]),
        ("linux_knobs", knobs, [["steering", f"rx-0/../../../../..{secret}", "data0", "1"]]),
        ("linux_knobs", knobs, [["mtu", "mtu", "data0", "1500 dev mgmt0"]]),
        ("data_path", links, {str(secret): "written"}),
        ("data_path", links, {f"/proc/sys/net/../../..{secret}": "1"}),
        ("host_state", state, {f"sysctl {outside}": "written"}),
    ):
        file = Path(str(values.get("memory") or values["record"]))
        file.write_text(json.dumps(content))
        done = ask(lab, on(lab), CALL, content=program(module, values))
        assert b'"failed": true' in done.stdout, done
        file.unlink()
        file.symlink_to(secret)
        done = ask(lab, on(lab), CALL, content=program(module, values))
        assert b'"failed": true' in done.stdout, done
        assert b"as it was" not in done.stdout
        file.unlink()
        assert secret.read_text() == "as it was"


def test_no_variable_chooses_what_root_runs(lab: Lab) -> None:
    run = {"measurements": [{"test": "x", "argv": ["true"], "samples": 1}], "timeout": 5, "uid": UID, "limits": {}}
    for name in ("PATH", "LD_PRELOAD", "LD_LIBRARY_PATH"):
        values = {**run, "pid_directory": f"{lab.root}/run", "environment": {name: f"{lab.root}/builds/k"}}
        done = ask(lab, on(lab), CALL, content=program("measure", values))
        assert done.returncode == REFUSED
        assert b"may not be called with environment" in done.stdout


def test_neither_ports_nor_agents_nor_terminals(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    remote = ["-o", "ExitOnForwardFailure=yes", "-R", f"{port}:[::1]:22"]
    assert b"forwarding failed" in ask(lab, *remote, on(lab), "true").stderr
    assert b"administratively prohibited" in ask(lab, "-W", "127.0.0.1:22", on(lab)).stderr
    assert b"PTY allocation request failed" in ask(lab, "-tt", on(lab), "true").stderr
    assert ask(lab, on(lab), "true").returncode == 0
    assert ask(lab, on(lab), "cat", "/proc/cmdline").stdout == Path("/proc/cmdline").read_bytes()


def test_a_refusal_is_in_the_system_log_with_address_and_request(lab: Lab, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(str(tmp_path / "log"))
        box = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--bind", str(tmp_path / "log"), "/dev/log"]
        environment = {**os.environ, "SSH_ORIGINAL_COMMAND": "rm -r /\n", "SSH_CONNECTION": "192.0.2.7 1 192.0.2.8 22"}
        argv = [*box, "--", "/usr/bin/python3", "-IS", f"{lab.guard}/guard.py"]
        assert subprocess.run(argv, env=environment, capture_output=True, check=False).returncode == REFUSED
        log.settimeout(10)
        message = log.recv(4096).decode()
    assert "perfweb-guard" in message
    assert "refused from 192.0.2.7: this key only calls modules of the service; request 'rm -r /\\n'" in message


def test_an_operator_installs_it_with_another_key(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFWEB_VAR", str(tmp_path / "var"))
    authorized, directory = tmp_path / "authorized", tmp_path / "guard"
    key = (lab.keys / "client.pub").read_text(encoding="ascii").strip()
    authorized.write_text(f"{key}\nssh-ed25519 AAAA of-somebody-else\nno-pty {key}\n", encoding="ascii")
    with tempfile.TemporaryDirectory() as sockets:  # a separate one, because a shared connection keeps its key
        values = {
            "ansible_ssh_private_key_file": str(lab.keys / "operator"), "ansible_control_path_dir": sockets,
            "service_key": str(lab.keys / "client.pub"), "guard_directory": str(directory),
            "authorized_keys": str(authorized),
        }  # fmt: skip
        play("guard", inventory=lab.simulator, extra_vars=values, timeout=120).require_ok()
    assert authorized.read_text(encoding="ascii").splitlines() == [
        "ssh-ed25519 AAAA of-somebody-else", guard.line(key, str(directory)).strip(),
    ]  # fmt: skip
    wanted = json.loads(Path(lab.guard, "policy.json").read_text(encoding="utf-8")) | {"links": []}
    assert json.loads((directory / "policy.json").read_text(encoding="utf-8")) == wanted
    for name in ("guard.py", "modules.zip"):
        assert (directory / name).stat().st_uid == 0
    assert checksums(directory) == checksums(Path(lab.guard))


def checksums(directory: Path) -> dict[str, int]:
    with zipfile.ZipFile(directory / "modules.zip") as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}
