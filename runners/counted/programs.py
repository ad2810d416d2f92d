# SPDX-License-Identifier: BSD-2-Clause
"""The programs of this lane: the compiler, and what it compiles once, the guest's program and QEMU's plugin."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

from runners.counted import store
from runners.counted.errors import CountedError
from runners.cpio import Archive

HERE = Path(__file__).parent
GUEST = HERE / "guest"
PLUGIN = HERE / "plugin.c"
_WARNINGS = ("-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{HERE}")


ENDS_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM")
"""Words before a program that ends even if this process is killed (setpriv(1), PR_SET_PDEATHSIG in prctl(2))."""


def toolchain() -> str:
    """Returns the versions of compiler and linker. Raises CountedError without one."""
    lines = []
    for tool in ("gcc", "ld"):
        try:
            printed = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            raise CountedError(f"{tool} is missing: run runners/install.sh kernel") from None
        lines.append(printed.partition("\n")[0])
    return "\n".join(lines)


def plugin(folder: Path) -> Path:
    """Returns the plugin of QEMU, as a shared library below `folder`. Raises CountedError."""
    sources = [PLUGIN, GUEST / "mark.h"]
    return _compiled(folder, "plugin.so", sources, "-shared", "-fPIC", "-fvisibility=hidden")


def initramfs(folder: Path, modules: Sequence[Path] = ()) -> Path:
    """Returns the archive of a guest's root, with its program and the modules that its kernel needs, in this order.

    Raises CountedError.
    """
    program = _compiled(folder, "init", sorted(GUEST.iterdir()), "-static")
    contents = [path.read_bytes() for path in (program, *modules)]

    def make(new: Path) -> None:
        archive = Archive(new / "root.cpio")
        archive.add("dev", stat.S_IFDIR | 0o755)
        archive.add("init", stat.S_IFREG | 0o755, contents[0])
        for path, content in zip(modules, contents[1:], strict=True):
            archive.add(f"modules/{path.name}", stat.S_IFREG | 0o644, content)
        archive.close()

    return store.made(folder / f"root-{store.key(*contents)}", make) / "root.cpio"


def _compiled(folder: Path, name: str, sources: Sequence[Path], *options: str) -> Path:
    key = store.key(name, toolchain(), *options, *_WARNINGS[:-1], *(path.read_bytes() for path in sources))

    def make(new: Path) -> None:
        words = ["gcc", *_WARNINGS, *options, "-o", str(new / name)]
        words += [str(path) for path in sources if path.suffix == ".c"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CountedError(f"{name} of the counted lane does not compile:\n{done.stderr}")

    return store.made(folder / key, make) / name
