# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py track NAME --plan FILE --testbed NAME …`: tracks a branch, whose commits are measured as they arrive."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.accounts.actors import on_server
from perfweb.tracking import services
from perfweb.tracking.models import Rhythm
from perfweb.tracking.services import PROBLEMS, BranchRequest


class Command(BaseCommand):
    help = "Tracks a branch: measures its commits, confirms changes and sends alerts. Also pauses and resumes it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the tracked branch: letters, digits and -")
        parser.add_argument(
            "--plan", type=Path, metavar="FILE", help="every variant has `source: commit`, but for one reference"
        )
        parser.add_argument("--testbed", default="demo", help="testbed (demo)")
        parser.add_argument("--repository", default="", help="a registered one (default: the service's own)")
        parser.add_argument("--branch", default="HEAD")
        parser.add_argument(
            "--since", default="", metavar="COMMIT", help="the first one to measure (default: the newest)"
        )
        parser.add_argument("--rhythm", choices=Rhythm.values, default=Rhythm.PUSH.value)
        parser.add_argument("--every", type=int, default=1, metavar="N", help="for --rhythm every")
        parser.add_argument(
            "--threshold", type=float, default=0.5, help="percent; smaller changes raise no alert (0.5)"
        )
        parser.add_argument("--budget", type=int, default=240, help="minutes to confirm and bisect one change (240)")
        parser.add_argument(
            "--mail", action="append", default=[], metavar="ADDRESS", help="recipient of alerts; repeatable"
        )
        parser.add_argument("--hook", default="", metavar="URL", help="URL that alerts are posted to, as JSON")
        parser.add_argument(
            "--issues", action="store_true", help="open an issue on the forge for each confirmed change"
        )
        parser.add_argument("--pause", action="store_true", help="pause the branch")
        parser.add_argument("--resume", action="store_true", help="resume it")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            if options["pause"] or options["resume"]:
                branch = services.pause(on_server(), options["name"], active=options["resume"])
                self.stdout.write(f"{branch}: {'resumed' if branch.active else 'paused'}")
                return
            branch = services.track(on_server(), _wanted(options))
        except PROBLEMS as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"{branch}: {branch.branch} since {branch.since[:10]} on {branch.testbed}, {branch.rhythm_words}"
        )


def _wanted(options: dict[str, Any]) -> BranchRequest:
    if options["plan"] is None:
        raise CommandError("--plan FILE is missing; each of its variants needs `source: commit`")
    try:
        plan = options["plan"].read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{options['plan']} cannot be read: {error}") from None
    return BranchRequest(
        name=options["name"], plan=plan, testbed=options["testbed"], mirror=options["repository"],
        branch=options["branch"], since=options["since"], rhythm=options["rhythm"], every=options["every"],
        threshold=options["threshold"], budget=options["budget"], mail_to="\n".join(options["mail"]),
        hook=options["hook"], issues=options["issues"],
    )  # fmt: skip
