# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py kcidb RUN …`: prints finished runs of submissions as a KCIDB report."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.runs.models import Run
from perfweb.submissions.kcidb import report


class Command(BaseCommand):
    help = "Prints finished runs of submissions as a KCIDB report, JSON by version 5.3 of its schema."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("runs", nargs="+", type=int, metavar="RUN", help="number of a run")
        parser.add_argument("--origin", default="perfweb", help="name of this site in KCIDB (perfweb)")

    def handle(self, *_: Any, **options: Any) -> None:
        runs = {run.pk: run for run in Run.objects.filter(pk__in=options["runs"]).select_related("plan", "testbed")}
        for number in options["runs"]:
            run = runs.get(number)
            if run is None or not run.is_over or not run.submissions.exists():
                raise CommandError(f"run {number} is no finished run of a submission")
        try:
            found = report([runs[number] for number in options["runs"]], options["origin"])
        except ValueError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(json.dumps(found, indent=1, ensure_ascii=False))
