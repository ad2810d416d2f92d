# SPDX-License-Identifier: BSD-2-Clause
"""The build whose compiled files another build may use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from perfweb.builds.models import Build
from perfweb.runs.planfile import read_plan
from runners.ansible.plays import Plays
from runners.building import Kernels, Stacks, patched

PLAN = """\
name: kernels
baseline: {baseline}
variants:
{variants}
tests: [counted.tcp.rr/local/ipv4]
"""


def plan(*sources: str) -> str:
    variants = [f"  - {{name: {source.replace(' ', '-')}, target: linux, source: {source}}}" for source in sources]
    return PLAN.format(baseline=sources[0].replace(" ", "-"), variants="\n".join(variants))


class Recorded(Plays):
    """Plays that build nothing, and remember whose files each build could use."""

    def __init__(self) -> None:
        self.bases: list[tuple[str, str]] = []
        self.options: list[Sequence[str]] = []

    def build_kernel(self, key: str, archive: Path, base: str, options: Sequence[str]) -> dict[str, str]:
        assert archive.stat().st_size > 0
        self.options.append(options)
        self.bases.append((key.partition("-")[0], base))
        return {"prefix": f"/builds/{key.partition('-')[0]}"}

    def build(self, key: str, archive: Path, options: Sequence[str], base: str) -> dict[str, str]:
        return self.build_kernel(key, archive, base, options)


@pytest.mark.parametrize("kind", [Stacks, Kernels])
@pytest.mark.parametrize(
    ("sources", "keys", "expected"),
    [
        (["base", "patch"], "bp", [("b", ""), ("p", "/builds/b")]),
        (["patch", "base"], "pb", [("b", ""), ("p", "/builds/b")]),
        (["patch 1", "patch 2", "base"], "qpb", [("b", ""), ("q", "/builds/b"), ("p", "/builds/b")]),
        (["patch", "base"], "bb", [("b", "")]),  # the patch changes nothing
        (["patch 1", "patch 2"], "qp", [("q", ""), ("p", "")]),
        (["before", "commit"], "ac", [("a", ""), ("c", "")]),
    ],
)
def test_only_a_patch_uses_the_files_of_another_build(
    tmp_path: Path, sources: list[str], keys: str, expected: list[tuple[str, str]], kind: type[Stacks]
) -> None:
    spec = read_plan(plan(*sources))
    archive = tmp_path / "sources"
    archive.write_bytes(b"x")
    by_variant = {variant.name: key for variant, key in zip(spec.variants, keys, strict=True)}
    plays = Recorded()
    builder = kind(plays, patched(spec, by_variant))
    for build in builder.in_order([Build(key=key, options=["debug"]) for key in dict.fromkeys(keys)]):
        builder.build(build, archive)
    assert plays.bases == expected
    assert plays.options == [["debug"]] * len(expected)


def test_a_patch_uses_the_files_of_a_build_with_its_options(tmp_path: Path) -> None:
    archive, plays = tmp_path / "sources", Recorded()
    archive.write_bytes(b"x")
    builder = Stacks(plays, {"p", "q", "r"})
    for key, options in (("b", ["-Dx=1"]), ("c", ["-Dx=2"]), ("p", ["-Dx=2"]), ("q", ["-Dx=1"]), ("r", [])):
        builder.build(Build(key=key, options=options), archive)
    assert plays.bases == [("b", ""), ("c", ""), ("p", "/builds/c"), ("q", "/builds/b"), ("r", "")]
