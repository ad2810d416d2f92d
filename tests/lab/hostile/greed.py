#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Attempts of an untrusted program, with the results: a line `NAME: RESULT` for each attempt.

It is copied into the trees that the tests build, where it runs during the build or as a stack. Its targets are in
targets.json beside it.
"""

import ctypes
import json
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHUNK = b"x" * 1024 * 1024
PTRACE_ATTACH = 16
MAP_NORESERVE = 0x4000
CLONE_NEWUSER = 0x10000000
IO_URING_SETUP, PIDFD_GETFD = 425, 438
AF_VSOCK = 40


def processes() -> str:
    """A fork bomb that counts."""
    children: list[int] = []
    try:
        while len(children) < 5000:
            child = os.fork()
            if child == 0:
                time.sleep(600)
            children.append(child)
    except OSError as error:
        return f"{len(children) < 600 and 'below 600'}, then {error.strerror}"
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)
    return "as many as it likes"


def fill(directory: str, limit: int) -> str:
    """Write files of 32 MB until there is no space, or more than there should be."""
    files: list[Path] = []
    written = 0
    try:
        while written <= limit:
            path = Path(directory, f"filler{len(files)}")
            files.append(path)
            with path.open("wb") as file:
                for _ in range(32):
                    written += file.write(CHUNK)
    except OSError as error:
        return f"{error.strerror}"
    finally:
        for path in files:
            path.unlink(missing_ok=True)
    return f"holds more than {limit} bytes"


def one_file() -> str:
    with Path("/dev/shm/big").open("wb") as file:  # noqa: S108
        try:
            file.writelines(CHUNK for _ in range(100))
        except OSError as error:
            return str(error.strerror)
        finally:
            Path(file.name).unlink()
    return "100 MB"


def connect(address: str, port: int) -> str:
    with socket.create_connection((address, port), timeout=3):
        return "connected"


def connect_unix(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
    return "connected"


def read(path: str) -> str:
    return f"{len(Path(path).read_bytes())} bytes"


def write(path: str) -> str:
    Path(path, "planted").touch()
    return "written"


def sees_processes() -> str:
    """Return itself, its parents, and the first process of its sandbox; not those of the host."""
    seen = [entry for entry in os.listdir("/proc") if entry.isdigit()]
    return "its own" if len(seen) < 30 else f"{len(seen)}"


def trace(pid: int) -> str:
    return checked(ctypes.CDLL(None, use_errno=True).ptrace(PTRACE_ATTACH, pid, 0, 0))


def checked(result: int) -> str:
    """Return the result of a call of the C library; raises OSError."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "done"


def take_descriptor() -> str:
    """Duplicate the standard output of the first process of the sandbox."""
    libc = ctypes.CDLL(None, use_errno=True)
    return checked(libc.syscall(PIDFD_GETFD, os.pidfd_open(1), 1, 0))


def open_vsock() -> str:
    socket.socket(AF_VSOCK).close()
    return "opened"


def live_longer() -> str:
    """Lower its oom_score_adj, by which the kernel selects the process to kill."""
    Path("/proc/self/oom_score_adj").write_text("999")
    return "done"


def kill(pid: int) -> str:
    os.kill(pid, 0)
    return "may be signalled"


def run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return "done" if done.returncode == 0 else "refused"


def capabilities() -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    sets = [line.split()[1] for line in lines if line.startswith(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"))]
    return "none" if all(int(value, 16) == 0 for value in sets[:3] + sets[4:]) else " ".join(sets)


def environment() -> str:
    """Return variables without those that the shell and meson set."""
    own = {"PWD", "SHLVL", "OLDPWD", "_", "LC_CTYPE"}
    return ",".join(sorted(name for name in os.environ if name not in own and not name.startswith("MESON")))


def devices() -> str:
    """Return the directories that bubblewrap makes, and that of the stack's files."""
    names = "console core fd full net null ptmx pts random shm stderr stdin stdout tty urandom zero"
    return ",".join(sorted({*os.listdir("/dev")} - {*names.split()})) or "none of the host"


def reserve() -> str:
    """Reserve 9 GB of addresses without touching the memory."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    with mmap.mmap(-1, 9 << 30, flags=flags):
        return "9 GB"


def home_of_root(tools: str) -> str:
    """List a directory, without the path to the tools of the build, which may be in it."""
    found = os.listdir("/root") if Path("/root").is_dir() else []
    return ",".join(name for name in found if name not in Path(tools).parts) or "nothing"


def attempts(targets: dict[str, str]) -> dict[str, Callable[[], str]]:
    """By name."""
    return {
        "user": lambda: "root" if os.getuid() == 0 else "nobody's",
        "capabilities": capabilities,
        "environment": environment,
        "devices": devices,
        "key of the lab": lambda: read(targets["key"]),
        "other runs": lambda: ",".join(os.listdir(targets["runs"])),
        "passwords": lambda: read("/etc/shadow"),
        "home of root": lambda: home_of_root(targets["tools"]),
        "socket of a service": lambda: connect_unix(targets["socket"]),
        "management network": lambda: connect(targets["address"], int(targets["port"])),
        "processes of the host": sees_processes,
        "signal": lambda: kill(int(targets["pid"])),
        "trace": lambda: trace(int(targets["pid"])),
        "descriptor of another process": take_descriptor,
        "user namespace": lambda: checked(ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER)),
        "io_uring": lambda: checked(ctypes.CDLL(None, use_errno=True).syscall(IO_URING_SETUP, 8, bytes(256))),
        "socket of a hypervisor": open_vsock,
        "live longer": live_longer,
        "write to tools": lambda: write("/usr/bin"),
        "write to itself": lambda: write(str(HERE)) if targets["when"] == "boot" else "its own",
        "mount": lambda: run("mount", "-t", "tmpfs", "x", "/proc"),
        "lift limits": lambda: run("prlimit", "--nproc=unlimited", "true"),
        "address space": reserve,
        "open files": lambda: str(resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
        "survive others when memory runs out": lambda: f"no: {Path('/proc/self/oom_score_adj').read_text().strip()}",
        "one file": one_file,
        "fork bomb": processes,
        "fill memory": lambda: fill("/tmp", 256 * 1024 * 1024),  # noqa: S108
    }


def report(when: str) -> None:
    targets = {**json.loads((HERE / "targets.json").read_text()), "when": when}
    for name, attempt in attempts(targets).items():
        try:
            answer = attempt()
        except OSError as error:
            answer = error.strerror or str(error)
        print(f"{name}: {answer}", flush=True)


def greedy(own: Path) -> None:
    """Make all attempts, and print what a terminal, a browser or Ansible would interpret."""
    print("\x1b]0;owned\x07\x1b[31m<b>&amp;</b> {{ lookup('pipe', 'touch /tmp/owned-by-words') }}", flush=True)
    report("boot")
    print(f"fill its own: {fill(str(own), 256 * 1024 * 1024)}", flush=True)


def flooding(own: Path) -> None:
    """Print for ever, and do not ignore SIGPIPE as Python does."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.execvp("yes", ["yes", "\x1b[2J<script>alert(1)</script>"])  # noqa: S606


def stubborn(own: Path) -> None:
    """Hide from the process that would end it."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()


def linking(own: Path) -> None:
    """Leave files that could mislead a privileged reader."""
    (own / "victim.pid").write_text(json.loads((HERE / "targets.json").read_text())["pid_file"])
    (own / "keys").symlink_to("/")
    (own / "ctl.sock").symlink_to("/etc/passwd")
    os.chdir(own)
    for _ in range(1500):
        os.mkdir("d" * 10)
        os.chdir("d" * 10)


def boot(config: Path) -> None:
    """Run a stack that behaves as its configuration selects."""
    conduct = config.read_text().split('hostile="')[1].split('"')[0]
    {act.__name__: act for act in (greedy, flooding, stubborn, linking)}[conduct](config.parent / "stack.own")
    print("stack: up", flush=True)
    while True:
        time.sleep(600)


if __name__ == "__main__":
    if sys.argv[1] == "build":
        report("build")
        print(f"fill the build: {fill('/build', 3 * 1024 * 1024 * 1024)}", flush=True)
    else:
        boot(Path(sys.argv[2]))
