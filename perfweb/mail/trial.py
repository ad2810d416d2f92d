# SPDX-License-Identifier: BSD-2-Clause
"""Tries mails: what would be answered, of which nothing is sent or kept.

The mails take the way of received ones, in a transaction that is rolled back.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from perfweb.accounts.limits import not_counted
from perfweb.builds.mails import without_crlf
from perfweb.builds.patches import ENVELOPE
from perfweb.mail.intake import receive
from perfweb.mail.messages import IgnoredError
from perfweb.mail.models import PATIENCE, Series, SeriesState
from perfweb.mail.sending import CHANNEL
from perfweb.mail.series import gather
from perfweb.outbox.models import Letter


def mails_of(file: Path) -> list[bytes]:
    """Return the mails of an mbox, or the only mail of another file. Raises OSError.

    An mbox begins with a line `From `, a sender and a time, and so does each of its mails. Other lines `From ` belong
    to a text, because git-format-patch(1) does not quote them.
    """
    content = without_crlf(file.read_bytes()).lstrip(b"\n")
    starts = [found.start() for found in ENVELOPE.finditer(content)]
    if not starts or starts[0] != 0:
        return [content]
    return [content[start:end] for start, end in zip(starts, [*starts[1:], len(content)], strict=True)]


def tried(mails: Sequence[bytes]) -> list[str]:
    """Return what would happen to each mail, then the answers, the first ones only: results follow measurements."""
    with _nothing_kept():
        before = Letter.objects.aggregate(newest=Max("pk"))["newest"] or 0
        known = list(Series.objects.values_list("pk", flat=True))
        texts = [f"mail {number} of {len(mails)}: {_received(mail)}" for number, mail in enumerate(mails, 1)]
        new = Series.objects.filter(state=SeriesState.GATHERING).exclude(pk__in=known)
        for series in new.order_by("-version", "pk"):
            gather(series, timezone.now() + PATIENCE * 2)  # then missing mails are reported
        answers = Letter.objects.filter(channel=CHANNEL, pk__gt=before).order_by("pk")
        return texts + ([_shown(answer) for answer in answers] or ["no answer"])


def _received(mail: bytes) -> str:
    try:
        return receive(mail)
    except IgnoredError as error:
        return f"ignored: {error}"


def _shown(answer: Letter) -> str:
    content = answer.content
    return f"answer to {', '.join(content['to'])}\nSubject: {content['subject']}\n\n{content['text']}"


@contextmanager
def _nothing_kept() -> Iterator[None]:
    """Roll the block back. Sources that it packs are in a folder that is deleted."""
    store = settings.SOURCE_STORE
    with tempfile.TemporaryDirectory(prefix="perfweb-") as folder, not_counted(), transaction.atomic():
        settings.SOURCE_STORE = folder
        try:
            yield
        finally:
            settings.SOURCE_STORE = store
            transaction.set_rollback(True)
