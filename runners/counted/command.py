# SPDX-License-Identifier: BSD-2-Clause
"""Compares a base of the kernel with the same base and patches, from the sources to the verdict."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from perfweb.counted import comparison, costs
from perfweb.counted.comparison import LoadComparison
from perfweb.counted.costs import BootCosts
from perfweb.counted.diagnostics import Diagnostic
from runners.counted import config, programs, store
from runners.counted.boot import Boot, Machine, boot
from runners.counted.build import Builder, Kernel
from runners.counted.counts import Symbols
from runners.counted.errors import BootError, BuildError, CountedError
from runners.counted.progress import Progress
from runners.counted.sources import Sources

SIDES = ("base", "patched")
Side = Sequence[Mapping[str, BootCosts]]
"""What each load costs on each boot of a kernel."""
_NUMBERED = re.compile(rb"^Subject: \[[^]\n]{0,80}\d/\d{1,3}\]", re.MULTILINE)
"""The subject of one mail of a series, as git-format-patch(1) writes it."""


@dataclass(frozen=True)
class Request:
    """A base, its patches with their names, and how to compare them; `var` has all files of this lane."""

    base: Path
    patches: Sequence[tuple[str, bytes]]
    var: Path
    commit: str = "HEAD"
    configuration: Sequence[str] = ()
    only: str = ""
    boots: int = 3
    limit: float = 120.0


@dataclass(frozen=True)
class KernelSources:
    """The commit of a base, empty for a directory without git; its tree after the patches, the configurations and
    options beside `small`, and the versions of compiler and linker.
    """

    commit: str
    tree: str
    configuration: Sequence[str]
    toolchain: str


@dataclass(frozen=True)
class Result:
    """The comparison of each load, the warnings of the compiler that only the patched kernel has, and what each boot
    costs, by side and in the order of seeds from 1. `kernels` is what the kernels are made of, by side.
    """

    loads: Sequence[LoadComparison]
    warnings: Sequence[Diagnostic] = ()
    sides: Mapping[str, Side] = field(default_factory=dict)
    kernels: Mapping[str, KernelSources] = field(default_factory=dict)


def run(request: Request, progress: Progress) -> Result:
    """Builds and boots both kernels. Raises CountedError, BuildError and BootError, which name the side."""
    with progress.step("sources"):
        sources = Sources(request.base, request.var / "trees")
        base = patched = sources.base_tree(request.commit)
        for name, content in series(request.patches):
            patched = sources.patched(patched, name, content)
    fragment = config.fragment(request.configuration)
    builder = Builder(sources, request.var / "kernels", fragment, progress)
    kernels = [_build(builder, side, tree, base, progress) for side, tree in zip(SIDES, (base, patched), strict=True)]
    machine = Machine(
        plugin=programs.plugin(request.var / "programs"),
        initramfs=programs.initramfs(request.var / "programs"),
        limit=request.limit,
        only=request.only,
    )
    with progress.step(f"{request.boots} boots of each kernel"), store.alone(request.var / "boots"):
        booted = boot_all(request, machine, kernels, progress)
    sides = {side: [boot.costs for boot in boots] for side, boots in zip(SIDES, booted, strict=True)}
    made = {
        side: KernelSources(sources.commit(request.commit), tree, request.configuration, builder.tools)
        for side, tree in zip(SIDES, (base, patched), strict=True)
    }
    return Result(compared(*sides.values()), builder.new_warnings(*kernels), sides, made)


def series(patches: Sequence[tuple[str, bytes]]) -> Sequence[tuple[str, bytes]]:
    """Returns the numbered mails of one series as one file, and other files as they are, to be applied in order."""
    contents = [content if content.endswith(b"\n") else content + b"\n" for _, content in patches]
    mails = all(content.startswith(b"From ") for content in contents)
    if len(patches) < 2 or not mails or not any(map(_NUMBERED.search, contents)):
        return patches
    return [(f"{patches[0][0]} and {len(patches) - 1} more", b"".join(contents))]


def _build(builder: Builder, side: str, tree: str, base: str, progress: Progress) -> Kernel:
    with progress.step(f"kernel, {side}"):
        try:
            return builder.kernel(tree, base)
        except BuildError as error:
            raise BuildError(f"the kernel, {side}: {error}") from None


def boot_all(request: Request, machine: Machine, kernels: Sequence[Kernel], progress: Progress) -> list[list[Boot]]:
    """Boots each kernel with each seed, as many at a time as there are CPUs. Returns the boots by kernel."""
    tables = [Symbols(kernel.symbols.read_text(encoding="ascii", errors="replace").splitlines()) for kernel in kernels]
    done: list[str] = []

    def one(place: int, seed: int) -> Boot:
        folder = request.var / "boots" / f"{SIDES[place]}-{seed}"
        try:
            made = boot(machine, kernels[place].image, tables[place], seed, folder)
        except BootError as error:
            raise BootError(f"the kernel, {SIDES[place]}, does not run its loads.\n{error}") from None
        done.append(folder.name)
        progress.share(len(done), len(kernels) * request.boots, "boots")
        return made

    seeds = range(1, request.boots + 1)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        boots = [[pool.submit(one, place, seed) for seed in seeds] for place in range(len(kernels))]
        try:
            return [[future.result() for future in side] for side in boots]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def compared(base: Side, patched: Side) -> list[LoadComparison]:
    """Returns the comparison of each load. Raises CountedError without one."""
    before, after = costs.merged(base), costs.merged(patched)
    if not before:
        raise CountedError("no load has run")
    return [comparison.compare(name, before[name], after[name]) for name in before]
