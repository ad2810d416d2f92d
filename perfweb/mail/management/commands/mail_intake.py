# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py mail_intake`: accepts mails from the mail server (LMTP) until it is stopped."""

import signal
import threading
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.mail.lmtp import listen, share


class Command(BaseCommand):
    help = "Receives mails by LMTP; the messenger handles their requests (docs/howto/mail.md)."

    def add_arguments(self, parser: CommandParser) -> None:
        usual = str(
            (Path(settings.PERFWEB_VAR) / "run").resolve() / "lmtp.sock"
        )  # short, because paths of sockets are limited
        parser.add_argument("--listen", default=usual, metavar="SOCKET|HOST:PORT", help=f"where ({usual})")

    def handle(self, *_: Any, **options: Any) -> None:
        if not settings.MAIL_ADDRESS:
            raise CommandError("PERFWEB_MAIL_ADDRESS is not set: give it the address that patches are sent to")
        try:
            server = listen(options["listen"])
            if "/" in options["listen"]:  # left by a killed process
                Path(options["listen"]).unlink(missing_ok=True)
            server.start()
            if "/" in options["listen"]:
                share(Path(options["listen"]), settings.MAIL_SOCKET_GROUP)
        except (OSError, ValueError) as error:
            raise CommandError(f"cannot listen on {options['listen']}: {error}") from None
        ending = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ending.set())
        self.stdout.write(f"taking mails to {settings.MAIL_ADDRESS} at {options['listen']}")
        self.stdout.flush()
        try:
            ending.wait()
        finally:
            server.stop()
