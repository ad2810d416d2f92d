# SPDX-License-Identifier: BSD-2-Clause
"""Plays of the Ansible server, on this host and without connections: the same results and ends as ansible-playbook."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import pytest

from playbooks.module_utils import processes
from runners.ansible.packing import Packed, Store
from runners.ansible.server import AnsibleServer

PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.command: {command}
      register: echoed
    - ansible.builtin.debug: {{msg: "{{{{ echoed.stdout }}}} {{{{ lookup('env', 'WORD') }}}}"}}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def ansible(home: Path) -> Iterator[AnsibleServer]:
    server = AnsibleServer({"PATH": os.environ["PATH"], "ANSIBLE_HOME": str(home), "LANG": "C.UTF-8"})
    yield server
    server.process.terminate()
    assert server.process.wait() == 0
    assert list((home / "tmp").iterdir()) == []


def start(ansible: AnsibleServer, directory: Path, command: str, *, word: str = "") -> subprocess.Popen[str]:
    """A running ansible-playbook, in `directory`."""
    (directory / "play.yml").write_text(PLAY.format(command=command), encoding="utf-8")
    argv = ansible.command(["ansible-playbook", "-i", "localhost,", "-c", "local", "play.yml"])
    pipe = subprocess.PIPE
    environment = {**os.environ, "WORD": word, "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3"}
    return subprocess.Popen(argv, cwd=directory, env=environment, stdout=pipe, stderr=pipe, text=True)


def running(directory: Path) -> processes.Process | None:
    """The process that the play's command reported, if it runs."""
    word = (directory / "pid").read_text(encoding="ascii") if (directory / "pid").exists() else ""
    return processes.identify(int(word)) if word.strip() else None


def until_running(directory: Path) -> processes.Process:
    while (process := running(directory)) is None:
        time.sleep(0.02)
    return process


def until_ended(process: processes.Process) -> None:
    while process.alive():
        time.sleep(0.02)


def sleeper(directory: Path) -> str:
    return f"sh -c 'echo $$ > {directory}/pid; exec sleep 60'"


def test_each_play_has_its_own_environment_directory_and_status(ansible: AnsibleServer, tmp_path: Path) -> None:
    for word in ("first", "second"):
        play = start(ansible, tmp_path, "pwd", word=word)
        output, complaints = play.communicate()
        assert (play.returncode, complaints) == (0, "")
        assert f"{tmp_path} {word}" in output
    play = start(ansible, tmp_path, "sh -c 'echo why >&2; false'")
    assert "why" in play.communicate()[0]
    assert play.returncode == 2
    assert ansible.alive()


def test_what_a_play_has_packed_stays_for_the_next(ansible: AnsibleServer, home: Path, tmp_path: Path) -> None:
    packed = []
    for _ in range(2):
        assert start(ansible, tmp_path, "echo").communicate()[1] == ""
        packed.append({path: path.stat().st_ino for path in home.glob("tmp/*/ansiballz_cache/*")})
    assert packed[0] == packed[1]
    assert any("command" in path.name for path in packed[0])


def echo_with(home: Path, directory: Path) -> dict[str, int]:
    """Play with a new server; return the inodes of what it had packed, by name."""
    server = AnsibleServer({"PATH": os.environ["PATH"], "ANSIBLE_HOME": str(home), "LANG": "C.UTF-8"})
    assert start(server, directory, "echo").communicate()[1] == ""
    packed = {path.name: path.stat().st_ino for path in home.glob("tmp/*/ansiballz_cache/*[!k]")}
    while not set(packed) <= {path.name.partition("@")[0] for path in home.glob("packed/*/*")}:
        time.sleep(0.02)
    server.process.terminate()
    server.process.wait()
    return packed


def test_what_a_server_has_packed_stays_for_the_next(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert echo_with(home, tmp_path) == echo_with(home, tmp_path) != {}
    assert [path.stat().st_mode & 0o777 for path in home.glob("packed/*")] == [0o700]


def test_what_is_packed_of_a_changed_module_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, temporary, module = tmp_path / "home", tmp_path / "tmp", tmp_path / "library" / "module.py"
    for directory in (home, temporary, module.parent):
        directory.mkdir()
    module.write_text("first")
    monkeypatch.setattr("runners.ansible.packing.PLAYBOOKS", tmp_path)
    store = Store(home, temporary)
    (store.own / "module").write_text("packed")
    module.write_text("second")
    store.keep()
    assert list(store.stored.iterdir()) == []
    module.write_text("first")
    for name in ("module.lock", "other-part"):
        (store.own / name).touch()
    store.keep()
    assert [path.name.partition("@")[0] for path in store.stored.iterdir()] == ["module"]


@pytest.mark.parametrize("left", [b"", b"pack"], ids=["empty", "cut off"])
def test_a_file_that_a_loss_of_power_has_damaged_is_packed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: bytes
) -> None:
    monkeypatch.setattr("runners.ansible.packing.PLAYBOOKS", tmp_path)
    servers = [tmp_path / name for name in "abc"]
    for temporary in servers:
        temporary.mkdir()
    first = Store(tmp_path / "home", servers[0])
    for name in ("damaged", "good"):
        (first.own / name).write_text(f"packed {name}")
    first.keep()
    next(first.stored.glob("damaged*")).write_bytes(left)
    second = Store(tmp_path / "home", servers[1])
    assert {path.name: path.read_text() for path in second.own.iterdir()} == {"good": "packed good"}
    (second.own / "damaged").write_text("packed again")
    second.keep()
    third = Store(tmp_path / "home", servers[2])
    assert (third.own / "damaged").read_text() == "packed again"


def imported_from(archive: Path) -> str:
    """The file in the archive from which this host's Python loads the module."""
    program = f"import sys; sys.path.insert(0, {str(archive)!r}); import packed; print(packed.__file__)"
    done = subprocess.run(["/usr/bin/python3", "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip().removeprefix(f"{archive}/")


def test_what_is_packed_has_its_bytecode_and_another_python_takes_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, wanted in ((MAGIC_NUMBER, "packed.pyc"), (bytes(4), "packed.py")):
        monkeypatch.setattr("runners.ansible.packing.MAGIC_NUMBER", number)
        with Packed(tmp_path / f"{wanted}.zip", "w") as archive:
            archive.writestr("packed.py", "x = 1")
        assert imported_from(tmp_path / f"{wanted}.zip") == wanted


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_play_ends_with_its_client(ansible: AnsibleServer, tmp_path: Path, number: signal.Signals) -> None:
    play = start(ansible, tmp_path, sleeper(tmp_path))
    sleeping = until_running(tmp_path)
    play.send_signal(number)
    play.communicate()
    assert play.returncode != 0
    until_ended(sleeping)


def test_another_user_is_sent_away(ansible: AnsibleServer) -> None:
    program = """
import json, socket, sys
order = {"argv": ["ansible-playbook", "--version"], "cwd": "/", "environment": {}}
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect("\\0" + sys.argv[1])
    socket.send_fds(server, [json.dumps(order).encode()], [0, 1, 2])
    print(server.recv(1))
"""
    argv = ["/usr/bin/python3", "-c", program, ansible.name]
    done = subprocess.run(argv, cwd="/", user=65534, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "b''\n" or "ConnectionResetError" in done.stderr or "BrokenPipeError" in done.stderr


def test_a_play_ends_with_the_server(tmp_path: Path) -> None:
    server = AnsibleServer({"PATH": os.environ["PATH"], "ANSIBLE_HOME": str(tmp_path), "LANG": "C.UTF-8"})
    play = start(server, tmp_path, sleeper(tmp_path))
    sleeping = until_running(tmp_path)
    server.process.kill()
    server.process.wait()
    assert not server.alive()
    assert play.wait() != 0
    until_ended(sleeping)
    play = start(server, tmp_path, "true")
    assert "Connection refused" in play.communicate()[1]
    assert play.returncode == 1
