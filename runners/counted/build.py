# SPDX-License-Identifier: BSD-2-Clause
"""A tree of the kernel becomes a kernel, once for each tree, configuration and compiler.

The build is in a directory that all trees of a base share, so make(1) compiles only what differs from the tree before.
It runs with the rights of its user, so it is for trees and patches that this user trusts.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from perfweb.counted import diagnostics
from perfweb.counted.diagnostics import Diagnostic
from runners.counted import make, store
from runners.counted.make import CONFIG, PRINTED, SYMBOLS, TARGET, Make
from runners.counted.programs import toolchain
from runners.counted.progress import Progress
from runners.counted.sources import Sources


@dataclass(frozen=True)
class Kernel:
    """A kernel in the store: the directory of its image, its symbols, its configuration and what the build printed."""

    folder: Path

    @property
    def image(self) -> Path:
        return self.folder / TARGET

    @property
    def symbols(self) -> Path:
        return self.folder / SYMBOLS

    @property
    def printed(self) -> str:
        """What the compiler and the linker printed for the files that were compiled."""
        return (self.folder / PRINTED).read_text(encoding="utf-8", errors="replace")


class Builder:
    """Builds kernels of one base with one configuration."""

    def __init__(self, sources: Sources, kernels: Path, fragment: str, progress: Progress) -> None:
        self.sources = sources
        self.kernels = kernels
        self.fragment = fragment
        self.progress = progress
        self.tools = toolchain()
        self.output = sources.folder / f"build-{store.key(fragment, self.tools)}"

    def kernel(self, tree: str, base: str = "") -> Kernel:
        """Returns the kernel of a tree, which is a base, or a patched `base`. Raises BuildError and CountedError."""
        name = store.key(tree, self.fragment, self.tools, Path(make.__file__).read_bytes())
        return Kernel(store.made(self.kernels / name, lambda new: self._build(tree, base or tree, new)))

    def new_warnings(self, base: Kernel, patched: Kernel) -> list[Diagnostic]:
        """Returns the warnings that the patched kernel has and no unpatched one of this base had.

        A build prints the warnings of what it compiled, which can be a few files. So those of bases are collected.
        """
        return diagnostics.new_warnings(self._known_warnings(base.printed), patched.printed)

    def _known_warnings(self, printed: str) -> set[str]:
        """Returns the warnings of all builds of bases, with those that the last one printed."""
        file = self.output / "warnings-of-bases"
        known = set(file.read_text(encoding="utf-8").splitlines()) if file.exists() else set()
        known |= {one.identity for one in diagnostics.warnings(printed)}
        if self.output.exists():
            file.write_text("".join(f"{one}\n" for one in sorted(known)), encoding="utf-8")
        return known

    def _build(self, tree: str, base: str, new: Path) -> None:
        """Builds a tree, a patched one after a check-out of its base. So all files of the patch are compiled again, and
        print their warnings, even if an earlier version of the patch has changed them in the same way.
        """
        with store.alone(self.sources.folder):
            self.progress.detail("checking out")
            for each in dict.fromkeys((base, tree)):
                self.sources.check_out(each)
            made = Make(self.sources.work_tree, self.output, self.fragment, self.progress)
            try:
                made.build()
            finally:
                if tree == base:  # an interrupted build is continued, and does not print these warnings again
                    self._known_warnings(made.printed)
            for name in (TARGET, SYMBOLS, CONFIG):
                shutil.copy(self.output / name, new / name)
            (new / PRINTED).write_text(made.printed, encoding="utf-8")
