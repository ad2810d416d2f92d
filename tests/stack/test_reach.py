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


SPAWN = """
import os, sys
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
assert os.waitpid(pid, 0)[1] == 0
"""

CHILDREN = {
    "shell": ["sh", "-c", '"$@" && "$@" | cat; true', "sh"],
    "timeout": ["timeout", "60"],
    "xargs": ["xargs"],
    "fork": [PYTHON, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:], check=True)"],
    "spawn": [PYTHON, "-c", SPAWN],
    "system": [PYTHON, "-c", "import os, shlex, sys; assert os.system(shlex.join(sys.argv[1:])) == 0"],
}  # fmt: skip


@pytest.mark.parametrize("name", CHILDREN)
def test_a_program_that_a_child_executes_uses_the_same_stack(installed: Installed, tmp_path: Path, name: str) -> None:
    done = bootstack(installed, tmp_path, *CHILDREN[name], PYTHON, "-c", PROBE, strict=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("stack\nstack\n" if name == "shell" else "stack\n")


# A process gives itself a connection, and becomes a program that answers on it and reports a signal.
BECOME = """
import os, socket, sys
with socket.create_server(("127.0.0.1", 0)) as listener:
    client = socket.create_connection(listener.getsockname())
    server = listener.accept()[0]
os.set_inheritable(server.fileno(), True)
if os.fork() == 0:
    server.close()
    client.sendall(b"x")
    assert client.recv(1) == b"y"
    client.sendall(b"z")
    os._exit(0)
client.close()
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], str(server.fileno())])
"""
BECOME_ANSWER = """
import os, signal, socket, sys
connection = socket.socket(fileno=int(sys.argv[1]))
assert connection.recv(1) == b"x"
signal.signal(signal.SIGUSR1, lambda *_: connection.send(b"y"))
os.kill(os.getppid(), signal.SIGUSR1)
assert connection.recv(1) == b"z"
sys.exit(7)
"""


def test_a_process_becomes_a_program_with_its_sockets(installed: Installed, tmp_path: Path) -> None:
    done = bootstack(installed, tmp_path, PYTHON, "-c", BECOME, BECOME_ANSWER, strict=True)
    assert (done.returncode, done.stderr) == (7, "")


def test_a_program_that_cannot_be_executed_is_an_error_of_exec(installed: Installed, tmp_path: Path) -> None:
    program = BECOME.replace("sys.executable, [", "'/nonexistent', [")
    done = bootstack(installed, tmp_path, PYTHON, "-c", program, BECOME_ANSWER, strict=True)
    assert done.returncode == 1
    assert "FileNotFoundError" in done.stderr


def test_a_program_ends_by_the_signal_of_the_one_it_became(installed: Installed, tmp_path: Path) -> None:
    answer = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    done = bootstack(installed, tmp_path, PYTHON, "-c", BECOME, answer, strict=True)
    assert done.returncode == -9


# A process with a socket open becomes the program of its arguments.
OUTLIVE = """
import os, signal, socket, sys
sock = socket.socket()
sock.set_inheritable(True)
exec(sys.argv[1])
os.execvp(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize(
    ("before", "command", "status"),
    [
        ("signal.signal(signal.SIGCHLD, signal.SIG_IGN)", "exit 3", 3),
        ("signal.setitimer(signal.ITIMER_REAL, 0.3)", "exec sleep 60", -14),
        ("", "trap 'exit 4' PROF; kill -PROF $PPID; while :; do sleep 0.1; done", 4),
        ("", "trap 'exit 4' 40; kill -40 $PPID; while :; do sleep 0.1; done", 4),
        ("", "trap 'exit 4' 64; kill -64 $PPID; while :; do sleep 0.1; done", 4),
    ],
    ids=["ignored child", "alarm", "profile", "real time", "last"],
)
def test_a_process_is_for_others_the_program_that_it_became(
    installed: Installed, tmp_path: Path, before: str, command: str, status: int
) -> None:
    argv = [PYTHON, "-c", OUTLIVE, before, "sh", "-c", command]
    done = bootstack(installed, tmp_path, *argv, strict=True)
    assert (done.returncode, done.stderr) == (status, "")


# Python's own function calls execve().
EXECVP = """
import ctypes
words = [os.fsencode(word) for word in sys.argv[2:]]
ctypes.CDLL(None).execvp(words[0], (ctypes.c_char_p * (len(words) + 1))(*words))
"""


def test_a_script_without_an_interpreter_is_the_shells(installed: Installed, tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text('exit "$1"\n', encoding="ascii")
    path.chmod(0o755)
    done = bootstack(installed, tmp_path, PYTHON, "-c", OUTLIVE, EXECVP, str(path), "6", strict=True)
    assert (done.returncode, done.stderr) == (6, "")


# Its malloc() must not be called by exec(), which is async-signal-safe; argv[1]: whether a socket is open.
NO_MALLOC = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
static int forbidden;
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *malloc(size_t n) { if (forbidden) abort(); return __libc_malloc(n); }
void *calloc(size_t n, size_t size) { if (forbidden) abort(); return __libc_calloc(n, size); }
int main(int argc, char **argv)
{
    if (argc == 1)
        return 5;
    if (strcmp(argv[1], "socket") == 0)
        socket(AF_INET, SOCK_STREAM, 0);
    if (fork() == 0)    /* the first child starts a thread of the stack */
        _exit(0);
    wait(NULL);
    forbidden = 1;
    execvp(argv[0], (char *[]){argv[0], NULL});
    return 1;
}
"""


@pytest.mark.parametrize("sockets", ["socket", "none"])
def test_a_program_is_executed_without_malloc(installed: Installed, tmp_path: Path, sockets: str) -> None:
    done = bootstack(installed, tmp_path, compiled(tmp_path, NO_MALLOC), sockets, strict=True)
    assert (done.returncode, done.stderr) == (5, "")


LIBRARIES = """
from pathlib import Path
for line in Path("/proc/self/environ").read_bytes().split(bytes(1)):
    if line.startswith(b"LD_PRELOAD="):
        print(line.decode())
"""


@pytest.mark.parametrize(
    ("own", "kept"),
    [
        (["LD_PRELOAD=libm.so.6 libdl.so.2"], "libm.so.6:libdl.so.2:"),
        (["LD_PRELOAD=libm.so.6:libdl.so.2", "env", "LD_PRELOAD=libm.so.6"], "libm.so.6:"),
        (["LD_PRELOAD=libm.so.6", "env", "-u", "LD_PRELOAD"], ""),
    ],
    ids=["two", "fewer", "none"],
)
def test_a_program_keeps_the_libraries_that_it_preloads_itself(
    installed: Installed, tmp_path: Path, own: list[str], kept: str
) -> None:
    done = bootstack(installed, tmp_path, "env", *own, "env", "nice", PYTHON, "-c", LIBRARIES, strict=True)
    library = installed.prefix / "lib" / "libstack.so"
    assert (done.stdout, done.stderr) == (f"LD_PRELOAD={kept}{library}\n", "")


# A child executes a program, after it has hidden /proc in a mount namespace of its own.
WITHOUT_PROC = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None)
sock = socket.socket()
sock.set_inheritable(True)
child = os.fork()
if child == 0:
    assert libc.unshare(0x20000) == 0
    assert libc.mount(b"none", b"/", None, 0x44000, None) == 0
    assert libc.mount(b"none", b"/proc", b"tmpfs", 0, None) == 0
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], str(sock.fileno())])
assert os.waitpid(child, 0)[1] == 0
"""
CONNECT = """
import os, socket, sys
assert not os.path.exists("/proc/self")
with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(fileno=int(sys.argv[1])) as sock:
    sock.connect(listener.getsockname())
"""


def test_a_program_finds_its_sockets_without_proc(installed: Installed, tmp_path: Path) -> None:
    done = bootstack(installed, tmp_path, PYTHON, "-c", WITHOUT_PROC, CONNECT, strict=True)
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
