# SPDX-License-Identifier: BSD-2-Clause
"""The system calls that no program in a sandbox may make, as a seccomp filter (seccomp(2), SECCOMP_SET_MODE_FILTER).

The filter lists what is refused. A list of what is allowed would have to name all that compilers, meson, tools and
stacks use, in each version of their libraries. But system calls newer than LAST are refused, because nothing is known
about them; libraries then assume an older kernel (ENOSYS) and use other calls.

libseccomp writes the program, because it knows the numbers of each architecture and adds the check of the architecture.
It is called with ctypes: its Python binding is not on every host, but libseccomp itself is, because apt depends on it.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct
from collections.abc import Collection, Iterator

LAST = "set_mempolicy_home_node"
"""The newest system call that libseccomp 2.5.4 knows (Debian 12): number 450 on each architecture, of Linux 5.17."""
REFUSED = {
    "mounts": (
        "mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr "
        "name_to_handle_at open_by_handle_at quotactl quotactl_fd swapon swapoff acct sethostname setdomainname"
    ),
    "namespaces of others": "setns",
    "other processes": (
        "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp move_pages migrate_pages"
    ),
    "parts of the kernel that no program here uses and that had many holes": (
        "bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key "
        "fanotify_init fanotify_mark lookup_dcookie vhangup uselib modify_ldt nfsservctl"
    ),
    "the machine": (
        "kexec_load kexec_file_load init_module finit_module delete_module reboot syslog iopl ioperm "
        "settimeofday clock_settime clock_adjtime adjtimex"
    ),
}
"""Refused calls, grouped by what they reach; each fails with EPERM."""
FAMILIES = {1: "AF_UNIX", 2: "AF_INET", 10: "AF_INET6", 16: "AF_NETLINK"}
"""Address families of sockets that may be made.

All others fail with EAFNOSUPPORT, and of AF_NETLINK all protocols but NETLINK_ROUTE, which getaddrinfo(3) and
getifaddrs(3) use.
"""
TYPES = {1: "SOCK_STREAM", 2: "SOCK_DGRAM", 3: "SOCK_RAW"}
"""Types of sockets of AF_INET and AF_INET6 that may be made; all others fail with ESOCKTNOSUPPORT.  Raw ones need
CAP_NET_RAW."""
PROTOCOLS = {0: "the type's", 1: "IPPROTO_ICMP", 6: "IPPROTO_TCP", 17: "IPPROTO_UDP", 58: "IPPROTO_ICMPV6"}
"""Protocols of them; all others fail with EPROTONOSUPPORT.  The kernel loads a module for an unknown type or protocol,
also if an ordinary user makes the socket (inet_create() in net/ipv4/af_inet.c)."""
TYPE_MASK = 0xF
"""SOCK_TYPE_MASK of <linux/net.h>; SOCK_CLOEXEC and SOCK_NONBLOCK are above it."""
NAMESPACES = {
    "CLONE_NEWTIME": 0x80, "CLONE_NEWNS": 0x20000, "CLONE_NEWCGROUP": 0x2000000, "CLONE_NEWUTS": 0x4000000,
    "CLONE_NEWIPC": 0x8000000, "CLONE_NEWUSER": 0x10000000, "CLONE_NEWPID": 0x20000000, "CLONE_NEWNET": 0x40000000,
}  # fmt: skip
"""Refused flags of clone(2) and unshare(2); clone's lowest byte is a signal, which is not CLONE_NEWTIME."""
TERMINALS = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C, "TIOCSETD": 0x5423}
"""ioctl_tty(2), ioctl_console(2): the first two insert text into the input of a terminal, the last one has the kernel
load the module of a line discipline."""
WORD = 0xFFFFFFFF
"""The bits of an argument of type int."""
ASK = 0xFFFFFFFF
"""personality(2): this argument returns the present value and changes nothing."""

# <seccomp.h>
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NE, _EQ, _GE, _MASKED_EQ = 1, 4, 5, 7
_BAD_ARCHITECTURE = 2
# <linux/filter.h>: load a word, jump if greater, return
_LOAD, _GREATER, _RETURN = 0x20, 0x25, 0x06


class _Comparison(ctypes.Structure):
    """struct scmp_arg_cmp: the number of an argument, an operator and what it is compared with."""

    _fields_ = (
        ("argument", ctypes.c_uint), ("operator", ctypes.c_int), ("first", ctypes.c_uint64), ("second", ctypes.c_uint64)
    )  # fmt: skip


@functools.cache
def library() -> ctypes.CDLL:
    """Loads libseccomp. Raises OSError if it is missing."""
    try:
        return ctypes.CDLL("libseccomp.so.2")
    except OSError:
        raise OSError("libseccomp.so.2 is missing on this host: install libseccomp2") from None


class _Filter:
    """A filter of libseccomp, which allows what no rule refuses."""

    def __init__(self) -> None:
        self.library = library()
        self.library.seccomp_init.restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.library.seccomp_init(ctypes.c_uint32(_ALLOW)))
        if not self.context:
            raise OSError("libseccomp made no filter")
        # Numbers of another architecture, and of x32, would name other system calls.
        self._check(
            self.library.seccomp_attr_set(self.context, _BAD_ARCHITECTURE, ctypes.c_uint32(_ERRNO | errno.ENOSYS))
        )

    def refuse(self, call: str, error: int, *comparisons: tuple[int, ...]) -> None:
        """Makes a call fail if all comparisons hold."""
        array = (_Comparison * len(comparisons))(*(_Comparison(*one) for one in comparisons))
        rule = self.library.seccomp_rule_add_array
        self._check(rule(self.context, ctypes.c_uint32(_ERRNO | error), number(call), len(comparisons), array))

    def export(self) -> bytes:
        """Returns the program for the kernel."""
        with open(os.memfd_create("seccomp"), "rb") as file:
            self._check(self.library.seccomp_export_bpf(self.context, file.fileno()))
            self.library.seccomp_release(self.context)
            file.seek(0)
            return file.read()

    @staticmethod
    def _check(result: int) -> None:
        if result != 0:
            raise OSError(-result, f"libseccomp: {os.strerror(-result)}")


@functools.cache
def number(call: str) -> int:
    """Returns the number of a system call on this architecture. Raises OSError without a usable libseccomp."""
    found: int = library().seccomp_syscall_resolve_name(call.encode())
    if found == -1:
        raise OSError(f"libseccomp does not know the system call {call}: install version 2.5.4 or newer")
    return found


@functools.cache
def program() -> bytes:
    """Returns the filter as instructions of 8 bytes (struct sock_filter).

    Raises OSError without a usable libseccomp.
    """
    made = _Filter()
    for calls in REFUSED.values():
        for call in calls.split():
            made.refuse(call, errno.EPERM)
    for flag in NAMESPACES.values():
        made.refuse("unshare", errno.EPERM, (0, _MASKED_EQ, flag, flag))
        if flag > 0xFF:
            made.refuse("clone", errno.EPERM, (0, _MASKED_EQ, flag, flag))
    # The flags of clone3(2) are in memory, where no filter sees them; the C library falls back to clone(2).
    made.refuse("clone3", errno.ENOSYS)
    for call in ("socket", "socketpair"):
        _refuse_sockets(made, call)
    for request in TERMINALS.values():
        made.refuse("ioctl", errno.EPERM, (1, _MASKED_EQ, WORD, request))
    made.refuse("personality", errno.EPERM, (0, _NE, ASK))
    return _refuse_above(number(LAST)) + made.export()


def _refuse_sockets(made: _Filter, call: str) -> None:
    for family in range(max(FAMILIES)):
        if family not in FAMILIES:
            made.refuse(call, errno.EAFNOSUPPORT, (0, _EQ, family))
    made.refuse(call, errno.EAFNOSUPPORT, (0, _GE, max(FAMILIES) + 1))
    made.refuse(call, errno.EAFNOSUPPORT, (0, _EQ, 16), (2, _NE, 0))
    for family in (2, 10):
        for kind, mask in _others(TYPES, TYPE_MASK):
            made.refuse(call, errno.ESOCKTNOSUPPORT, (0, _EQ, family), (1, _MASKED_EQ, mask, kind))
        for protocol, mask in _others(PROTOCOLS, WORD):
            made.refuse(call, errno.EPROTONOSUPPORT, (0, _EQ, family), (2, _MASKED_EQ, mask, protocol))


def _others(allowed: Collection[int], mask: int) -> Iterator[tuple[int, int]]:
    """All values within a mask that are not allowed, as pairs of a value and the mask under which others are it.

    libseccomp compares an argument once in a rule.  The numbers that begin with the same bits as an allowed one and
    differ in the next are one block.
    """
    bits = [1 << place for place in reversed(range(mask.bit_length()))]
    for bit in bits:
        above = mask & ~(2 * bit - 1)
        begins = {number & above for number in allowed}
        for value in sorted(value for begin in begins for value in (begin, begin | bit)):
            if value not in {number & (above | bit) for number in allowed}:
                yield value, above | bit


def _refuse_above(last: int) -> bytes:
    """Instructions before those of libseccomp, which has no ranges; jumps are relative.

    x32 numbers exceed LAST, too.
    """
    rows = ((_LOAD, 0, 0, 0), (_GREATER, 0, 1, last), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS))
    return b"".join(struct.pack("<HBBI", *row) for row in rows)
