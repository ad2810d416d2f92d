# SPDX-License-Identifier: BSD-2-Clause
"""A sandbox for untrusted programs: the build of a patch, and what it has built.

bubblewrap (bwrap(1)) gives it mounts, processes, System V objects, a host name and, unless it is for a measurement, a
network of its own. It sees /usr, a few harmless files of /etc and the listed paths. What it may write to is in memory
and has a limited size. It runs as a user id that no other program has, without capabilities, and in a user namespace of
its own where one can be made. It is the first to be killed when memory runs out.

The program gets a session keyring of its own, may make no user namespace, and runs under a filter of system calls
(module_utils/seccomp.py).

bubblewrap starts as root, so that neither unreadable directories above the listed paths nor a kernel without
unprivileged user namespaces are in the way. It drops root before the program starts.
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
"""Max bytes of any file that a program writes; a larger one gets SIGXFSZ."""
SCRATCH_LIMIT = 64 * MIB
"""Max bytes of /tmp, of /dev/shm, and of a directory that `mount_scratch` made."""
SCRATCH_FILES = 4096

MEMORY_LIMIT = 8 * 1024 * MIB
"""Max bytes of all untrusted programs of a host; without a control group, of address space of each process."""

# The limit of processes counts per user, which is per sandbox here.
LIMITS = {"fsize": FILE_LIMIT, "nproc": 512, "nofile": 16384, "core": 0}

# The readable files of /etc: search paths of compilers and libraries, and names of protocols.
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "nsswitch.conf", "protocols")
_BESIDE_USR = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_CPUS = "/sys/devices/system/cpu"
_ALONE = ("unshare", "--user", "--map-current-user", "--keep-caps", "--")

# The last steps before the program, which the program cannot undo. bubblewrap cannot load the filter, because its own
# steps need what the filter refuses. This is Perl because each sample starts here: Perl takes 2 ms, Python with ctypes
# 17 ms, and Debian always has it (Essential: yes). From util-linux 2.41 on setpriv(1) can load a filter. The steps run
# in a user namespace with the capabilities that `unshare` has kept; they forbid further namespaces and make /proc
# read-only.
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
    """The user and group id of a sandbox, and what it can see and write.

    `reads` has paths without symbolic links: the sandbox shows what is there when it is made, or the program does not
    start. `trusted` are paths that only the operator names, links included. `writes` maps directories of the host to
    their places in the sandbox. `network` is NO_NETWORK, HOST_NETWORK or the file of a network namespace. `scratch` has
    in-memory directories and their sizes in bytes; they end with the program.
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
        # setreuid(2) takes -1 as "no change", which would mean root.
        if not 0 < self.uid < 2**32 - 1:
            raise ValueError(f"{self.uid} is no user id for a sandbox: use 1 to {2**32 - 2}")


def confined(argv: Sequence[str], box: Sandbox) -> list[str]:
    """Returns the command that runs `argv` in a sandbox, for root to execute.

    Raises OSError for a link among `reads`.
    """
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
    """The file system arguments, from the shared parts to those of this sandbox."""
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
    """Makes /proc read-only in the last steps, in a user namespace, because a program could lower its oom_score_adj
    there.
    """
    if has_user_namespaces(uid):
        return ["--bind", "/proc/sys", "/proc/sys"]
    return ["--remount-ro", "/proc"]


def _shown(option: str, path: str, seen: str | None = None) -> list[str]:
    """Shows a path of the host at `seen`, or at the same path.

    bubblewrap would make the parent directories accessible to root alone.
    """
    seen = seen or path
    above = [word for parent in reversed(Path(seen).parents[:-1]) for word in ("--dir", str(parent))]
    return [*above, option, path, seen]


def _environment() -> list[str]:
    """The variables of all programs. Those of one sandbox are set after root was dropped: see `_given`."""
    words = ["--clearenv"]
    for name, value in {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}.items():  # noqa: S108
        words += ["--setenv", name, value]
    return words


def _given(box: Sandbox) -> list[str]:
    """The variables of this sandbox, for its program alone: PATH or LD_PRELOAD would choose what root runs before."""
    return ["env", "--", *(f"{name}={value}" for name, value in box.environment.items())] if box.environment else []


def _drop(box: Sandbox) -> list[str]:
    """The commands that switch from root to the user, in a user namespace without other users where one can be made."""
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
    """Returns whether the user may make a user namespace here: not in a chroot, and not if the kernel refuses."""
    return subprocess.run([*_become(uid), *_ALONE, "true"], capture_output=True, check=False).returncode == 0


def problem(uid: int) -> str:
    """Returns why no sandbox works on this host, with the tools' messages; empty if one works."""
    try:
        done = subprocess.run(confined(["true"], Sandbox(uid)), capture_output=True, text=True, check=False, timeout=10)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or f"status {done.returncode}"


def mount_scratch(directory: Path, uid: int, size: int = SCRATCH_LIMIT, files: int = SCRATCH_FILES) -> None:
    """Mounts an in-memory file system of `size` bytes and `files` inodes for one user; others can read it.

    `unmount_scratch` removes it with its content.
    """
    directory.mkdir(mode=0o755, exist_ok=True)
    unmount_scratch(directory)
    options = f"size={size},nr_inodes={files},mode=0755,uid={uid},gid={uid},nosuid,nodev,noexec"
    _run("mount", "-t", "tmpfs", "-o", options, "perfweb", str(directory))


@contextlib.contextmanager
def mounted_scratch(directory: Path, uid: int, size: int, files: int) -> Iterator[None]:
    """A context with a directory of `mount_scratch`."""
    mount_scratch(directory, uid, size, files)
    try:
        yield
    finally:
        unmount_scratch(directory)


def unmount_scratch(directory: Path) -> None:
    """Unmounts a directory that `mount_scratch` made, even if it is in use; does nothing for another one."""
    if directory.is_mount():
        _run("umount", "--lazy", str(directory))


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"`{' '.join(argv)}` failed: {done.stderr.strip()}")
