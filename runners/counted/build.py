# SPDX-License-Identifier: BSD-2-Clause
"""A tree of the kernel becomes a kernel, once for each tree, configuration and compiler.

The build is reproducible: its time, user, host and number are fixed. It is out of tree, in a directory that all trees
of a base share, so make(1) compiles only what differs from the tree before. ccache keeps what other directories
compiled. It runs with the rights of its user, so it is for trees and patches that this user trusts.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runners.counted import config, diagnostics, store
from runners.counted.children import ENDS_WITH_PARENT
from runners.counted.diagnostics import Diagnostic
from runners.counted.errors import BuildError, CountedError
from runners.counted.progress import Progress
from runners.counted.sources import Sources

FIXED = {
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01",
    "KBUILD_BUILD_USER": "perfweb",
    "KBUILD_BUILD_HOST": "perfweb",
    "KBUILD_BUILD_VERSION": "1",
    "KCONFIG_NOTIMESTAMP": "1",
    "LOCALVERSION": "",
    "LC_ALL": "C",
}
INHERITED = ("PATH", "HOME", "TMPDIR")
"""Variables of the caller that a build gets, beside ccache's. Others, such as KCFLAGS or LLVM, change the kernel."""

TARGET = "vmlinux"
SYMBOLS = "System.map"
PRINTED = "printed"
CONFIG = ".config"
_STEP = re.compile(rb"echo '  [A-Z]+ ")
"""A command in which Kbuild names a file that it makes."""


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
        name = store.key(tree, self.fragment, self.tools, Path(__file__).read_bytes())
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
            self.output.mkdir(exist_ok=True)
            self._configure()
            try:
                self._compile()
            finally:
                if tree == base:  # an interrupted build is continued, and does not print these warnings again
                    self._known_warnings(self._printed())
            for name in (TARGET, SYMBOLS, CONFIG):
                shutil.copy(self.output / name, new / name)
            (new / PRINTED).write_text(self._printed(), encoding="utf-8")

    def _configure(self) -> None:
        wanted = self.output / "wanted.config"
        wanted.write_text(self.fragment, encoding="utf-8")
        self._errors.unlink(missing_ok=True)
        self._make("allnoconfig", {"KCONFIG_ALLCONFIG": str(wanted)})
        if wrong := config.missing(self.fragment, (self.output / CONFIG).read_text(encoding="utf-8")):
            shown = ", ".join(f"{name} is {value}" for name, value in wrong.items())
            raise CountedError(f"the tree cannot be configured for this lane: {shown}")

    def _compile(self) -> None:
        """Builds the kernel. For the first one in this directory, at first counts the files."""
        files = 0
        if not (self.output / TARGET).exists():
            self._make("prepare")
            files = self._missing()
        self._make(TARGET, files=files)

    def _missing(self) -> int:
        """Returns how many files make would make (-n), nearly: it ends at an archive that needs them."""
        words, environment = self._command("-n", TARGET)
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)
        return len(_STEP.findall(done.stdout))

    def _command(self, *words: str) -> tuple[list[str], dict[str, str]]:
        """Returns a call of make with its environment."""
        jobs = len(os.sched_getaffinity(0))
        command = [*ENDS_WITH_PARENT, "make", "-C", str(self.sources.work_tree), f"O={self.output}", f"-j{jobs}"]
        return [*command, "CC=ccache gcc", "HOSTCC=ccache gcc", *words], {**_inherited(), **FIXED}

    def _make(self, target: str, more: Mapping[str, str] | None = None, files: int = 0) -> None:
        """Makes a target; shows each compiled file, as a part of `files` if they are known. Raises BuildError."""
        words, environment = self._command(target)
        with self._errors.open("a") as errors:
            done = self._follow(words, {**environment, **(more or {})}, errors.fileno(), files)
        if done != 0:
            raise BuildError(f"it does not build:\n{diagnostics.reason(self._printed())}")

    @property
    def _errors(self) -> Path:
        return self.output / "errors"

    def _printed(self) -> str:
        return self._errors.read_text(encoding="utf-8", errors="replace") if self._errors.exists() else ""

    def _follow(self, words: list[str], environment: Mapping[str, str], errors: int, files: int) -> int:
        count = 0
        with subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True,
            errors="replace",
        ) as process:  # fmt: skip
            try:
                assert process.stdout is not None  # noqa: S101
                for line in process.stdout:
                    step = line.split()
                    if len(step) == 2 and step[0].isupper():
                        count += 1
                        if files:
                            self.progress.share(count, files, "files")
                        else:
                            self.progress.detail(f"{count} files, {step[1]}")
            except BaseException:
                process.terminate()
                raise
        return process.returncode


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in INHERITED or name.startswith("CCACHE_")}


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
