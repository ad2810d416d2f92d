# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py backup DIRECTORY`: copies the database, and the sources of queued runs."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.operations.backups import BackupError, backup


class Command(BaseCommand):
    help = "Backs up into a new directory while the service runs. docs/howto/backup.md lists what is not in it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("directory", type=Path, help="new directory, readable by its owner only")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            made = backup(options["directory"])
        except BackupError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{options['directory']}: {sum(made.rows.values())} rows of {len(made.rows)} tables")
        if made.missing:
            raise CommandError(
                f"{len(made.missing)} packed sources are not in the back-up, and their runs cannot be built after a "
                f"restore; all else is in it: {'; '.join(made.missing)}"
            )
