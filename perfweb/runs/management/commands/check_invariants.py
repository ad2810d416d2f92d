# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py check_invariants`: checks the invariants of the database."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from perfweb.runs.invariants import CHECKS, violations


class Command(BaseCommand):
    help = "Checks the whole database for lost results, results counted twice, and leases without a run."

    def handle(self, *_: Any, **__: Any) -> None:
        found = violations()
        if found:
            raise CommandError("\n".join([f"{len(found)} contradictions:", *found]))
        self.stdout.write(f"all {len(CHECKS)} invariants hold")
