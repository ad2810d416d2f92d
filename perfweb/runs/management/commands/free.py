# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py free TESTBED`: puts a testbed that cannot be restored back into service."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.accounts import audit
from perfweb.accounts.actors import on_server
from perfweb.accounts.permissions import Action
from perfweb.runs import services


class Command(BaseCommand):
    help = (
        "Ends the lease of a testbed that could not be restored, or whose worker is gone. The service does so itself "
        "as soon as the play `restore` works there; this is for when it never will. Clean the hosts first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("testbed", help="name of the testbed")

    def handle(self, *_: Any, **options: Any) -> None:
        testbed = options["testbed"]
        try:
            with audit.action(on_server(), Action.FREE_TESTBED, f"testbed {testbed}") as entry:
                lease = services.free(testbed)
                entry.detail = f"from {lease.holder}"
        except services.RunError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{lease.testbed} is free; what {lease.holder} left on its hosts is still there")
