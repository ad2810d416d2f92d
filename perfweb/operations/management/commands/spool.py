# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py spool list|retry`: results on this machine that could not be stored."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.faults import services as faults
from perfweb.measuring import spool, spool_replay
from perfweb.runs.models import Run


class Command(BaseCommand):
    help = "Lists the results in the spool of this machine that could not be stored, or tries to store them again."

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        commands.add_parser("list", help="list the files that were set aside")
        commands.add_parser("retry", help="store the files, after a repair or an upgrade; files that fail stay")

    def handle(self, *_: Any, **options: Any) -> None:
        found = spool.aside()
        if options["command"] == "list":
            self.stdout.writelines(f"{path}: {path.stat().st_size} bytes" for path in found)
            self.stdout.write(f"{len(found)} results are set aside")
            return
        failed = faults.for_each(spool_replay.UNREADABLE, found, _put_back, spool_replay.spooled)
        runs = Run.objects.filter(pk__in=spool.run_numbers(found))
        failed += faults.for_each(spool_replay.REPLAY, runs, spool_replay.replay)
        left = spool.aside()
        self.stdout.write(f"{len(found) - len(left)} results are stored")
        if left or failed:
            raise CommandError(f"{len(left)} results cannot be stored; manage.py faults shows why")


def _put_back(path: Path) -> None:
    spool.put_back(path)
    faults.clear(spool_replay.SPOOL, spool_replay.spooled(path))
