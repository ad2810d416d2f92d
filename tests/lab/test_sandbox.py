# SPDX-License-Identifier: BSD-2-Clause
"""The sandbox where a user namespace can be made, and in a chroot, where none can be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from playbooks.module_utils.sandbox import Sandbox, confined, mount_scratch, unmount_scratch

ROOT = Path(__file__).resolve().parents[2]
UID = 0x70000001
# What a program in a sandbox is, and whether the host says that it can have a user namespace.
LOOK = f"""
import json, subprocess, sys
sys.path.insert(0, {str(ROOT)!r})
from playbooks.module_utils.sandbox import Sandbox, confined, has_user_namespaces, problem
box = Sandbox({UID})
run = lambda *argv: subprocess.run(confined(argv, box), capture_output=True, text=True, check=True).stdout
about = dict(line.split(":", 1) for line in run("cat", "/proc/self/status").splitlines())
print(json.dumps([problem({UID}), has_user_namespaces({UID}), run("cat", "/proc/self/uid_map").split(), about]))
"""
IN_CHROOT = 'mount --rbind / "$0" && exec chroot "$0" "$@"'


@pytest.mark.parametrize("in_chroot", [False, True])
def test_without_a_user_namespace_all_the_rest_is_alike(in_chroot: bool, tmp_path: Path) -> None:
    chroot = ["unshare", "--mount", "sh", "-c", IN_CHROOT, str(tmp_path)]
    argv = [*(chroot if in_chroot else []), sys.executable, "-c", LOOK]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    problem, own, users, about = json.loads(done.stdout)
    assert problem == ""
    allowed = subprocess.run(["unshare", "--user", "true"], capture_output=True, check=False).returncode == 0
    assert own == (allowed and not in_chroot)
    assert users == ([str(UID), str(UID), "1"] if own else ["0", "0", str(2**32 - 1)])
    assert about["Uid"].split() == [str(UID)] * 4
    assert about["Gid"].split() == [str(UID)] * 4
    assert about["Groups"].split() in ([], [str(UID)])
    assert about["NoNewPrivs"].strip() == "1"
    assert {int(about[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}


def test_namespaces_are_its_own_and_what_it_may_write_has_an_end() -> None:
    look = "readlink $(for name; do echo /proc/self/ns/$name; done); hostname; df -BM --output=size /tmp /dev/shm"
    names = ["ipc", "mnt", "net", "pid", "uts"]
    argv = confined(["sh", "-c", look, "-", *names], Sandbox(UID))
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert not {os.readlink(f"/proc/self/ns/{name}") for name in names} & set(said[:5])
    assert said[5] == "sandbox"
    assert [line.strip() for line in said[7:]] == ["64M", "64M"]


def test_a_stack_has_64_mb_and_4096_files(tmp_path: Path) -> None:
    mount_scratch(tmp_path / "own", UID)
    try:
        about = os.statvfs(tmp_path / "own")
        assert (about.f_blocks * about.f_frsize, about.f_files) == (64 * 1024 * 1024, 4096)
        assert (tmp_path / "own").stat().st_uid == UID
    finally:
        unmount_scratch(tmp_path / "own")


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD"])
def test_variables_of_a_program_are_not_roots(name: str, tmp_path: Path) -> None:
    """Root gives itself up in the sandbox, by programs that must not be those of a variable's choice."""
    os.chmod(tmp_path.parent, 0o755)  # noqa: S103  # a build can be read by all
    for program in ("setpriv", "unshare", "env"):
        (tmp_path / program).write_text("#!/bin/sh\necho I am $(/usr/bin/id -u)\n")
        (tmp_path / program).chmod(0o755)
    (tmp_path / "evil.so").write_bytes(b"no library")
    value = str(tmp_path) if name == "PATH" else str(tmp_path / "evil.so")
    box = Sandbox(UID, reads=[str(tmp_path)], environment={name: value})
    argv = confined(["/bin/sh", "-c", f"echo ${name}; /usr/bin/id -u"], box)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [value, str(UID)]
