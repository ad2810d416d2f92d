# SPDX-License-Identifier: BSD-2-Clause
"""`perfctl try`: from the changes in a working tree to their verdicts, in one command."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable

from perfctl.answers import SubmissionDetail
from perfctl.server import Server
from perfctl.submissions import print_submission, submit
from perfctl.tables import plain
from perfctl.usage import Status, UsageError

PAUSE_SECONDS = 3.0
"""Pause between two requests about a submission that waits for its run."""

_OVER = frozenset({"conflict", "refused", "cancelled"})
"""States of a submission after which no run follows."""

_DIFF = (
    "diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/",
    "--dst-prefix=b/",
)  # fmt: skip
"""A patch for git-apply(1), whatever the configuration of the user is."""


def try_changes(server: Server, options: argparse.Namespace, watch: Callable[[int], Status]) -> Status:
    """Submit the changes since the published commit, wait for the run, and `watch` it to its verdicts."""
    base = options.base or published()
    submission = submit(server, changes_since(base), options, base=base)
    if not options.json:
        print_submission(server, submission, options)
    submission = _with_run(server, submission)
    if submission["state"] in _OVER:
        print_submission(server, submission, options)
        return Status.RUN_NOT_DONE
    return watch(submission["runs"][-1]["number"])


def _with_run(server: Server, submission: SubmissionDetail) -> SubmissionDetail:
    """Wait until a submission has a run, or never will."""
    if submission["state"] == "waiting":
        _note("a maintainer has to approve it; Ctrl-C ends the wait, not the submission")
    while not submission["runs"] and submission["state"] not in _OVER:
        time.sleep(PAUSE_SECONDS)
        submission = server.submission(submission["number"])
    return submission


def published() -> str:
    """Return the newest commit that the branch shares with its upstream, or HEAD without one. Raises UsageError."""
    done = _git("merge-base", "HEAD", "@{upstream}")
    return done.stdout.strip() if done.returncode == 0 else _required("rev-parse", "HEAD").strip()


def changes_since(base: str) -> str:
    """Return the commits since `base` and the edits of tracked files as one patch. Raises UsageError if there are none.

    Files that git does not know are left out, with a note.
    """
    patch = _required(*_DIFF, base, "--")
    if unknown := _required("ls-files", "--others", "--exclude-standard").splitlines():
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        _note(f"git does not know {unknown[0]}{more}: not in the patch; git add -N FILE includes it")
    if not patch:
        raise UsageError(f"nothing has changed since {base[:12]}: edit the tree first, or name another --base")
    return patch


def _required(*words: str) -> str:
    done = _git(*words)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()
        raise UsageError(f"git {words[0]}: {reason[-1] if reason else f'exit status {done.returncode}'}")
    return done.stdout


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    """Run git in the current directory. Raises UsageError without git, and for a patch that is not UTF-8."""
    try:
        return subprocess.run(["git", *words], capture_output=True, text=True, encoding="utf-8", check=False)
    except FileNotFoundError:
        raise UsageError("git is not installed") from None
    except UnicodeDecodeError:
        raise UsageError("the patch is not UTF-8: upload it with the form of the page") from None


def _note(text: str) -> None:
    print(f"perfctl: {plain(text)}", file=sys.stderr, flush=True)
