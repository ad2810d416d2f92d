# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py load_samples`: fills a new site with sample results, and removes them again."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.samples import services
from perfweb.samples.bundles import SampleError


class Command(BaseCommand):
    help = "Loads sample results, all marked as such, or removes them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--remove", action="store_true", help="remove all samples, and nothing else")

    def handle(self, *_: Any, **options: Any) -> None:
        if options["remove"]:
            self.stdout.write(f"{services.remove()} rows of samples removed")
            return
        if services.loaded():
            self.stdout.write("the samples are loaded already; manage.py load_samples --remove removes them")
            return
        try:
            for done in services.load_all():
                self.stdout.write(f"{done.name}: {done.runs} runs, {done.rows} rows")
        except SampleError as error:
            raise CommandError(str(error)) from None
        self.stdout.write("manage.py load_samples --remove removes them all")
