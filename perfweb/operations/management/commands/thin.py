# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py thin DAYS`: deletes the raw outputs of old runs, and keeps their samples."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Sum
from django.utils import timezone

from perfweb.operations.thinning import Thinned, thin, too_old


class Command(BaseCommand):
    help = "Gives up tools' outputs and logs of runs that ended some days ago. Samples and verdicts are kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("days", type=int, help="how long ago, at least")
        parser.add_argument("--dry-run", action="store_true", help="only say how much that would be")

    def handle(self, *_: Any, **options: Any) -> None:
        days = options["days"]
        if days < 1:
            raise CommandError("days: at least 1")
        if options["dry_run"]:
            old = too_old(days, timezone.now())
            would = Thinned(old.count(), old.order_by().aggregate(size=Sum("size"))["size"] or 0)
            self.stdout.write(f"{would.texts} texts with {would.size} bytes would be given up")
            return
        done = thin(days)
        self.stdout.write(f"{done.texts} texts with {done.size} bytes given up")
        if done.failed:
            raise CommandError(f"{len(done.failed)} failed: {', '.join(done.failed)}; manage.py faults shows why")
