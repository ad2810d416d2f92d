#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tries system calls that a sandbox refuses, and prints a JSON object: name of the attempt, name of the error or "ok".

The first argument is a JSON object with the numbers of system calls by name. Each attempt runs in a separate process,
so one that ends it does not end the others.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import pty
import signal
import socket
import struct
import sys
from collections.abc import Callable

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS: dict[str, int] = json.loads(sys.argv[1])
NEWUSER, NEWNS, NEWNET, NEWPID = 0x10000000, 0x20000, 0x40000000, 0x20000000
X32 = 0x40000000
I386_GETPID = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"  # mov $20, %eax; int $0x80; ret


def call(name: str, *arguments: object) -> int:
    """A system call; raises OSError."""
    words = (ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments)
    return _checked(LIBC.syscall(NUMBERS[name], *words))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def clone(flags: int) -> None:
    """clone(2) as fork(2) with flags."""
    if call("clone", ctypes.c_long(flags | signal.SIGCHLD), None, None, None, None) == 0:
        os._exit(0)
    os.wait()


def clone3() -> None:
    """clone3(2) as fork(2)."""
    arguments = ctypes.create_string_buffer(struct.pack("=8Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0), 64)
    if call("clone3", arguments, 64) == 0:
        os._exit(0)
    os.wait()


def with_child(attempt: Callable[[int], object]) -> None:
    """Makes an attempt on a stopped process of the same user."""
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    os.waitpid(child, os.WUNTRACED)
    try:
        attempt(child)
    finally:
        os.kill(child, signal.SIGKILL)


def take_descriptor(child: int) -> None:
    """Duplicates a descriptor of another process."""
    call("pidfd_getfd", os.pidfd_open(child), 1, 0)


def read_memory(child: int) -> None:
    """Reads a page of another process, which has the same addresses."""
    here, there = ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)
    local = ctypes.create_string_buffer(struct.pack("=QQ", ctypes.addressof(here), 8), 16)
    remote = ctypes.create_string_buffer(struct.pack("=QQ", ctypes.addressof(there), 8), 16)
    call("process_vm_readv", child, local, 1, remote, 1, 0)


def type_into_terminal(request: int) -> None:
    """Inserts a byte into the input of a terminal of its own."""
    _, terminal = pty.openpty()
    os.setsid()
    LIBC.ioctl(terminal, 0x540E, 0)  # TIOCSCTTY
    call("ioctl", terminal, ctypes.c_ulong(request), ctypes.create_string_buffer(b"\x03x"))


def discipline(number: int) -> None:
    """Gives a terminal of its own a line discipline, for which the kernel loads a module."""
    _, terminal = pty.openpty()
    call("ioctl", terminal, 0x5423, buffer(4, struct.pack("=I", number)))  # TIOCSETD


def with_32_bits() -> None:
    """getpid(2) of i386, which has other numbers."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(I386_GETPID)
        result = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
        os._exit(_report(-result if result < 0 else 0))


def join_own() -> None:
    """Joins a namespace that it is in already."""
    call("setns", os.open("/proc/self/ns/net", os.O_RDONLY), 0)


def oom(value: int) -> None:
    """Lowers its oom_score_adj, by which the kernel selects the process to kill."""
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write(str(value))


def buffer(size: int = 256, content: bytes = b"") -> ctypes.Array[ctypes.c_char]:
    """Memory for an argument that is not read."""
    return ctypes.create_string_buffer(content, size)


def handle() -> None:
    """Requests the handle of a file."""
    call("name_to_handle_at", -100, b"/usr", buffer(256, struct.pack("=I", 128)), buffer(8), 0)


ATTEMPTS: dict[str, Callable[[], object]] = {
    "a user namespace by unshare": lambda: call("unshare", NEWUSER),
    "a user namespace by clone": lambda: clone(NEWUSER),
    "clone3": clone3,
    "a process": lambda: clone(0),
    "mount namespace": lambda: call("unshare", NEWNS),
    "network namespace": lambda: call("unshare", NEWNET),
    "PID namespace by clone": lambda: clone(NEWPID),
    "setns": join_own,
    "io_uring": lambda: call("io_uring_setup", 8, buffer()),
    "userfaultfd": lambda: call("userfaultfd", 1),
    "add_key": lambda: call("add_key", b"user", b"x", b"secret", 6, -3),
    "request_key": lambda: call("request_key", b"user", b"x", None, -3),
    "keyctl": lambda: call("keyctl", 0, -3, 0),
    "bpf": lambda: call("bpf", 0, buffer(), 64),
    "perf_event_open": lambda: call("perf_event_open", buffer(128, struct.pack("=IIQ", 1, 112, 0)), 0, -1, -1, 0),
    "pidfd_getfd": lambda: with_child(take_descriptor),
    "ptrace": lambda: call("ptrace", 0, 0, 0, 0),
    "ptrace another": lambda: with_child(lambda child: call("ptrace", 0x4206, child, 0, 0)),
    "process_vm_readv": lambda: with_child(read_memory),
    "process_vm_writev": lambda: with_child(lambda child: call("process_vm_writev", child, None, 0, None, 0, 0)),
    "kcmp": lambda: with_child(lambda child: call("kcmp", os.getpid(), child, 0, 1, 1)),
    "mount": lambda: call("mount", b"x", b"/tmp", b"tmpfs", 0, None),
    "umount": lambda: call("umount2", b"/tmp", 2),
    "pivot_root": lambda: call("pivot_root", b"/tmp", b"/tmp"),
    "open_tree": lambda: call("open_tree", -100, b"/usr", 0),
    "move_mount": lambda: call("move_mount", -100, b"/usr", -100, b"/tmp", 0),
    "fsopen": lambda: call("fsopen", b"tmpfs", 0),
    "mount_setattr": lambda: call("mount_setattr", -100, b"/usr", 0, buffer(), 32),
    "chroot": lambda: call("chroot", b"/tmp"),
    "name_to_handle_at": handle,
    "open_by_handle_at": lambda: call("open_by_handle_at", -100, buffer(), 0),
    "fanotify": lambda: call("fanotify_init", 0x200, 0),
    "kexec_load": lambda: call("kexec_load", 0, 0, None, 0),
    "init_module": lambda: call("init_module", buffer(), 1, b""),
    "finit_module": lambda: call("finit_module", 0, b"", 0),
    "delete_module": lambda: call("delete_module", b"none", 0),
    "reboot": lambda: call("reboot", 0, 0, 0, None),
    "swapon": lambda: call("swapon", b"/none", 0),
    "acct": lambda: call("acct", b"/none"),
    "quotactl": lambda: call("quotactl", 0, b"/none", 0, None),
    "syslog": lambda: call("syslog", 10, None, 0),
    "settimeofday": lambda: call("settimeofday", None, None),
    "clock_settime": lambda: call("clock_settime", 0, buffer(16)),
    "adjtimex": lambda: call("adjtimex", buffer(512)),
    "sethostname": lambda: call("sethostname", b"x", 1),
    "personality": lambda: call("personality", ctypes.c_ulong(0xFFFFFFFF)),
    "personality without random addresses": lambda: call("personality", 0x40000),
    "personality with executable data": lambda: call("personality", 0x400000),
    "TIOCSTI": lambda: type_into_terminal(0x5412),
    "TIOCSTI with other high bits": lambda: type_into_terminal(0xF00005412),
    "TIOCLINUX": lambda: type_into_terminal(0x541C),
    "x32": lambda: _checked(LIBC.syscall(ctypes.c_long(X32 | 39))),
    "a system call of the future": lambda: _checked(LIBC.syscall(ctypes.c_long(460))),
    "i386": with_32_bits,
    "netlink of routes": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0),
    "netlink of sockets": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4),
    "netlink of netfilter": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12),
    "socketpair": lambda: socket.socketpair(socket.AF_UNIX),
    "socketpair of TIPC": lambda: call("socketpair", 30, 1, 0, buffer(8)),
    "a family with other high bits": lambda: call("socket", ctypes.c_long(0x100000028), 1, 0),
    "TCP": lambda: call("socket", 2, 1, 6),
    "UDP over IPv6": lambda: call("socket", 10, 2 | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, 17),
    "SCTP": lambda: call("socket", 2, 1, 132),
    "SCTP by its type": lambda: call("socket", 10, 5 | socket.SOCK_CLOEXEC, 0),
    "DCCP": lambda: call("socket", 2, 6, 33),
    "DCCP by its type": lambda: call("socket", 2, 6, 0),
    "UDP-Lite": lambda: call("socket", 2, 2, 136),
    "MPTCP": lambda: call("socket", 10, 1, 262),
    "L2TP": lambda: call("socket", 2, 2, 115),
    "a protocol with other high bits": lambda: call("socket", 2, 1, ctypes.c_long(0x100000084)),
    "a type with other high bits": lambda: call("socket", 2, ctypes.c_long(0x100000006), 0),
    "line discipline": lambda: discipline(0),
    "oom_score_adj": lambda: oom(999),
    "oom_score_adj of none": lambda: oom(-1000),
}  # fmt: skip


def family(number: int) -> None:
    """Makes a socket of an address family, of any type that it has."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW):
        try:
            call("socket", number, kind, 0)
            return
        except OSError as error:
            last = error
    raise last


def _report(number: int) -> int:
    """An exit status for an error number; 0 is success."""
    return min(200, number)


def attempt(what: Callable[[], object]) -> str:
    """Makes the attempt in a separate process."""
    child = os.fork()
    if child == 0:
        try:
            what()
        except OSError as error:
            os._exit(_report(error.errno or 200))
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        return signal.Signals(-status).name
    return errno.errorcode.get(status, str(status)) if status else "ok"


if __name__ == "__main__":
    found = {name: attempt(what) for name, what in ATTEMPTS.items()}
    found |= {f"family {number}": attempt(lambda number=number: family(number)) for number in range(64)}  # type: ignore[misc]
    print(json.dumps(found))
