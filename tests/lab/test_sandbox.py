# SPDX-License-Identifier: BSD-2-Clause
"""The sandbox where a user namespace can be made, and in a chroot, where none can be made."""

from __future__ import annotations

import ctypes
import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from playbooks.module_utils import memory_group, sandbox, seccomp
from playbooks.module_utils.sandbox import (
    MIB,
    Sandbox,
    confined,
    has_user_namespaces,
    mount_scratch,
    problem,
    unmount_scratch,
)
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
UID = 0x70000001
# The states of a program in a sandbox, and whether the host reports that it can have a user namespace.
LOOK = f"""
import json, subprocess, sys
sys.path.insert(0, {str(ROOT)!r})
from playbooks.module_utils.sandbox import Sandbox, confined, has_user_namespaces, problem
box = Sandbox({UID})
run = lambda *argv: subprocess.run(confined(argv, box), capture_output=True, text=True, check=True).stdout
about = dict(line.split(":", 1) for line in run("cat", "/proc/self/status").splitlines())
about["limit"] = run("cat", "/proc/sys/user/max_user_namespaces")
about["rank"] = run("sh", "-c", "echo 0 2>&1 >/proc/self/oom_score_adj; cat /proc/self/oom_score_adj")
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
    assert (about["Seccomp"].strip(), about["Seccomp_filters"].strip()) == ("2", "1")
    assert (int(about["limit"]) == 0) is own
    assert about["rank"].splitlines()[-1] == "1000"
    assert "Read-only file system" in about["rank"]


def test_namespaces_are_its_own_and_what_it_may_write_has_an_end() -> None:
    look = "readlink $(for name; do echo /proc/self/ns/$name; done); hostname; df -BM --output=size /tmp /dev/shm"
    names = ["ipc", "mnt", "net", "pid", "uts"]
    argv = confined(["sh", "-c", look, "-", *names], Sandbox(UID))
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert not {os.readlink(f"/proc/self/ns/{name}") for name in names} & set(lines[:5])
    assert lines[5] == "sandbox"
    assert [line.strip() for line in lines[7:]] == ["64M", "64M"]


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
    """Root is dropped in the sandbox by programs that no variable may choose."""
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


SYSCALLS = Path(__file__).parent / "hostile" / "syscalls.py"
ALLOW_ALL = struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000)
"""A filter that refuses nothing."""
REFUSED = {
    "ENOSYS": "clone3, x32, a system call of the future, i386",
    "EAFNOSUPPORT": "netlink of sockets, netlink of netfilter, socketpair of TIPC, a family with other high bits",
    "EPROTONOSUPPORT": "SCTP, DCCP, UDP-Lite, MPTCP, L2TP, a protocol with other high bits",
    "ESOCKTNOSUPPORT": "SCTP by its type, DCCP by its type, a type with other high bits",
    "EROFS": "oom_score_adj, oom_score_adj of none",
    "ok": "a process, personality, netlink of routes, socketpair, TCP, UDP over IPv6",
}
"""Results of the attempts that do not get EPERM."""
ALLOWED_FAMILIES = {"family 1", "family 2", "family 10", "family 16"}
OPEN_OTHERWISE = {
    "clone3", "io_uring", "userfaultfd", "add_key", "keyctl", "pidfd_getfd", "ptrace", "ptrace another", "kcmp",
    "process_vm_readv", "open_tree", "adjtimex", "personality without random addresses",
    "personality with executable data", "i386", "netlink of sockets",
    "UDP-Lite", "line discipline",
}  # fmt: skip
"""What an ordinary user may do on Debian 12 without the filter."""
OTHER_ERROR_OTHERWISE = {
    "a user namespace by unshare": "ENOSPC",
    "a user namespace by clone": "ENOSPC",
    "bpf": "EINVAL",
}


def attempts() -> dict[str, str]:
    """The results of all attempts of hostile/syscalls.py in a sandbox."""
    calls = set(re.findall(r'call\("(\w+)"', SYSCALLS.read_text()))
    numbers = json.dumps({call: seccomp.number(call) for call in calls})
    argv = ["/usr/bin/python3", str(SYSCALLS), numbers]
    done = subprocess.run(
        confined(argv, Sandbox(UID, reads=[str(SYSCALLS)])), capture_output=True, text=True, check=True
    )
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


def test_the_filter_refuses_what_no_program_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = attempts()
    expected = {name: error for error, names in REFUSED.items() for name in names.split(", ")}
    for name, answer in found.items():
        if name.startswith("family "):
            assert (name, answer) == (name, "ok" if name in ALLOWED_FAMILIES else "EAFNOSUPPORT")
        else:
            assert (name, answer) == (name, expected.get(name, "EPERM"))
    monkeypatch.setattr(seccomp, "program", lambda: ALLOW_ALL)
    without = attempts()
    assert {name: without[name] for name in OPEN_OTHERWISE} == dict.fromkeys(OPEN_OTHERWISE, "ok")
    if has_user_namespaces(UID):
        assert {name: without[name] for name in OTHER_ERROR_OTHERWISE} == OTHER_ERROR_OTHERWISE
    assert without["TIOCSTI"] != "EPERM"
    assert without["TIOCSTI with other high bits"] != "EPERM"


def test_the_filter_begins_with_a_limit_that_newer_system_calls_exceed() -> None:
    first = [struct.unpack("<HBBI", seccomp.program()[at : at + 8]) for at in (0, 8, 16)]
    assert first == [(0x20, 0, 0, 0), (0x25, 0, 1, 450), (0x06, 0, 0, 0x00050026)]


def test_without_libseccomp_there_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> None:
        raise OSError("libseccomp.so.2: cannot open shared object file")

    for cached in (seccomp.library, seccomp.number, seccomp.program):
        cached.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert "install libseccomp2" in problem(UID)


def test_a_program_gets_a_session_keyring_of_its_own() -> None:
    """The caller has a session keyring with a key in it, as pam_keyinit(8) makes one at a login."""
    join, add = seccomp.number("keyctl"), seccomp.number("add_key")
    parent = (
        "import ctypes, os, sys; libc = ctypes.CDLL(None)\n"
        f"assert libc.syscall({join}, 1, b'perfweb-test') > 0\n"
        f"assert libc.syscall({add}, b'user', b'perfweb-secret', b'4711', 4, -3) > 0\n"
        "print(open('/proc/keys').read(), flush=True)\n"
        "os.execvp(sys.argv[1], sys.argv[1:])"
    )
    # A separate user: keys of other programs of UID are listed until the kernel's garbage collection.
    argv = [sys.executable, "-c", parent, *confined(["sh", "-c", "echo inside; cat /proc/keys"], Sandbox(UID + 1))]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    outside, inside = done.stdout.split("inside\n")
    assert "perfweb-secret" in outside
    assert "perfweb" not in inside
    assert [line.split()[-1] for line in inside.splitlines()] == ["empty"]


class MemoryGroup:
    """A control group of limited memory, of version 1 or 2 (cgroups(7))."""

    def __init__(self, size: int) -> None:
        root = Path("/sys/fs/cgroup")
        first = (root / "memory").is_dir()
        if not first:
            (root / "cgroup.subtree_control").write_text("+memory")
        self.directory = (root / "memory" if first else root) / f"perfweb-test-{os.getpid()}"
        self.directory.mkdir()
        (self.directory / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(size))

    def start(self, argv: Sequence[str]) -> subprocess.Popen[str]:
        """Run a command in the group."""
        words = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self.directory / "cgroup.procs"), *argv]
        pipe = subprocess.PIPE
        return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    made = MemoryGroup(256 * MIB)
    yield made
    made.directory.rmdir()


HOLD = "import sys; held = b'x' * (int(sys.argv[1]) << 20); print('holds', flush=True); sys.stdin.read()"
EAT = """\
import glob
for file in glob.glob("/proc/[0-9]*/oom_score_adj"):
    for rank in ("-1000", "0", "999"):
        try:
            open(file, "w").write(rank)
            print("lowered", file, rank, flush=True)
        except OSError:
            pass
held = []
while True:
    held.append(b"x" * (1 << 20))
"""


def test_a_program_that_eats_memory_is_killed_before_a_larger_one(
    group: MemoryGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_group, "joined_by", lambda *_: "")
    bystander = group.start([sys.executable, "-c", HOLD, "160"])
    assert bystander.stdout is not None
    assert bystander.stdout.readline() == "holds\n"
    eater = group.start(confined(["/usr/bin/python3", "-c", EAT], Sandbox(UID)))
    output, _ = eater.communicate(timeout=120)
    assert "lowered" not in output
    assert eater.returncode == 128 + 9
    assert bystander.poll() is None
    bystander.communicate("")


@pytest.fixture
def own_group(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A memory group that no other test has, removed afterwards."""
    made = memory_group.joined_by
    monkeypatch.setattr(memory_group, "joined_by", lambda size: made(size, "perfweb-test-own"))
    made.cache_clear()
    yield
    if found := made(256 * MIB, "perfweb-test-own"):  # the last processes of a sandbox end after its first
        wait_for(lambda: not Path(found).read_text(), "the end of all programs in the group")
        Path(found).parent.rmdir()
    made.cache_clear()


@pytest.mark.usefixtures("own_group")
def test_programs_share_a_limit_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of in-memory file systems counts, too; a program outside is not affected."""
    monkeypatch.setattr(sandbox, "MEMORY_LIMIT", 64 * MIB)
    eat = "held = []\nwhile True: held.append(b'x' * (1 << 20))"
    assert subprocess.run(confined(["/usr/bin/python3", "-c", eat], Sandbox(UID)), check=False).returncode == 137
    fill = "for place in /tmp /dev/shm; do head -c 48M /dev/zero >$place/x; done"
    done = subprocess.run(confined(["sh", "-c", fill], Sandbox(UID)), check=False, capture_output=True)
    assert done.returncode != 0


@pytest.mark.usefixtures("own_group")
@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined"])
def test_a_program_with_a_sanitizer_runs(sanitizer: str, tmp_path: Path) -> None:
    """The thread sanitizer restarts without random addresses, if it may, when the kernel uses more bits of them."""
    source, program = tmp_path / "bad.c", tmp_path / "bad"
    code = "int main(int n, char **v) { (void)v; char *p = malloc(8); p[8 * n] = 1; return (p[n]); }"
    source.write_text(f"#include <stdlib.h>\n{code}\n")
    subprocess.run(["cc", f"-fsanitize={sanitizer}", source, "-o", program], check=True)
    for directory in (tmp_path, tmp_path.parent):
        directory.chmod(0o755)
    argv = confined([str(program)], Sandbox(UID, reads=[str(program)]))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "failed to allocate" not in done.stderr
    assert ("heap-buffer-overflow" in done.stderr) is (sanitizer == "address")


def test_without_a_control_group_addresses_are_limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory_group, "ROOT", tmp_path)
    memory_group.joined_by.cache_clear()
    try:
        assert memory_group.joined_by(MIB) == ""
        argv = confined(["sh", "-c", "ulimit -v"], Sandbox(UID))
    finally:
        memory_group.joined_by.cache_clear()
    assert subprocess.check_output(argv, text=True) == f"{8 * 1024 * 1024}\n"


@pytest.mark.parametrize("place", ["secret", "public/there"])
def test_a_path_that_is_exchanged_after_its_check_is_not_shown(place: str, tmp_path: Path) -> None:
    """As by a link or another file, on the way or at its end, between the check and the mount."""
    for directory in (tmp_path, tmp_path.parent):
        directory.chmod(0o755)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "there").write_text("a secret")
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "there").write_text("public")
    shown = tmp_path / "public" / "there"
    argv = confined(["cat", str(shown)], Sandbox(UID, reads=[str(shown)]))
    assert subprocess.check_output(argv, text=True) == "public"
    if place == "secret":
        (tmp_path / "public").rename(tmp_path / "away")
        (tmp_path / "public").symlink_to("secret")
    else:
        shown.rename(tmp_path / "away")
        shown.symlink_to(tmp_path / "secret" / "there")
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert "was exchanged" in done.stderr
    with pytest.raises(OSError, match=r"Not a directory|symbolic link|Too many levels"):
        confined(["cat", str(shown)], Sandbox(UID, reads=[str(shown)]))


def test_a_path_that_appears_after_its_check_is_not_shown(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path.parent):
        directory.chmod(0o755)
    argv = confined(["true"], Sandbox(UID, reads=[str(tmp_path / "later")]))
    assert subprocess.run(argv, check=False).returncode == 0
    (tmp_path / "later").write_text("x")
    assert subprocess.run(argv, check=False, capture_output=True).returncode != 0
