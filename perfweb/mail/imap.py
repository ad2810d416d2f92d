# SPDX-License-Identifier: BSD-2-Clause
"""Reading a mailbox by IMAP (RFC 9051) over TLS, from a folder that no other program reads.

A mail is marked as seen only when it is in the database. After an interruption it is fetched again, and the intake
recognises it by its Message-ID.
"""

import logging
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import Error, InterfaceError, OperationalError, close_old_connections
from imapclient import SEEN, IMAPClient
from imapclient.exceptions import CapabilityError, IMAPClientAbortError, IMAPClientError

from perfweb.accounts.limits import NotNowError
from perfweb.faults import services as faults
from perfweb.inputlimits import MAIL_BYTES
from perfweb.mail.intake import receive
from perfweb.mail.messages import IgnoredError

SECONDS = 60.0
"""Time-out of the server."""
PERIOD = 30.0
"""Seconds between two checks of the folder."""
LONGEST_PAUSE = 600.0
# Fetch at most the bytes that show that a mail is too large. PEEK does not mark it as seen.
_CONTENT = f"BODY.PEEK[]<0.{MAIL_BYTES + 1}>"
_FETCHED = b"BODY[]<0>"

TAKE = faults.Task("take a mail", "it stays unread and is tried again; read it in the mailbox, and mark it as seen")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Mailbox:
    """A folder on a server. Processed mails move to the folder `done`, or stay if that is empty."""

    host: str
    port: int
    user: str
    password_file: str
    folder: str = "INBOX"
    done: str = ""
    authorities: str | None = None
    """File with the trusted certificates; None: those of the system."""

    def __str__(self) -> str:
        return f"{self.folder} of {self.user} at {self.host}:{self.port}"

    def open(self) -> IMAPClient:
        """A session with the folder open. Raises IMAPClientError, OSError or ValueError."""
        password = Path(self.password_file).read_text(encoding="utf-8").strip()
        trusted = ssl.create_default_context(cafile=self.authorities)
        client = IMAPClient(self.host, self.port, ssl_context=trusted, timeout=SECONDS)
        try:
            client.login(self.user, password)
            if self.done and not client.has_capability("MOVE"):
                raise CapabilityError("the server cannot move mails: set no folder for those that were taken")
            client.select_folder(self.folder)
        except BaseException:
            client.shutdown()
            raise
        return client


def mailbox() -> Mailbox:
    """Return the configured mailbox."""
    return Mailbox(
        settings.IMAP_HOST,
        settings.IMAP_PORT,
        settings.IMAP_USER,
        settings.IMAP_PASSWORD_FILE,
        settings.IMAP_FOLDER,
        settings.IMAP_DONE_FOLDER,
        settings.IMAP_CA_FILE or None,
    )


def follow(box: Mailbox, ending: threading.Event) -> None:
    """Process mails until the end is requested; after an error wait twice as long each time."""
    pause = PERIOD
    while not ending.is_set():
        try:
            with box.open() as client:
                while not ending.is_set():
                    close_old_connections()
                    take_all(client, box)
                    pause = PERIOD
                    ending.wait(PERIOD)
        except (IMAPClientError, OSError, ValueError, Error, NotNowError) as error:
            log.warning("%s: %s; the next try is in %g seconds", box, error, pause)
            ending.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def take_all(client: IMAPClient, box: Mailbox) -> None:
    """Process the unseen mails, the oldest first. A mail that fails stays unseen, and the others are processed.

    Raises NotNowError, and errors of a server or database that does not answer; the rest is processed later.
    """
    for key in sorted(client.search("UNSEEN")):
        try:
            taken = _take(client, key)
        except (NotNowError, OperationalError, InterfaceError, IMAPClientAbortError, OSError):
            raise
        except Exception as error:
            faults.note(TAKE, _name(box, key), error)
            continue
        faults.clear(TAKE, _name(box, key))
        if taken:
            client.add_flags([key], [SEEN], silent=True)
            if box.done:
                client.move([key], box.done)


def _take(client: IMAPClient, key: int) -> bool:
    """Return whether a mail needs no further attempt."""
    fetched: dict[bytes, Any] = client.fetch([key], [_CONTENT]).get(key, {})
    if _FETCHED not in fetched:
        return False
    try:
        log.info("%s", receive(fetched[_FETCHED]))
    except IgnoredError as error:
        log.info("ignored a mail: %s", error)
    return True


def _name(box: Mailbox, key: int) -> str:
    return f"message {key} in {box.folder}"
