# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py retry_bot NAME`: checks a bot's token, and has sent now what waits for its forge."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.forges import sending
from perfweb.forges.models import Project


class Command(BaseCommand):
    help = "Checks the token of a bot, and sends now what waits for its forge (docs/howto/bots.md)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the repository here")

    def handle(self, *_: Any, **options: Any) -> None:
        project = Project.named(options["name"])
        if project is None:
            known = ", ".join(map(str, Project.objects.select_related("mirror"))) or "none"
            raise CommandError(f"there is no bot {options['name']!r}; there are: {known}")
        try:
            number = sending.retry(project)
        except sending.AccessError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"{project.login} may write to {project.path}; sent within seconds: {number} waiting messages"
        )
