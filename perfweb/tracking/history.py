# SPDX-License-Identifier: BSD-2-Clause
"""The commits of a tracked branch, as git lists them, and which of them the rhythm selects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise

from django.db import transaction

from perfweb.builds import mirrors
from perfweb.builds.repositories import Repository, RepositoryError, read_time
from perfweb.plaintext import plain
from perfweb.tracking.models import Rhythm, TrackedBranch, TrackedCommit

_FORMAT = "--format=%H%x00%cI%x00%an%x00%s"


@dataclass(frozen=True)
class Listed:
    """A commit that changes the stack; `position` counts the first parents from the first tracked one, which is 1."""

    position: int
    sha: str
    committed: datetime
    author: str
    subject: str


def fetched(branch: TrackedBranch, *names: str, seconds: float) -> Repository:
    """Open the repository of a branch, with what the branch and `names` are now. Raises RepositoryError."""
    return (
        mirrors.fetch(branch.mirror, branch.branch, *names, seconds=seconds) if branch.mirror else mirrors.opened(None)
    )


def refresh(branch: TrackedBranch, now: datetime) -> None:
    """Update the rows of a branch's commits. Raises RepositoryError."""
    repository = fetched(branch, seconds=mirrors.MESSENGER_SECONDS)
    found = commits(repository, branch.branch, branch.since)
    wanted = wanted_by(branch.rhythm, branch.every, [commit.committed for commit in found], now.astimezone(UTC).date())
    with transaction.atomic():
        _keep(branch, found, wanted)


def commits(repository: Repository, branch: str, since: str) -> list[Listed]:
    """Return the commits that change the stack along the first parents of a branch, from `since` on, the oldest first.

    A merge counts as one commit, because its changes come from a separate branch. Commits that do not change the stack
    build the same as the one before and are left out, but keep their position. Raises RepositoryError.
    """
    tip = repository.commit(branch).sha
    with repository.bench() as bench:
        if bench.output("merge-base", since, tip).strip() != since:
            raise RepositoryError(
                f"{branch} does not contain {since[:10]} any more: it was rewritten; track it again with another name"
            )
        chain = bench.output("rev-list", "--first-parent", "--reverse", f"{since}..{tip}", "--").split()
        listings = [bench.output("log", "-1", "--no-show-signature", _FORMAT, since, "--")]
        words = ("--no-show-signature", "--first-parent", "--reverse", _FORMAT, f"{since}..{tip}", "--")
        listings.append(bench.output("log", *words, *repository.kind.pathspec))
    places = {sha: place for place, sha in enumerate([since, *chain], start=1)}
    return [_listed(line, places) for text in listings for line in text.split("\n") if line]


def _listed(line: str, places: dict[str, int]) -> Listed:
    sha, committed, author, subject = line.split("\0", 3)
    return Listed(places[sha], sha, read_time(committed, sha), plain(author)[:150], plain(subject)[:200])


def wanted_by(rhythm: str, every: int, committed: Sequence[datetime], today: date) -> list[bool]:
    """Return which of the commits, the oldest first, a rhythm selects; the last of a day only when the day is over
    (UTC).
    """
    if rhythm == Rhythm.EVERY:
        return [index % every == 0 for index in range(len(committed))]
    if rhythm == Rhythm.NIGHTLY:
        days = [*(when.astimezone(UTC).date() for when in committed), today]
        return [day != later for day, later in pairwise(days)]
    return [True] * len(committed)


def _keep(branch: TrackedBranch, found: Sequence[Listed], wanted: Sequence[bool]) -> None:
    """Write changed rows only; a commit that is no longer on the branch loses its position."""
    rows = {row.sha: row for row in branch.commits.all()}
    new, changed = [], []
    for commit, chosen in zip(found, wanted, strict=True):
        row = rows.pop(commit.sha, None)
        if row is None:
            new.append(
                TrackedCommit(
                    branch=branch, position=commit.position, sha=commit.sha, subject=commit.subject,
                    author=commit.author, committed=commit.committed, wanted=chosen,
                )
            )  # fmt: skip
        elif (row.position, row.wanted) != (commit.position, chosen):
            row.position, row.wanted = commit.position, chosen
            changed.append(row)
    for row in rows.values():
        if row.position is not None:
            row.position, row.wanted = None, False
            changed.append(row)
    TrackedCommit.objects.bulk_create(new)
    TrackedCommit.objects.bulk_update(changed, ["position", "wanted"])
