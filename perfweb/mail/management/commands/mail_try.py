# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py mail_try FILE.mbox`: prints what mails would be answered; nothing is sent or stored."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.mail.trial import mails_of, tried


class Command(BaseCommand):
    help = "Prints what mails would be answered; nothing is sent or stored (docs/howto/mail.md)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.mbox", help="an mbox, or one mail as it is received")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            mails = mails_of(options["file"])
        except OSError as error:
            raise CommandError(f"cannot read {options['file']}: {error.strerror}") from None
        self.stdout.write("\n\n".join(tried(mails)))
