# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py check_invariants`: whether anything in the database contradicts itself."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from perfweb.runs.invariants import CHECKS, violations


class Command(BaseCommand):
    help = "Looks in the whole database for what was lost, is counted twice, or is held by nobody."

    def handle(self, *_: Any, **__: Any) -> None:
        found = violations()
        if found:
            raise CommandError("\n".join([f"{len(found)} contradictions:", *found]))
        self.stdout.write(f"all {len(CHECKS)} invariants hold")
