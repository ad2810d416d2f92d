# SPDX-License-Identifier: BSD-2-Clause
"""Finds commits that a series was made for: those that have the files of its index lines (git-diff(1))."""

import re
from collections.abc import Iterator, Sequence

from perfweb.builds.kinds import STACK, Kind
from perfweb.builds.patches import Series
from perfweb.builds.repositories import Bench

MOST_COMMITS = 200
MOST_REFS = 100
MOST_FILES = 50
MOST_NAMED = 4
HOW = "Name a base: in the field Base of the form, by perfctl --base, or by base= in a request."

_FILE = re.compile(rb"^diff --git ", re.MULTILINE)
_INDEX = re.compile(rb"^index ([0-9a-f]{4,64})\.\.", re.MULTILINE)
_OLD = re.compile(rb"^(?:--- |rename from |copy from )([^\t\n]+)", re.MULTILINE)
_NEW = re.compile(rb"^(?:\+\+\+ |rename to |copy to )([^\t\n]+)", re.MULTILINE)
_HUNK = re.compile(rb"^@@ ", re.MULTILINE)
_WHOLE_FILE = re.compile(rb"-0,0 |-\S+ \+0,0 ")
_CONTEXT = re.compile(rb"^ ", re.MULTILINE)


def advice_after_conflict(bench: Bench, series: Series, branch: str, others: Sequence[str]) -> str:
    """Sentences on what would make a series apply; `others` are as of `advice`."""
    if _lacks_context(series):
        return "Its hunks have no context (git diff -U0), and git applies none such. Send the output of git diff -U3."
    return advice(bench, series, branch, others)


def _lacks_context(series: Series) -> bool:
    """Whether no hunk of the series has a line of context; a file that is made or removed needs none."""
    hunks = [hunk for patch in series.patches for hunk in _HUNK.split(patch.diff)[1:] if not _WHOLE_FILE.match(hunk)]
    return bool(hunks) and not any(_CONTEXT.search(hunk) for hunk in hunks)


def advice(bench: Bench, series: Series, branch: str, others: Sequence[str]) -> str:
    """Sentences with the commits that the series would apply to, and how to name one as its base; without any, with
    the names of other repositories.
    """
    found = _fitting(bench, series, branch)
    if found:
        names = ", ".join(found)
        return f"The files that it changes are as it expects them in {names}. {HOW}"
    elsewhere = f" Other repositories: {', '.join(others)}." if others else ""
    return (
        f"No branch, tag or commit of the newest {MOST_COMMITS} of {branch} has the files that it expects. {HOW}"
        f"{elsewhere}"
    )


def _fitting(bench: Bench, series: Series, branch: str) -> list[str]:
    """Names of branches and tags that have the expected files; if there are none, the newest commit that has."""
    expected = dict(expected_files(series, bench.kind))
    if not expected:
        return []
    refs = bench.output(
        "for-each-ref", f"--count={MOST_REFS}", "--sort=-committerdate", "--format=%(refname) %(refname:short)",
        "refs/heads", "refs/tags",
    )  # fmt: skip
    named = dict(line.split(" ", 1) for line in refs.splitlines())
    commits = bench.output("rev-list", f"--max-count={MOST_COMMITS}", branch, "--").splitlines()
    lines = [f"{name}:{path}" for name in [*named, *commits] for path in expected]
    blobs = bench.output("cat-file", "--batch-check=%(objectname)", given="\n".join([*lines, ""]).encode()).split("\n")[
        :-1
    ]
    if len(blobs) != len(lines):
        return []
    step = len(expected)
    fits = [
        name
        for place, name in enumerate([*named, *commits])
        if all(
            _is(blob, wanted)
            for blob, wanted in zip(blobs[place * step : (place + 1) * step], expected.values(), strict=True)
        )
    ]
    return [named[name] for name in fits if name in named][:MOST_NAMED] or [sha[:12] for sha in fits[:1]]


def _is(blob: str, wanted: str) -> bool:
    """Whether a line of git-cat-file(1) is the object that begins with `wanted`, or none where that is empty."""
    return blob.startswith(wanted) if wanted else blob.endswith(" missing")


def expected_files(series: Series, kind: Kind = STACK) -> Iterator[tuple[str, str]]:
    """Paths with the beginning of the name of their content before the series; empty for a file that is made."""
    made = set[str]()
    for patch in series.patches:
        for change in _FILE.split(patch.diff)[1:]:
            head = change[: hunk.start()] if (hunk := _HUNK.search(change)) else change
            old, new, index = _path(_OLD.search(head), kind), _path(_NEW.search(head), kind), _INDEX.search(head)
            sha = index.group(1).decode() if index else ""
            path = old or new
            if path and path not in made and index and len(made) < MOST_FILES:
                yield path, "" if set(sha) == {"0"} else sha
            made |= {old, new}


def _path(found: re.Match[bytes] | None, kind: Kind) -> str:
    """A path of a diff without its prefix; empty for one that is quoted, or no file."""
    name = found.group(1).decode("utf-8", "replace") if found else ""
    return "" if name.startswith('"') or name == "/dev/null" else kind.path(name)
