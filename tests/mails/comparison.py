# SPDX-License-Identifier: BSD-2-Clause
"""Compares what the service reads of a mail with what git reads of it, and the trees that both make."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime

from perfweb.builds.mails import PatchError, diff_of, read_mail
from perfweb.builds.patches import Patch, Series, read_series
from perfweb.builds.repositories import Commit, Repository
from perfweb.mail.messages import IgnoredError, Rules, read_message
from tests.mails import reference
from tests.mails.corpus import Case, Corpus
from tests.mails.reference import Read

RULES = Rules("perf@service.example")
_MESSAGE_ID = re.compile(rb"^Message-Id:", re.MULTILINE | re.IGNORECASE)


def read_submitted(content: bytes) -> Read:
    """What the service reads of a mail that is a part of a submitted text."""
    return _as_read(read_mail(content).patch)


def read_delivered(content: bytes) -> Read:
    """What the service reads of a mail that was delivered and stored."""
    if not _MESSAGE_ID.search(content.partition(b"\n\n")[0]):
        content = b"Message-Id: <1@example.org>\n" + content
    message = read_message(content, RULES)
    if message.problem:
        raise PatchError(message.problem)
    return read_submitted(message.mbox.partition(b"\n")[2])


def expected(case: Case) -> Read | None:
    """What git reads of a mail, or of the plain mail that it means; None where git refuses it."""
    try:
        return reference.mailinfo(_stored(case))
    except subprocess.CalledProcessError:
        return None


def _stored(case: Case) -> bytes:
    """The mail that git is to read, as a mail server stores it: with LF."""
    return _with_lf(case.plain or case.content)


def _with_lf(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n") if content.count(b"\n") == content.count(b"\r\n") else content


def differences(ours: Read, git: Read) -> list[str]:
    """Names of the fields that differ. Blank lines around the message and behind the diff do not count."""
    one, other = _stripped(ours), _stripped(git)
    return [field.name for field in fields(Read) if getattr(one, field.name) != getattr(other, field.name)]


@dataclass(frozen=True)
class Finding:
    """A comparison of one case: the fields that differ, none where all are the same, or `refused` by the program.

    `apart` means that git and b4 differ from each other.
    """

    case: Case
    differing: tuple[str, ...] = ()
    refused: bool = False
    apart: bool = False


def compare(corpus: Corpus) -> Iterator[Finding]:
    """The texts of all mails, each read as a part of a submitted text and as a delivered mail."""
    for case in corpus.cases:
        git = expected(case)
        if git is None:
            yield Finding(case, refused=True)
            continue
        found = list[str]()
        for way in (read_submitted, read_delivered):
            try:
                found += [f"{field} ({way.__name__})" for field in differences(way(case.content), git)]
            except (PatchError, IgnoredError) as error:
                found.append(f"{way.__name__}: {error}")
        yield Finding(case, tuple(found))
    for case in corpus.series:
        ours = [_as_read(patch) for patch in read_series(case.content).patches]
        git_reads = [one for mail in reference.split(case.content) if diff_of((one := reference.mailinfo(mail)).diff)]
        yield Finding(case, tuple(_all_differences(ours, git_reads)))


def compare_trees(corpus: Corpus, each: int = 1) -> Iterator[Finding]:
    """The trees that `git am` and the service make of every `each`th case."""
    for case in [*corpus.cases, *corpus.series][::each]:
        mails = reference.split(_stored(case)) if case in corpus.series else [_stored(case)]
        git = reference.apply(corpus.checkout, corpus.base, mails)
        try:
            ours = _tree(corpus, case)
        except PatchError as error:
            ours = str(error)
        yield Finding(case, () if ours == git or not git else (f"tree: {ours}",), refused=not git)


def compare_b4(corpus: Corpus, each: int = 1) -> Iterator[Finding]:
    """The texts of every `each`th case, and of all series, as `b4 am` makes them ready for `git am`.

    b4 has faults of its own: a difference counts if git reads the mail as b4 does.
    """
    for case in [*corpus.cases[::each], *corpus.series]:
        series = case in corpus.series
        mails = reference.split(case.content) if series else [_with_lf(case.content)]
        patches = read_series(case.content).patches if series else [read_mail(case.content).patch]
        git = [read for read in _read_by_git(case, mails) if diff_of(read.diff)]
        try:
            b4 = reference.b4_am([_threaded(mail, place) for place, mail in enumerate(mails)])
        except subprocess.CalledProcessError:  # git refuses what b4 made
            b4 = []
        found = _all_differences(list(map(_as_read, patches)), b4)
        if not b4 or (found and _all_differences(git, b4)):
            yield Finding(case, refused=not b4, apart=bool(b4))
        else:
            yield Finding(case, tuple(found))


def _read_by_git(case: Case, mails: Sequence[bytes]) -> list[Read]:
    if len(mails) == 1:
        one = expected(case)
        return [one] if one else []
    return [reference.mailinfo(mail) for mail in mails]


def _all_differences(ours: Sequence[Read], others: Sequence[Read]) -> list[str]:
    found = [field for one, other in zip(ours, others, strict=False) for field in differences(one, other)]
    return found if len(ours) == len(others) else [*found, "number of patches"]


def _threaded(mail: bytes, place: int) -> bytes:
    """A mail of a series with the headers that a mail program adds."""
    if _MESSAGE_ID.search(mail.partition(b"\n\n")[0]):
        return mail
    return b"Message-Id: <%d@example.org>\n" % place + b"In-Reply-To: <0@example.org>\n" * (place > 0) + mail


def _tree(corpus: Corpus, case: Case) -> str:
    """The tree that the service makes.  Raises PatchError where it refuses the patch."""
    if case in corpus.series:
        series = read_series(case.content)
    else:
        series = Series("", "", "", (read_mail(case.content).patch,))
    with Repository(corpus.checkout.tree / ".git").bench() as bench:
        return bench.apply(series, Commit(corpus.base, "", datetime.now(UTC)))[-1].tree


def _as_read(patch: Patch) -> Read:
    return Read(patch.author, patch.subject, patch.message, patch.diff)


def _stripped(read: Read) -> Read:
    subject = "".join(letter if letter.isprintable() else " " for letter in read.subject)
    return Read(
        author=read.author,
        subject=" ".join(subject.split()) or "(no subject)",
        message=read.message.strip("\n"),
        diff=diff_of(read.diff).rstrip(b"\n"),
    )
