# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py summarise`: makes the summaries of runs, and what they tell about testbeds, anew from their samples."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from perfweb.runs.calibration import calibrate
from perfweb.runs.models import FINAL_STATES, Run
from perfweb.runs.summaries import summarise


class Command(BaseCommand):
    help = "Makes the numbers of timelines and testbeds anew from the samples of runs, by default of all that are over."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("runs", nargs="*", type=int, metavar="RUN")

    def handle(self, *_: Any, **options: Any) -> None:
        over = Run.objects.filter(state__in=FINAL_STATES).order_by("number").values_list("number", flat=True)
        numbers = options["runs"] or list(over)
        summarise(numbers)
        for number in numbers:
            calibrate(number)
        self.stdout.write(f"{len(numbers)} runs summarised")
