# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py mail_fetch`: fetches mails from a mailbox (IMAP) until it is stopped."""

import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from perfweb.mail.imap import follow, mailbox

NEEDED = {
    "MAIL_ADDRESS": "the address that patches are sent to",
    "IMAP_HOST": "the name of the server that has the mailbox",
    "IMAP_USER": "user of the mailbox",
    "IMAP_PASSWORD_FILE": "the path of a file with that user's password",
}


class Command(BaseCommand):
    help = "Fetches mails from a mailbox; the messenger handles their requests (docs/howto/mail.md)."

    def handle(self, *_: Any, **__: Any) -> None:
        for name, meaning in NEEDED.items():
            if not getattr(settings, name):
                raise CommandError(f"PERFWEB_{name} is not set: give it {meaning}")
        box, ending = mailbox(), threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ending.set())
        self.stdout.write(f"taking mails to {settings.MAIL_ADDRESS} from {box}")
        self.stdout.flush()
        follow(box, ending)
