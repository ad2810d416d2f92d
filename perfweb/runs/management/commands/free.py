# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py free TESTBED`: ends the lease of a testbed whose worker is gone and that cannot be restored."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.runs import services


class Command(BaseCommand):
    help = (
        "Ends the lease of a testbed whose worker is gone. The service does so by itself as soon as the play `restore` "
        "works there; this is for when it never will. Clean the hosts before you measure on them again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("testbed", help="name of the testbed")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            lease = services.free(options["testbed"])
        except services.RunError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{lease.testbed} is free; what {lease.holder} left on its hosts is still there")
