# SPDX-License-Identifier: BSD-2-Clause
"""Mails with patches: what git prints and sends of every kind of commit with every kind of option, and in the
encodings of mail programs.  All of it follows from a seed.
"""

from __future__ import annotations

import itertools
import random
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.checkouts import Checkout
from tests.mails import clients
from tests.mails.changes import CHANGES, Change, commit, repository, touched

ENVELOPE = re.compile(rb"\AFrom [^\n]*\n")
OPTIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("--attach",),
    ("--inline",),
    ("--attach=boundary-x", "--no-signature"),
    ("--no-renames",),
    ("-M", "-C", "--find-copies-harder"),
    ("--full-index", "--binary"),
    ("-p",),
    ("--stat=40", "--summary"),
    ("--numbered", "--signoff"),
    ("--subject-prefix=PATCH net-next", "-v2"),
    ("--subject-prefix=net-next,v4", "--no-numbered"),
    ("--rfc",),
    ("-k",),
    ("--base=HEAD~1",),
    ("--no-signature",),
    ("--signature=a signature\nof two lines",),
    ("--patience", "-U0"),
    ("-U10", "--minimal"),
    ("--function-context",),
    ("--from=Relay <relay@example.net>",),
    ("--from=Relay <relay@example.net>", "--force-in-body-from"),
    ("--from=Größe <g@example.net>",),
    ("--pretty=mboxrd",),
    ("--thread", "--in-reply-to=<a@b>"),
    ("--to=net@lists.example", "--cc=Größe <g@example.org>", "--add-header=X-Perf: yes"),
    ("--zero-commit",),
    ("--ignore-space-at-eol",),
    ("--output-indicator-new=+", "--no-color"),
    ("--irreversible-delete", "-D"),
    ("--interdiff=HEAD~1", "-v2"),
)
SETTINGS: tuple[tuple[str, ...], ...] = (
    ("format.encodeEmailHeaders=false",),
    ("diff.mnemonicPrefix=true",),
    ("diff.noprefix=true",),
    ("i18n.logOutputEncoding=iso-8859-1",),
    ("i18n.logOutputEncoding=iso-2022-jp",),
    ("diff.renames=copies", "diff.algorithm=histogram"),
    ("core.quotePath=false",),
    ("format.encodeEmailHeaders=false", "i18n.logOutputEncoding=iso-8859-1"),
    ("diff.suppressBlankEmpty=true",),
    ("core.abbrev=40",),
)
SERIES_OPTIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("--no-signature",),
    ("--cover-letter", "-v2", "--base=HEAD~3"),
    ("--cover-letter", "--no-signature", "--thread=deep", "--subject-prefix=PATCH net-next"),
    ("--attach",),
    ("--inline", "--no-signature"),
    ("--pretty=mboxrd", "--signature=From a Mon Sep 17 00:00:00"),
    ("--from=Relay <relay@example.net>", "--signature=From b Mon Sep 17 00:00 2001"),
    ("--rfc", "--cover-letter", "--range-diff=HEAD~1", "-v3"),
    ("--no-numbered",),
)
SERIES_CHANGES = (
    "crlf file", "no newline", "new file", "space in a name", "umlaut in a name", "latin-1 file", "rename", "mode",
    "long line", "text from", "text none", "author cjk", "empty file", "unicode file", "lone cr",
)  # fmt: skip
ENCODINGS = ("8bit", "quoted-printable", "base64", "auto")


@dataclass(frozen=True)
class Case:
    """One mail; `plain` is what it means where git reads another thing, and `why` the reason."""

    name: str
    content: bytes
    plain: bytes = b""
    why: str = ""


@dataclass(frozen=True)
class Corpus:
    """Cases of one mail, and of whole series in one text, each with patches of the commit `base` of `checkout`."""

    checkout: Checkout
    base: str
    cases: tuple[Case, ...]
    series: tuple[Case, ...]


def build(folder: Path, seed: int) -> Corpus:
    """Makes the corpus of a seed in an empty folder."""
    draw = random.Random(seed)
    checkout = Checkout(_made(folder / "tree"))
    base = repository(checkout)
    commits = [(change, commit(checkout, change, base)) for change in CHANGES]
    cases = [
        *_formatted(checkout, commits, draw),
        *_configured(checkout, commits, draw),
        *_sent(checkout, commits, draw, folder),
        *_encoded(checkout, commits, draw),
    ]
    return Corpus(checkout, base, tuple(cases), tuple(_series(checkout, base, draw)))


def _formatted(checkout: Checkout, commits: Sequence[tuple[Change, str]], draw: random.Random) -> Iterator[Case]:
    """Each commit with two sets of options, and each set of options with some commit."""
    drawn = [*OPTIONS, *draw.choices(OPTIONS, k=max(0, 2 * len(commits) - len(OPTIONS)))]
    draw.shuffle(drawn)
    for place, options in enumerate(drawn):
        change, sha = commits[place % len(commits)]
        yield Case(f"format-patch {' '.join(options)}: {change.name}", _printed(checkout, sha, options))


def _configured(checkout: Checkout, commits: Sequence[tuple[Change, str]], draw: random.Random) -> Iterator[Case]:
    for settings in SETTINGS:
        words = [word for setting in settings for word in ("-c", setting)]
        for change, sha in draw.sample(commits, 4):
            yield Case(f"{' '.join(settings)}: {change.name}", _printed(checkout, sha, (), words))


def _sent(
    checkout: Checkout, commits: Sequence[tuple[Change, str]], draw: random.Random, folder: Path
) -> Iterator[Case]:
    """What git-send-email(1) hands to a mail program, eight commits with each encoding."""
    for encoding in ENCODINGS:
        chosen = draw.sample(commits, 8)
        outgoing, sent = _made(folder / f"out-{encoding}"), _made(folder / f"sent-{encoding}")
        for place, (_, sha) in enumerate(chosen):
            (outgoing / f"{place}.patch").write_bytes(_printed(checkout, sha, ()))
        program = folder / f"sendmail-{encoding}"
        program.write_text(f'#!/bin/sh\nexec cat > "$(mktemp {sent}/$(ls {sent} | wc -l).XXXXXX)"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        checkout.git(
            "send-email", "--quiet", "--confirm=never", "--no-validate", "--suppress-cc=all", "--from=ada@example.org",
            "--to=perf@service.example", f"--transfer-encoding={encoding}", "--8bit-encoding=UTF-8",
            f"--smtp-server={program}", *(str(path) for path in sorted(outgoing.iterdir())),
        )  # fmt: skip
        made = sorted(sent.iterdir(), key=lambda path: int(path.name.partition(".")[0]))
        for (change, _), path in zip(chosen, made, strict=True):
            yield Case(f"send-email {encoding}: {change.name}", path.read_bytes())


def _encoded(checkout: Checkout, commits: Sequence[tuple[Change, str]], draw: random.Random) -> Iterator[Case]:
    """Two mails of each mail program."""
    sources = [clients.Source(change, _printed(checkout, sha, ()).partition(b"\n\n")[2]) for change, sha in commits]
    for name, client in clients.CLIENTS.items():
        why = clients.NOT_AS_GIT.get(name, "")
        made = ((source, client(source)) for source in draw.sample(sources, len(sources)))
        for source, mail in itertools.islice(((one, mail) for one, mail in made if mail is not None), 2):
            yield Case(f"{name}: {source.change.name}", mail, clients.plain_mail(source) if why else b"", why)


def _series(checkout: Checkout, base: str, draw: random.Random) -> Iterator[Case]:
    """Three commits as one text, as `git format-patch --stdout` prints them."""
    known = {change.name: change for change in CHANGES}
    for options in SERIES_OPTIONS:
        head, names = base, list[str]()
        drawn = iter(draw.sample(SERIES_CHANGES, len(SERIES_CHANGES)))
        while len(names) < 3:
            change = known[next(drawn)]
            if not any(touched(change) & touched(known[name]) for name in names):
                head = commit(checkout, change, head)
                names.append(change.name)
        text = checkout.git("format-patch", "--stdout", *options, "-3", head)
        yield Case(f"series {' '.join(options)}: {', '.join(names)}", text)


def _printed(checkout: Checkout, sha: str, options: Sequence[str], settings: Sequence[str] = ()) -> bytes:
    checkout.git("checkout", "-q", "--detach", "--force", sha)
    return ENVELOPE.sub(b"", checkout.git(*settings, "format-patch", "--stdout", *options, "-1"))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder
