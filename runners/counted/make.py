# SPDX-License-Identifier: BSD-2-Clause
"""make(1) builds a kernel of a directory of sources, out of tree: what of a build executes the sources.

The build is reproducible: its time, user, host and number are fixed. The output directory may hold an earlier build, of
which only what differs is compiled. ccache keeps what other directories compiled.

    python3 -m runners.counted.make SOURCES OUTPUT PREFIX [CONFIGURATION ...]

builds for the service, in a sandbox (lane.py): it installs the kernel, the guest's root and QEMU's plugin below PREFIX.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfweb.counted import diagnostics
from runners.counted import config, programs
from runners.counted.errors import BuildError, CountedError
from runners.counted.programs import ENDS_WITH_PARENT
from runners.counted.progress import Progress

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
CONFIG = ".config"
PRINTED = "printed"
LANE = Path(__file__).resolve().parents[2]
"""The directory of these programs, which boots need, too."""
_STEP = re.compile(rb"echo '  [A-Z]+ ")
"""A command in which Kbuild names a file that it makes."""


class Make:
    """Builds the sources below `source` in the directory `output` with the options of a fragment.

    Without a `bar` nobody waits for the number of files, which takes time to find.
    """

    def __init__(self, source: Path, output: Path, fragment: str, progress: Progress, *, bar: bool = True) -> None:
        self.source = source
        self.output = output
        self.fragment = fragment
        self.progress = progress
        self.bar = bar
        self.environment = {**_inherited(), **FIXED}

    def build(self) -> None:
        """Makes the image and the table of symbols. Raises BuildError and CountedError."""
        self.output.mkdir(exist_ok=True)
        self._configure()
        self._compile()

    @property
    def printed(self) -> str:
        """What the compiler and the linker printed in the last build."""
        return self._errors.read_text(encoding="utf-8", errors="replace") if self._errors.exists() else ""

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
        if self.bar and not (self.output / TARGET).exists():
            self._make("prepare")
            files = self._missing()
        self._make(TARGET, files=files)

    def _missing(self) -> int:
        """Returns how many files make would make (-n), nearly: it ends at an archive that needs them."""
        done = subprocess.run(
            self._command("-n", TARGET), stdin=subprocess.DEVNULL, capture_output=True, env=self.environment,
            check=False,
        )  # fmt: skip
        return len(_STEP.findall(done.stdout))

    def _command(self, *words: str) -> list[str]:
        """Returns a call of make."""
        jobs = len(os.sched_getaffinity(0))
        command = [*ENDS_WITH_PARENT, "make", "-C", str(self.source), f"O={self.output}", f"-j{jobs}"]
        return [*command, "CC=ccache gcc", "HOSTCC=ccache gcc", *words]

    def _make(self, target: str, more: Mapping[str, str] | None = None, files: int = 0) -> None:
        """Makes a target; shows each compiled file, as a part of `files` if they are known. Raises BuildError."""
        with self._errors.open("a") as errors:
            done = self._follow(self._command(target), {**self.environment, **(more or {})}, errors.fileno(), files)
        if done != 0:
            raise BuildError(f"it does not build:\n{diagnostics.reason(self.printed)}")

    @property
    def _errors(self) -> Path:
        return self.output / "errors"

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


PLUGIN, ROOT = "plugin.so", "root.cpio"


def install(source: Path, output: Path, prefix: Path, words: Sequence[str]) -> None:
    """Builds a kernel with the options of `words`, and installs what a boot needs. Raises CountedError and OSError."""
    made = Make(source, output, config.fragment(words), Progress(sys.stdout), bar=False)
    made.build()
    print(made.printed)  # warnings, for the log of the build
    for name in (TARGET, SYMBOLS):
        shutil.copy(output / name, prefix / name)
    shutil.copy(output / CONFIG, prefix / "config")
    (prefix / PRINTED).write_text(made.printed, encoding="utf-8")
    folder = output.with_name("programs")
    shutil.copy(programs.plugin(folder), prefix / PLUGIN)
    shutil.copy(programs.initramfs(folder), prefix / ROOT)
    shutil.copytree(LANE, prefix / LANE.name)


def main(argv: Sequence[str]) -> int:
    """Entry point of the build in a sandbox; its last lines name why a build failed."""
    source, output, prefix = map(Path, argv[:3])
    try:
        install(source.absolute(), output.absolute(), prefix, argv[3:])
    except CountedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
