# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py receive_mail < message`: stores one mail, for a pipe of a mail server."""

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error

from perfweb.accounts.limits import NotNowError
from perfweb.inputlimits import MAIL_BYTES
from perfweb.mail.intake import receive
from perfweb.mail.messages import IgnoredError


class Command(BaseCommand):
    help = "Stores the mail on standard input; the messenger handles its request (docs/howto/mail.md)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--sender", help="of the envelope (MAIL FROM); empty for none")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            self.stdout.write(receive(sys.stdin.buffer.read(MAIL_BYTES + 1), options["sender"]))
        except IgnoredError as error:
            self.stdout.write(f"ignored: {error}")
        except (NotNowError, Error) as error:  # the mail server keeps the mail
            raise CommandError(f"not taken: {error}", returncode=os.EX_TEMPFAIL) from None
