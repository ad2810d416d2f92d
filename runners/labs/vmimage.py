# SPDX-License-Identifier: BSD-2-Clause
"""The root file system of guests: an archive for the kernel's initramfs, made of this machine's own packages.

It contains only files of Debian's packages, so no keys and no data of the machine, and making it needs no root. The
kernel is one of Debian's that `runners/install.sh vm` has unpacked. The archive is made anew when a package, the kernel
or this file changes. Each guest's differences are in a second archive: the kernel unpacks one after the other.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from runners.cpio import Archive
from runners.labs.common import LabError, command

PACKAGES = (
    "base-passwd", "bash", "bubblewrap", "coreutils", "dash", "ethtool", "grep", "hostname", "iperf3", "iproute2",
    "iputils-ping", "kmod", "libc-bin", "libseccomp2", "mount", "netperf", "openssh-server", "perl-base", "procps",
    "python3", "sed", "tcpbench", "util-linux",
)  # fmt: skip
# Needed by scripts that configure packages, which this machine has done already, or that send mail or logs.
NOT_NEEDED = frozenset(
    {
        "adduser", "dbus", "debconf", "debianutils", "dpkg", "init-system-helpers", "libpam-runtime", "lsb-base",
        "media-types", "openssh-sftp-server", "passwd", "python3-distutils", "runit-helper",
        "sysvinit-utils", "ucf",
    }
)  # fmt: skip
NOT_OF_USE = re.compile(
    r"/usr/share/(doc|man|info|locale|lintian|bug|bash-completion|perl5)/|/usr/lib/python3[^/]*/test/"
)
MODULES = (
    "virtio_pci", "virtio_net", "virtio_blk", "virtio-rng", "tun", "dummy", "act_mirred", "cls_u32", "sch_ingress",
    "sch_fq", "sch_fq_codel", "sch_netem", "sch_tbf", "tcp_bbr", "tcp_dctcp", "sit", "ip_gre",
)  # fmt: skip
MERGED = re.compile(r"/(bin|sbin|lib|lib64)/")
DIRECTORIES = ("dev", "etc", "proc", "root", "run", "sys", "tmp", "var/tmp/perfweb", "lower")

INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin HOME=/root
if [ "$1" != again ]; then
	# A sandbox pivots its root, for which that must be a mount point, as the kernel's first one is none.
	mount --bind / /lower && cd /lower && mount --move . / && exec chroot . /init again
fi
cd /
mount -t proc -o nosuid,nodev,noexec proc /proc
mount -t sysfs -o nosuid,nodev,noexec sys /sys
[ -e /dev/null ] || mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /run/sshd
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
for directory in /dev/shm /tmp; do
	mount -t tmpfs -o mode=1777,nosuid,nodev tmp $directory
done
modprobe -a virtio_pci virtio_net virtio_blk virtio_rng tun sch_fq_codel
mount /dev/vda /var/tmp/perfweb
. /etc/perfweb/network
/usr/sbin/sshd -e -f /etc/perfweb/sshd.conf
echo "guest: up"
# The first process must not end, and adopts those whose parents have.
while :; do
	sleep 3600 &
	wait
done
"""
ACCOUNTS = """\
root:x:0:0::/root:/bin/bash
sshd:x:100:65534::/run/sshd:/usr/sbin/nologin
nobody:x:65534:65534::/:/usr/sbin/nologin
"""
GROUPS = "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"


def kernel_version(store: Path) -> str:
    """Returns the version of the kernel below the directory `store`. Raises LabError if there is none."""
    found = sorted(path.name for path in (store / "kernel" / "lib" / "modules").glob("*"))
    if not found:
        raise LabError(f"no kernel for guests in {store}: run runners/install.sh vm")
    return found[-1]


def kernel(store: Path) -> Path:
    """Returns the kernel below the directory `store`."""
    return store / "kernel" / "boot" / f"vmlinuz-{kernel_version(store)}"


def root_archive(store: Path) -> Path:
    """Returns the archive of all guests; makes it if it is missing or out of date."""
    versions = packages()
    made_of = [kernel_version(store), *sorted(map(" ".join, versions.items())), Path(__file__).read_text("utf-8")]
    archive = store / f"root-{hashlib.sha256(chr(10).join(made_of).encode()).hexdigest()[:12]}.cpio"
    if not archive.exists():
        new = archive.with_suffix(f".{os.getpid()}")
        try:
            _make(new, store, versions)
            for old in store.glob("root-*.cpio"):
                old.unlink()
            new.replace(archive)
        finally:
            new.unlink(missing_ok=True)
    return archive


def packages() -> dict[str, str]:
    """Returns the packages of a guest with all dependencies, and their versions. Raises LabError for a missing one."""
    fields = "${Package}\t${db:Status-Abbrev}\t${Version}\t${Pre-Depends}, ${Depends}\n"
    shown = command("dpkg-query", "-W", "-f", fields)
    installed = {}
    for line in shown.splitlines():
        name, status, version, needs = line.split("\t")
        if status.startswith("ii"):
            installed[name] = (version, needs)
    if missing := [name for name in PACKAGES if name not in installed]:
        raise LabError(f"a guest is made of packages of this machine; run runners/install.sh vm: {', '.join(missing)}")
    wanted, ahead = {}, list(PACKAGES)
    while ahead:
        name = ahead.pop()
        if name in installed and name not in wanted and name not in NOT_NEEDED:
            version, needs = installed[name]
            wanted[name] = version
            ahead += re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9.+-]*)", needs)
    return wanted


def _make(path: Path, store: Path, names: Iterable[str]) -> None:
    archive = Archive(path)
    for old in ("bin", "sbin", "lib", "lib64"):
        archive.add(old, stat.S_IFLNK | 0o777, f"usr/{old}".encode())
    for name in DIRECTORIES:
        archive.add(name, stat.S_IFDIR | 0o755)
    own = {"init": INIT, "etc/passwd": ACCOUNTS, "etc/group": GROUPS, "etc/mtab": ""}
    for name, text in own.items():
        archive.add(name, stat.S_IFREG | (0o755 if name == "init" else 0o644), text.encode())
    archive.add("etc/ld.so.cache", stat.S_IFREG | 0o644, Path("/etc/ld.so.cache").read_bytes())
    for file in _files(names):
        archive.copy(file, str(file).lstrip("/"))
    with tempfile.TemporaryDirectory() as stage:
        for file in _staged_modules(store, Path(stage)):
            archive.copy(file, f"usr/{file.relative_to(stage)}")
    archive.close()


def _files(names: Iterable[str]) -> Iterator[Path]:
    """Returns the files of packages by their place since Debian merged /usr, with Python's compiled files."""
    for line in command("dpkg-query", "-L", *names).splitlines():
        path = Path(MERGED.sub(r"/usr/\1/", line, count=1) if MERGED.match(line) else line)
        if not str(path).startswith("/usr/") or NOT_OF_USE.match(f"{path}/") or not os.path.lexists(path):
            continue
        yield path
        if path.suffix == ".py":
            yield from sorted(path.parent.glob(f"__pycache__/{path.stem}.cpython-*.pyc"))


def _staged_modules(store: Path, stage: Path) -> list[Path]:
    """Copies the modules of a guest and their dependencies below `stage`, with the kernel's lists of modules."""
    version = kernel_version(store)
    source = store / "kernel" / "lib" / "modules" / version
    by_name = {path.stem.replace("-", "_"): path for path in source.rglob("*.ko")}
    target = stage / "lib" / "modules" / version
    wanted, ahead = set(), [name.replace("-", "_") for name in MODULES]
    while ahead:
        name = ahead.pop()
        if name not in wanted and name in by_name:
            wanted.add(name)
            depends = re.search(rb"\0depends=([^\0]*)\0", by_name[name].read_bytes())
            ahead += [found.replace("-", "_") for found in (depends[1].decode() if depends else "").split(",") if found]
            copy = target / by_name[name].relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(by_name[name], copy)
    for listing in source.glob("modules.*"):
        shutil.copy(listing, target)
    command("depmod", "-b", str(stage), version)
    return sorted(stage.rglob("*"))


def own_archive(path: Path, files: Mapping[str, tuple[int, bytes]]) -> None:
    """Writes an archive for a single guest: the mode and content of each file."""
    archive = Archive(path)
    for name, (mode, data) in files.items():
        archive.add(name, stat.S_IFREG | mode, data)
    archive.close()
