# SPDX-License-Identifier: BSD-2-Clause
"""bootstack and programs whose calls libstack.so does not see: they use the stack, or a message has the reason."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.stack.topology import PATIENCE, PYTHON, Installed

PROBE = """
import os, socket
with socket.socket() as sock:
    kernel = os.readlink(f"/proc/self/fd/{sock.fileno()}").startswith("socket:")
print("kernel" if kernel else "stack")
"""
# A ring's calls would bypass the library, so a program must see that there is none (io_uring_setup(2)).
RING = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
result = libc.syscall(425, 8, ctypes.create_string_buffer(120))
print(result, errno.errorcode[ctypes.get_errno()])
"""
# A child executes a program with a socket; its status is printed.
PASS = """
import os, socket, sys
sock = socket.socket()
sock.set_inheritable(True)
child = os.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
RETURNS_0 = "int main(void) { return 0; }"
# The note of the Go linker.
GO = r"""
__asm__(".pushsection .note.go.buildid, \"a\", @note; .long 4, 4, 4; .ascii \"Go\\0\\0abcd\"; .popsection");
int main(void) { return 0; }
"""


def bootstack(installed: Installed, directory: Path, *argv: str, strict: bool) -> subprocess.CompletedProcess[str]:
    """Runs a program on a stack with nothing but its loopback interface."""
    conf = directory / "loader.conf"
    conf.write_text('boot_mute="1"\n', encoding="ascii")
    command = [str(installed.prefix / "bin" / "bootstack"), "-c", str(conf), *(["--strict"] if strict else []), "--"]
    return subprocess.run([*command, *argv], capture_output=True, text=True, timeout=PATIENCE, check=False)


def compiled(directory: Path, source: str, *options: str) -> str:
    """A program of C."""
    code, program = directory / "program.c", directory / "program"
    code.write_text(source, encoding="ascii")
    subprocess.run(["cc", *options, "-o", program, code], check=True, timeout=PATIENCE)
    return str(program)


def script(directory: Path, first: str) -> str:
    """An executable script with the probe."""
    path = directory / "script"
    path.write_text(f"#!{first}\n{PROBE}", encoding="ascii")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("strict", [False, True], ids=["", "strict"])
@pytest.mark.parametrize(
    "command",
    [
        [],
        ["env", "A=1"],
        ["nice"],
        ["nice", "env", "A=1", "nohup"],
        ["sh", "-c", 'exec "$@"', "sh"],
    ],
    ids=lambda command: "-".join(command[:2]) or "program",
)
def test_a_program_that_executes_another_passes_the_stack_on(
    installed: Installed, tmp_path: Path, command: list[str], strict: bool
) -> None:
    done = bootstack(installed, tmp_path, *command, PYTHON, "-c", PROBE, strict=strict)
    assert (done.returncode, done.stdout) == (0, "stack\n"), done.stderr
    assert "libstack" not in done.stderr


@pytest.mark.parametrize("first", [PYTHON, f"/usr/bin/env {PYTHON}"], ids=["interpreter", "env"])
def test_a_script_uses_the_stack(installed: Installed, tmp_path: Path, first: str) -> None:
    done = bootstack(installed, tmp_path, script(tmp_path, first), strict=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "stack\n", "")


def test_a_child_of_a_wrapper_is_reported_once(installed: Installed, tmp_path: Path) -> None:
    run_twice = '"$@"; "$@"; true'
    done = bootstack(installed, tmp_path, "sh", "-c", run_twice, "sh", PYTHON, "-c", PROBE, strict=False)
    assert (done.returncode, done.stdout) == (0, "kernel\nkernel\n"), done.stderr
    (line,) = done.stderr.splitlines()
    assert "is a child of process" in line
    assert line.endswith("its sockets are the kernel's")


def test_a_child_of_a_wrapper_is_refused(installed: Installed, tmp_path: Path) -> None:
    done = bootstack(installed, tmp_path, "timeout", "60", PYTHON, "-c", PROBE, strict=True)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.endswith("its sockets would be the kernel's")


def test_children_of_a_program_with_sockets_are_its_own_affair(installed: Installed, tmp_path: Path) -> None:
    program = "import socket, subprocess\nsocket.socket()\nsubprocess.run(['true'], check=True)\n"
    done = bootstack(installed, tmp_path, PYTHON, "-c", program, strict=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("strict", "status"), [(False, 0), (True, 2)], ids=["", "strict"])
def test_a_socket_that_a_static_program_gets_is_reported(
    installed: Installed, tmp_path: Path, strict: bool, status: int
) -> None:
    program = compiled(tmp_path, RETURNS_0, "-static")
    done = bootstack(installed, tmp_path, PYTHON, "-c", PASS, program, strict=strict)
    assert (done.returncode, done.stdout) == (0, f"{status}\n"), done.stderr
    assert done.stderr.count(f"{program} is statically linked: its sockets {'would be' if strict else 'are'}") == 1


@pytest.mark.parametrize(
    ("source", "options", "reason"),
    [
        (RETURNS_0, ["-static"], "is statically linked"),
        (RETURNS_0, ["-static-pie"], "is statically linked"),
        (GO, [], "is a Go program, which makes system calls itself"),
    ],
    ids=["static", "static-pie", "go"],
)
def test_a_program_without_the_c_library_is_reported(
    installed: Installed, tmp_path: Path, source: str, options: list[str], reason: str
) -> None:
    program = compiled(tmp_path, source, *options)
    done = bootstack(installed, tmp_path, program, strict=False)
    assert (done.returncode, done.stderr) == (0, f"bootstack: {program} {reason}: its sockets are the kernel's\n")
    done = bootstack(installed, tmp_path, program, strict=True)
    assert (done.returncode, done.stderr) == (2, f"bootstack: {program} {reason}: its sockets would be the kernel's\n")
    done = bootstack(installed, tmp_path, "env", program, strict=True)
    assert done.returncode == 2
    assert reason in done.stderr


def test_a_program_with_other_privileges_is_reported(installed: Installed, tmp_path: Path) -> None:
    program = compiled(tmp_path, RETURNS_0)
    os.chown(program, 1, 1)
    Path(program).chmod(0o4755)
    done = bootstack(installed, tmp_path, program, strict=True)
    assert (done.returncode, "is a set-user-ID program" in done.stderr) == (2, True)
    Path(program).chmod(0o755)
    assert bootstack(installed, tmp_path, program, strict=True).returncode == 0


def test_a_program_finds_no_ring(installed: Installed, tmp_path: Path) -> None:
    done = bootstack(installed, tmp_path, PYTHON, "-c", RING, strict=True)
    assert (done.returncode, done.stdout) == (0, "-1 ENOSYS\n"), done.stderr
