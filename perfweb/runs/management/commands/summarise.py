# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py summarise`: computes the summaries of runs, and the noise of testbeds, again from samples."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.faults import services as faults
from perfweb.runs.calibration import calibrate
from perfweb.runs.models import FINAL_STATES, Run
from perfweb.runs.states import SUMMARISE
from perfweb.runs.summaries import summarise


class Command(BaseCommand):
    help = "Computes the summaries of runs again from their samples, by default of all finished runs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("runs", nargs="*", type=int, metavar="RUN")

    def handle(self, *_: Any, **options: Any) -> None:
        wanted = set(options["runs"])
        runs = Run.objects.filter(pk__in=wanted) if wanted else Run.objects.filter(state__in=FINAL_STATES)
        found = list(runs.order_by("number").only("number"))
        failed = faults.for_each(SUMMARISE, found, _summarise)
        self.stdout.write(f"{len(found) - len(failed)} runs summarised")
        if failed:
            raise CommandError(f"{len(failed)} failed: {', '.join(failed)}; manage.py faults shows why")
        if missing := sorted(wanted - {run.number for run in found}):
            raise CommandError(f"there are no runs {', '.join(map(str, missing))}")


def _summarise(run: Run) -> None:
    summarise([run.number])
    calibrate(run.number)
