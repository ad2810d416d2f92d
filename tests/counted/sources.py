# SPDX-License-Identifier: BSD-2-Clause
"""Sources of kernels for tests: a tiny one (tiny/), whose build and boot take a second, and patches of any."""

import difflib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

TINY = Path(__file__).parent / "tiny"


def diff(path: str, before: str, change: Callable[[str], str]) -> bytes:
    """Return the diff of a change of a file."""
    old, new = (text.splitlines(keepends=True) for text in (before, change(before)))
    return "".join(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")).encode()


def tiny_repository(place: Path) -> Path:
    """Make a repository with the tiny kernel on its branch master."""
    shutil.copytree(TINY, place)
    for words in (["init", "-qb", "master"], ["add", "."], ["commit", "-qm", "a kernel"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.example", *words], cwd=place, check=True)
    return place


def in_tiny(text: str) -> bytes:
    """Return a patch of the tiny kernel: a line at the beginning of the function that its loads call."""
    before = (TINY / "kernel.c").read_text(encoding="utf-8")
    place = "\treceived++;\n"
    return diff("kernel.c", before, lambda source: source.replace(place, f"\t{text}\n{place}"))
