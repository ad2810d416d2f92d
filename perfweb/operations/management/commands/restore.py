# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py restore DIRECTORY`: restores a back-up of `manage.py backup` into an empty database."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.operations.backups import BackupError, restore


class Command(BaseCommand):
    help = "Restores a back-up into an empty database, in one transaction."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("directory", type=Path)

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            found = restore(options["directory"])
        except BackupError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{sum(found.rows.values())} rows of {len(found.rows)} tables, as of {found.made}")
        self.stdout.write("now: manage.py migrate")
