# SPDX-License-Identifier: BSD-2-Clause
"""Outgoing mail: each response is queued once for an occasion, and sent by SMTP.

A mail that was sent, but not marked as sent before a power failure, is sent twice, with the same Message-ID.
"""

import hashlib
import smtplib
from collections.abc import Sequence

from django.conf import settings
from django.core.mail import EmailMessage

from perfweb.mail.automatic import OWN_HEADER, OWN_ID
from perfweb.mail.messages import Message
from perfweb.mail.models import Posting, Series
from perfweb.outbox.models import Letter
from perfweb.outbox.services import LaterError, NeverError, pause, post

CHANNEL = "mail:smtp"
AWAY = (smtplib.SMTPServerDisconnected, smtplib.SMTPConnectError, smtplib.SMTPHeloError)


def answered(series: Series, occasion: str) -> bool:
    """Return whether there is a response already."""
    return Letter.objects.filter(channel=CHANNEL, key=_key(series, occasion)).exists()


def list_answered(series: Series) -> bool:
    """Return whether a response went to the list, which gets one result."""
    answers = Letter.objects.filter(channel=CHANNEL, key__startswith=_key(series, ""))
    return answers.exclude(content__cc=[]).exists()


def answer(series: Series, posting: Posting, occasion: str, text: str, *, public: bool = False) -> None:
    """Answer a mail of a series, with a copy to the list if `public`."""
    thread = [*posting.related[1:], posting.message_id]
    copies = [series.copy_to] if public and series.copy_to else []
    _post(_key(series, occasion), occasion, series.reply_to or [series.sender], posting.subject, thread, text, copies)


def answer_mail(message: Message, text: str) -> None:
    """Answer a mail that belongs to no series."""
    key = f"request.{hashlib.sha256(message.id.encode()).hexdigest()[:32]}"
    _post(key, "request", message.reply_to, message.subject, [*message.parents, message.id], text)


def _post(
    key: str, occasion: str, to: Sequence[str], subject: str, thread: Sequence[str], text: str, cc: Sequence[str] = ()
) -> None:
    """Queue a response to the last mail of a thread, given by Message-IDs."""
    content = {
        "occasion": occasion,
        "to": list(to),
        "cc": list(cc),
        "subject": f"Re: {subject}",
        "in_reply_to": thread[-1],
        "references": " ".join(thread),
        "text": text,
    }
    post(CHANNEL, key, content)


def send(letter: Letter) -> str:
    """Sends a letter of the outbox; returns its Message-ID.  Raises LaterError and NeverError."""
    content = letter.content
    own = f"<{OWN_ID}{letter.key}.{letter.since.timestamp():.0f}@{settings.MAIL_ADDRESS.rpartition('@')[2]}>"
    headers = {
        "Message-ID": own,
        "In-Reply-To": content["in_reply_to"],
        "References": content["references"],
        "Auto-Submitted": "auto-replied" if content["in_reply_to"] else "auto-generated",
        "X-Auto-Response-Suppress": "OOF, AutoReply",
        OWN_HEADER: content["occasion"],
        **content.get("headers", {}),
    }
    mail = EmailMessage(
        subject=content["subject"],
        body=content["text"],
        from_email=settings.MAIL_ADDRESS,
        to=content["to"],
        cc=content["cc"],
        headers={name: value for name, value in headers.items() if value},
    )
    try:
        mail.send()
    except smtplib.SMTPAuthenticationError as error:  # servers block clients that repeat a wrong password soon
        raise LaterError(str(error), pause(letter.attempts), everything=True) from None
    except smtplib.SMTPException as error:
        if _is_refused(error):
            raise NeverError(str(error)) from None
        raise LaterError(str(error), everything=isinstance(error, AWAY)) from None
    except OSError as error:
        raise LaterError(str(error), everything=True) from None
    return own


def _is_refused(error: smtplib.SMTPException) -> bool:
    """Return whether the server refuses this mail or all its recipients permanently (RFC 5321, 4.2.1)."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= 500 for code, _ in error.recipients.values())
    return isinstance(error, smtplib.SMTPDataError) and error.smtp_code >= 500


def _key(series: Series, occasion: str) -> str:
    return f"{series.pk}.{occasion}"
