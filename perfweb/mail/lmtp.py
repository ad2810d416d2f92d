# SPDX-License-Identifier: BSD-2-Clause
"""Delivery by the mail server: LMTP (RFC 2033), on a UNIX socket or a port of this machine.

A mail is accepted when it is in the database. Any earlier error is a temporary failure for the mail server, which keeps
the mail.
"""

import logging
import shutil
from pathlib import Path

from aiosmtpd.controller import Controller, UnixSocketController
from aiosmtpd.lmtp import LMTP
from aiosmtpd.smtp import SMTP, Envelope, Session
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections

from perfweb.accounts.limits import NotNowError
from perfweb.inputlimits import MAIL_BYTES
from perfweb.mail.intake import receive
from perfweb.mail.messages import IgnoredError

SECONDS = 60.0
"""Time-out of a client."""

log = logging.getLogger(__name__)


class Intake:
    """Responses to a client; the names of the methods are aiosmtpd's."""

    async def handle_RCPT(  # noqa: N802
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        """Accept mails for the service's address, one recipient each, because there is one response for all."""
        if address.lower() != settings.MAIL_ADDRESS.lower():
            return "550 5.1.1 nobody of that name here"
        if envelope.rcpt_tos:
            return "452 4.5.3 one recipient at a time"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Store a mail."""
        content = envelope.content
        assert isinstance(content, bytes)  # noqa: S101
        return await sync_to_async(_take)(content, envelope.mail_from or "")

    async def handle_exception(self, error: Exception) -> str:
        """Defer the mail after an internal error, so that it is not lost."""
        log.error("a mail could not be taken", exc_info=error)
        return "451 4.3.0 try again later"


def listen(address: str) -> Controller | UnixSocketController:
    """Make a server, not started yet, on `HOST:PORT` or the path of a UNIX socket. Raises ValueError."""
    if "/" in address:
        return _OnSocket(Intake(), address)
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"“{address}” is neither HOST:PORT, such as 127.0.0.1:8024, nor the path of a socket")
    return _OnPort(Intake(), host.strip("[]"), int(port))


def share(socket: Path, group: str) -> None:
    """Let a group use the socket, besides its owner: Postfix's lmtp(8) runs as user and group `postfix`. Without a
    group only the owner can. Raises OSError or ValueError.
    """
    if group:
        try:
            shutil.chown(socket, group=group)
        except LookupError:
            raise ValueError(f"there is no group “{group}”: PERFWEB_MAIL_SOCKET_GROUP has its name") from None
        except PermissionError:
            raise ValueError(f"the service's user is no member of the group “{group}”: add it, and restart") from None
    socket.chmod(0o660 if group else 0o600)


class _OnPort(Controller):
    def factory(self) -> LMTP:
        return _protocol(self.handler)


class _OnSocket(UnixSocketController):
    def factory(self) -> LMTP:
        return _protocol(self.handler)


def _protocol(handler: Intake) -> LMTP:
    return LMTP(handler, data_size_limit=MAIL_BYTES, timeout=SECONDS, hostname="perfweb", ident="perfweb")


def _take(content: bytes, sender: str) -> str:
    close_old_connections()
    try:
        log.info("%s", receive(content, sender))
    except IgnoredError as error:
        log.info("ignored a mail from <%s>: %s", sender, error)
        return "250 2.0.0 OK, and nothing is done about it"
    except NotNowError as error:
        return f"451 4.7.1 {error}"
    return "250 2.0.0 OK"
