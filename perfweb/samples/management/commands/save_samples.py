# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py save_samples FILE TESTBED…`: saves all results of testbeds as a bundle of samples."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.samples.bundles import SUFFIX, SampleError, save


class Command(BaseCommand):
    help = "Saves all results of testbeds, their branches and submissions in a file that load_samples can load."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help=f"the file to write: NAME{SUFFIX}")
        parser.add_argument("--origin", required=True, help="source of the values, for the pages of the samples")
        parser.add_argument(
            "testbeds", nargs="+", metavar="TESTBED[=NAME]", help="a testbed, and its name as a sample, sample-NAME"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        path = options["file"]
        if not path.name.endswith(SUFFIX):
            raise CommandError(f"{path}: the name of a bundle ends with {SUFFIX}")
        pairs = [word.partition("=") for word in options["testbeds"]]
        try:
            rows = save(path, {testbed: name or testbed for testbed, _, name in pairs}, options["origin"])
        except (SampleError, OSError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{rows} rows in {path.stat().st_size} bytes")
