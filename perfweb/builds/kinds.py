# SPDX-License-Identifier: BSD-2-Clause
"""The kinds of repositories: which files a patch may change, and how long git may work on it."""

from collections.abc import Sequence
from dataclasses import dataclass

_PREFIXES = {"a", "b", "c", "i", "o", "w", "1", "2"}
"""Of paths in a diff, by git-config(1), diff.mnemonicPrefix."""


@dataclass(frozen=True)
class Kind:
    """`root` is the folder that patches may change, empty for all of the tree; `seconds` limit all calls of git.

    `title` is what its sources are, `targets` are those of a plan that are built from them, and `matrix` is the name of
    the usual tests of a patch. Files that match `left_out`, in words of gitglossary(7), are in no archive of sources.
    `packed_later` is whether an archive takes longer than a request may (perfweb.builds.packing).
    """

    name: str
    title: str
    root: str
    seconds: float
    targets: tuple[str, ...]
    matrix: str
    left_out: tuple[str, ...] = ()
    packed_later: bool = False

    def allows(self, path: str) -> bool:
        """Return whether a patch may change the file at `path`."""
        return not self.root or path.startswith(f"{self.root}/")

    @property
    def pathspec(self) -> Sequence[str]:
        """Return words for git that leave out the files that no patch may change."""
        return (f"{self.root}/",) if self.root else ()

    @property
    def where(self) -> str:
        """Return the place of its files in words."""
        return f"below {self.root}/" if self.root else "in this repository"

    def path(self, name: str) -> str:
        """Return the path that a diff means by `name`, without its prefix; empty if no patch may change it."""
        if not self.root:
            first, _, rest = name.partition("/")
            return rest if is_prefix(first) else name
        begin = name.find(f"{self.root}/")
        return name[begin:] if begin >= 0 else ""


def is_prefix(part: str) -> bool:
    """Return whether the first part of a path in a diff is one that git puts before it."""
    return part in _PREFIXES


# What a kernel that counts (perfweb/counted/configurations/) does not compile: without it the sources fit into a
# request to a host. Kconfig files and Makefiles stay, because the configuration reads all of them.
_ARCHITECTURES = (
    "alpha", "arc", "arm", "arm64", "csky", "hexagon", "ia64", "loongarch", "m68k", "microblaze", "mips", "nios2",
    "openrisc", "parisc", "powerpc", "riscv", "s390", "sh", "sparc", "xtensa",
)  # fmt: skip
_DRIVERS = (
    "ata", "clk", "crypto", "gpu", "hwmon", "i2c", "iio", "infiniband", "input", "isdn", "leds", "md", "media",
    "message", "mfd", "misc", "mmc", "mtd", "net/can", "net/dsa", "net/ethernet", "net/wan", "net/wireless", "nvme",
    "phy", "pinctrl", "platform", "power", "regulator", "s390", "scsi", "soc", "spi", "staging", "target",
    "thermal", "usb", "video",
)  # fmt: skip
_FILE_SYSTEMS = (
    "btrfs", "ceph", "cifs", "ext4", "f2fs", "gfs2", "jffs2", "nfs", "nfsd", "ntfs3", "ocfs2", "reiserfs", "smb", "xfs",
)  # fmt: skip
_NOT_COMPILED = (
    "Documentation/**/*.*",
    "sound/**/*.[ch]",
    "tools/perf/**",
    "tools/testing/**",
    *(f"arch/{name}/**/*.{ending}" for name in _ARCHITECTURES for ending in ("[chS]", "dts*")),
    *(f"drivers/{name}/**/*.[ch]" for name in _DRIVERS),
    *(f"fs/{name}/**/*.[ch]" for name in _FILE_SYSTEMS),
)

STACK = Kind("stack", "the stack", root="stack", seconds=20.0, targets=("stack", "sim"), matrix="tcp-quick")
LINUX = Kind(
    "linux", "the Linux kernel", root="", seconds=120.0, targets=("linux",), matrix="linux-patch-quick",
    left_out=_NOT_COMPILED, packed_later=True,
)  # fmt: skip
KINDS = {kind.name: kind for kind in (STACK, LINUX)}
