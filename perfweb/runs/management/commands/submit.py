# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py submit PLAN --testbed NAME [--set boots=2]`: queues a run of a plan."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.accounts import audit
from perfweb.accounts.actors import on_server
from perfweb.accounts.permissions import Action
from perfweb.runs import services
from perfweb.runs.models import Priority
from perfweb.runs.planfile import SIZES, PlanError, SizeError, resized

PLANS = Path(services.__file__).parent / "plans"


class Command(BaseCommand):
    help = "Queues a run of a plan: a YAML file, or the name of one of perfweb/runs/plans."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("plan", help="YAML file, or name of a shipped plan")
        parser.add_argument("--testbed", default="demo", help="name of a registered testbed (default: demo)")

        parser.add_argument(
            "--priority", choices=Priority.labels, default="normal", help="runs of a higher one go first (normal)"
        )
        parser.add_argument(
            "--set", action="append", default=[], metavar="FIELD=NUMBER", dest="sizes",
            help=f"replace a number of the plan; repeatable; fields: {', '.join(SIZES)}",
        )  # fmt: skip

    def handle(self, *_: Any, **options: Any) -> None:
        path = Path(options["plan"])
        if not path.exists():
            path = PLANS / f"{options['plan']}.yaml"
        try:
            text = path.read_text(encoding="utf-8")
            sizes = dict(setting.partition("=")[::2] for setting in options["sizes"])
            with audit.action(on_server(), Action.SUBMIT) as entry:
                run = services.submit(
                    resized(text, sizes), options["testbed"], priority=Priority[options["priority"].upper()]
                )
                entry.subject, entry.detail = f"run {run.number}", f"plan {run.plan} on {run.testbed}"
        except PlanError as error:
            raise CommandError(f"{path}: {error}") from None
        except (OSError, UnicodeDecodeError) as error:
            shipped = ", ".join(sorted(plan.stem for plan in PLANS.glob("*.yaml")))
            raise CommandError(f"cannot read {path}: {error}; shipped plans: {shipped}") from None
        except services.RunError as error:
            raise CommandError(str(error)) from None
        except SizeError as error:
            raise CommandError(f"--set {error}") from None
        self.stdout.write(f"run {run.number} is queued: {settings.SITE_URL}/runs/{run.number}/")
