# SPDX-License-Identifier: BSD-2-Clause
"""The build whose compiled files a kernel's build may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfweb.builds.models import Build
from perfweb.runs.planfile import read_plan
from runners.ansible.plays import Plays
from runners.kernels import Kernels, patched

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

    def build_kernel(self, key: str, archive: Path, base: str) -> dict[str, str]:
        assert archive.stat().st_size > 0
        self.bases.append((key.partition("-")[0], base))
        return {"prefix": f"/builds/{key.partition('-')[0]}"}


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
    tmp_path: Path, sources: list[str], keys: str, expected: list[tuple[str, str]]
) -> None:
    spec = read_plan(plan(*sources))
    archive = tmp_path / "sources"
    archive.write_bytes(b"x")
    by_variant = {variant.name: key for variant, key in zip(spec.variants, keys, strict=True)}
    plays = Recorded()
    kernels = Kernels(plays, patched(spec, by_variant))
    for build in kernels.in_order([Build(key=key) for key in dict.fromkeys(keys)]):
        kernels.build(build, archive)
    assert plays.bases == expected
