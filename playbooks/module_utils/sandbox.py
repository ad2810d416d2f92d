# SPDX-License-Identifier: BSD-2-Clause
"""A sandbox for untrusted programs: the build of a change, and what it has built.

bubblewrap (bwrap(1)) gives it mounts, processes, System V objects, a host name and, unless it is to measure, a network
of its own. What it sees is /usr, a few harmless files of /etc and what it is explicitly shown; what it may write
to lies in memory and has a size. It runs as a user that nobody else has, who has no capability, in a user namespace of
his own where one can be made, and gets the first kill when memory runs out.

The program gets a session keyring of its own, may make no user namespace, and runs under a filter of system calls
(module_utils/seccomp.py).

bubblewrap starts as root, so that neither unreadable directories above what is shown nor a kernel that keeps user
namespaces from ordinary users are in the way, and gives up root before the program begins.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import beneath, memory_group, seccomp

MIB = 1024 * 1024
FILE_LIMIT = 64 * MIB
"""Bytes in any file that a program writes; one that writes more gets SIGXFSZ."""
SCRATCH_LIMIT = 64 * MIB
"""Bytes in /tmp, in /dev/shm, and in a directory that `mount_scratch` made."""
SCRATCH_FILES = 4096

MEMORY_LIMIT = 8 * 1024 * MIB
"""Bytes of all untrusted programs of a host, or where no control group can be made, of addresses of each process."""

# The number of processes is the user's, and so that of the sandbox.
LIMITS = {"fsize": FILE_LIMIT, "nproc": 512, "nofile": 16384, "core": 0}

# Of /etc: where compilers and libraries are found, and the names of protocols.
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "nsswitch.conf", "protocols")
_BESIDE_USR = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_CPUS = "/sys/devices/system/cpu"
_ALONE = ("unshare", "--user", "--map-current-user", "--keep-caps", "--")

# The last steps before the program, which may undo none of them.  The steps before need what the filter refuses, so
# bubblewrap cannot load the filter.  This is Perl because each sample starts here: Perl takes 2 ms, Python with ctypes
# 17 ms, and Debian always has it (Essential: yes).  From util-linux 2.41 on setpriv(1) can load a filter.
# In a user namespace, with the capabilities that `unshare` has kept: no further one, and a read-only /proc.
_LAST_STEPS = r"""
my ($alone, $unshare, $mount_setattr, $keyctl, $capset, $seccomp, $filter, $reads) = splice @ARGV, 0, 8;
my ($CLONE_NEWNS, $AT_FDCWD, $AT_RECURSIVE, $MOUNT_ATTR_RDONLY) = (0x20000, -100, 0x8000, 1);
my ($KEYCTL_JOIN_SESSION_KEYRING, $_LINUX_CAPABILITY_VERSION_3, $SECCOMP_SET_MODE_FILTER) = (1, 0x20080522, 1);
sub call {
	my ($what, $number, @arguments) = @_;
	syscall($number, @arguments) >= 0 or die "sandbox: $what: $!\n";
}
if ($alone) {
	open my $limit, ">", "/proc/sys/user/max_user_namespaces" or die "sandbox: max_user_namespaces: $!\n";
	syswrite $limit, "0" or die "sandbox: max_user_namespaces: $!\n";
	close $limit;
	my ($proc, $attributes) = ("/proc", pack("Q4", $MOUNT_ATTR_RDONLY, 0, 0, 0));
	call("mount namespace", $unshare, $CLONE_NEWNS);
	call("read-only /proc", $mount_setattr, $AT_FDCWD, $proc, $AT_RECURSIVE, $attributes, length $attributes);
}
for (1 .. $reads) {
	my ($path, $identity) = splice @ARGV, 0, 2;
	my ($device, $inode) = lstat $path;
	my $found = defined $device ? "$device:$inode" : "none";
	$found eq $identity or die "sandbox: $path was exchanged: it is $found and was $identity\n";
}
call("session keyring", $keyctl, $KEYCTL_JOIN_SESSION_KEYRING, 0);
my ($header, $none) = (pack("L2", $_LINUX_CAPABILITY_VERSION_3, 0), "\0" x 24);
call("capabilities", $capset, $header, $none);
my $code = pack "H*", $filter;
my $program = pack "S x![P] P", length($code) / 8, $code;
call("filter of system calls", $seccomp, $SECCOMP_SET_MODE_FILTER, 0, $program);
exec { $ARGV[0] } @ARGV or print STDERR "sandbox: $ARGV[0] cannot be executed: $!\n";
exit 127;
"""
_CALLS = ("unshare", "mount_setattr", "keyctl", "capset", "seccomp")

NO_NETWORK = "none"
HOST_NETWORK = "host"


@dataclass(frozen=True)
class Sandbox:
    """Who runs in it, as a user and a group of that number, and what he gets.

    `reads` has paths to which no symbolic link leads: what is seen in the sandbox is what is there when it is made, or
    the program does not begin.  `trusted` are paths that the operator alone names, links included.
    `writes` has directories of the host and where each is seen.
    `network` is NO_NETWORK, HOST_NETWORK or the file of a network namespace. `scratch` has directories in memory and
    how many bytes they hold; they are gone with the program.
    """

    uid: int
    reads: Sequence[str] = ()
    trusted: Sequence[str] = ()
    writes: Mapping[str, str] = field(default_factory=dict)
    devices: Sequence[str] = ()
    network: str = NO_NETWORK
    scratch: Mapping[str, int] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str = "/"

    def __post_init__(self) -> None:
        # To setreuid(2) -1 means no change, and so root.
        if not 0 < self.uid < 2**32 - 1:
            raise ValueError(f"{self.uid} is no user id for a sandbox: use 1 to {2**32 - 2}")


def confined(argv: Sequence[str], box: Sandbox) -> list[str]:
    """The words that run `argv` in a sandbox, for root to execute.  Raises OSError for a link among its `reads`."""
    return [
        *_enter(box.network), *_limited(), "choom", "-n", "1000", "--", "bwrap", *_namespaces(box), *_view(box),
        *_environment(), "--chdir", box.directory, "--", *_drop(box), *_given(box), *argv,
    ]  # fmt: skip


def _limited() -> list[str]:
    group = memory_group.joined_by(MEMORY_LIMIT)
    join = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', group] if group else []
    limits = LIMITS if group else {**LIMITS, "as": MEMORY_LIMIT}
    return [*join, "prlimit", *(f"--{name}={value}" for name, value in limits.items())]


def _enter(network: str) -> list[str]:
    return [] if network in {NO_NETWORK, HOST_NETWORK} else ["nsenter", f"--net={network}", "--"]


def _namespaces(box: Sandbox) -> list[str]:
    words = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox"]
    words += ["--die-with-parent", "--new-session"]
    return [*words, "--unshare-net"] if box.network == NO_NETWORK else words


def _view(box: Sandbox) -> list[str]:
    """The file system, from what all see to what only this one sees."""
    words = ["--ro-bind", "/usr", "/usr"]
    for path in (Path("/", name) for name in _BESIDE_USR):
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            words += ["--ro-bind", str(path), str(path)]
    for read in (*(f"/etc/{name}" for name in _ETC), _CPUS):
        words += _shown("--ro-bind-try", read)
    words += ["--proc", "/proc", *_proc(box.uid), "--dev", "/dev"]
    for directory, size in {"/tmp": SCRATCH_LIMIT, "/dev/shm": SCRATCH_LIMIT, **box.scratch}.items():  # noqa: S108
        words += ["--perms", "1777", "--size", str(size), "--tmpfs", directory]
    for option, paths in (("--ro-bind-try", [*box.trusted, *box.reads]), ("--dev-bind", box.devices)):
        for shown in paths:
            words += _shown(option, shown)
    for source, seen in box.writes.items():
        words += _shown("--bind", source, seen)
    return words


def _proc(uid: int) -> list[str]:
    """A program could lower its oom_score_adj in /proc; in a user namespace its last steps make that read-only."""
    if has_user_namespaces(uid):
        return ["--bind", "/proc/sys", "/proc/sys"]
    return ["--remount-ro", "/proc"]


def _shown(option: str, path: str, seen: str | None = None) -> list[str]:
    """Shows a path of the host at `seen`, or where it is.

    bubblewrap would make the directories above it for root alone.
    """
    seen = seen or path
    above = [word for parent in reversed(Path(seen).parents[:-1]) for word in ("--dir", str(parent))]
    return [*above, option, path, seen]


def _environment() -> list[str]:
    """The variables of all programs.  Those of one box are set when root has been given up: see `_given`."""
    words = ["--clearenv"]
    for name, value in {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}.items():  # noqa: S108
        words += ["--setenv", name, value]
    return words


def _given(box: Sandbox) -> list[str]:
    """The variables of this box, for its program alone: PATH or LD_PRELOAD would choose what root runs before."""
    return ["env", "--", *(f"{name}={value}" for name, value in box.environment.items())] if box.environment else []


def _drop(box: Sandbox) -> list[str]:
    """The words that turn root into the user, in a user namespace that maps no other user where one can be made."""
    alone = has_user_namespaces(box.uid)
    numbers = (str(seccomp.number(call)) for call in _CALLS)
    reads = [word for path in box.reads for word in (path, beneath.identity(path))]
    lock = ["perl", "-e", _LAST_STEPS, str(int(alone)), *numbers, seccomp.program().hex(), str(len(box.reads)), *reads]
    return [*_become(box.uid), *(_ALONE if alone else ()), *lock]


def _become(uid: int) -> list[str]:
    words = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--no-new-privs"]
    return [*words, "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--"]


@functools.cache
def has_user_namespaces(uid: int) -> bool:
    """Whether the user may make a user namespace on this host: in a chroot nobody may, and a kernel can refuse it."""
    return subprocess.run([*_become(uid), *_ALONE, "true"], capture_output=True, check=False).returncode == 0


def problem(uid: int) -> str:
    """Why no program can run in a sandbox on this host, in the words of the tools; empty if one can."""
    try:
        done = subprocess.run(confined(["true"], Sandbox(uid)), capture_output=True, text=True, check=False, timeout=10)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or f"status {done.returncode}"


def mount_scratch(directory: Path, uid: int, size: int = SCRATCH_LIMIT, files: int = SCRATCH_FILES) -> None:
    """Mounts a file system in memory of `size` bytes and `files` inodes for one user; others can read it.

    `unmount_scratch` removes it with its content.
    """
    directory.mkdir(mode=0o755, exist_ok=True)
    unmount_scratch(directory)
    options = f"size={size},nr_inodes={files},mode=0755,uid={uid},gid={uid},nosuid,nodev,noexec"
    _run("mount", "-t", "tmpfs", "-o", options, "perfweb", str(directory))


@contextlib.contextmanager
def mounted_scratch(directory: Path, uid: int, size: int, files: int) -> Iterator[None]:
    """`mount_scratch` for as long as the context lasts."""
    mount_scratch(directory, uid, size, files)
    try:
        yield
    finally:
        unmount_scratch(directory)


def unmount_scratch(directory: Path) -> None:
    """The end of a directory that `mount_scratch` made, also while somebody uses it; nothing if it is none."""
    if directory.is_mount():
        _run("umount", "--lazy", str(directory))


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"`{' '.join(argv)}` failed: {done.stderr.strip()}")
