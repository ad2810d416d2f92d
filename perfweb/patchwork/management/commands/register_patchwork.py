# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py register_patchwork NAME --api URL …`: submits the new series of a project of a Patchwork."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from perfweb.accounts import audit
from perfweb.accounts.actors import on_server
from perfweb.accounts.models import User
from perfweb.accounts.permissions import Action
from perfweb.builds import mirrors
from perfweb.builds.kinds import KINDS
from perfweb.builds.repositories import RepositoryError
from perfweb.outbox import secretfiles
from perfweb.patchwork.client import site_of, token_file
from perfweb.patchwork.models import Project
from perfweb.runs.services import RunError, find_testbed
from perfweb.submissions.plans import MATRICES


class Command(BaseCommand):
    help = "Submits the new series of a project of a Patchwork, and posts checks (docs/howto/patchwork.md)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the project here: letters, digits and -")
        parser.add_argument("--api", required=True, help="such as https://patchwork.example.org/api/1.3")
        parser.add_argument("--project", required=True, help="its name there: netdevbpf")
        parser.add_argument(
            "--state", action="append", help="state of patches that are measured; repeatable (new, under-review)"
        )
        parser.add_argument("--repository", required=True, help="registered repository to which patches are applied")
        parser.add_argument("--testbed", required=True)
        parser.add_argument("--tests", choices=list(MATRICES), help="name of the tests (the repository's usual ones)")
        parser.add_argument("--each", action="store_true", help="measure series patch by patch")
        parser.add_argument("--account", required=True, help="account that submits the series")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            if mirrors.check(options["api"]) == "file":
                raise CommandError(f"--api {options['api']} is no address with https://")
            site_of(options["api"])
            mirror = mirrors.find(options["repository"])
            testbed = find_testbed(options["testbed"])
        except (RepositoryError, RunError, ValueError) as error:
            raise CommandError(str(error)) from None
        account = User.objects.filter(username__iexact=options["account"]).first()
        if mirror is None or account is None:
            raise CommandError(f"there is no account {options['account']!r}: make one with manage.py account add")
        now = timezone.now()
        values = {
            "api": options["api"], "project": options["project"], "states": options["state"] or ["new", "under-review"],
            "mirror": mirror, "testbed": testbed, "matrix": options["tests"] or KINDS[mirror.kind].matrix,
            "each": options["each"], "account": account, "due": now,
        }  # fmt: skip
        project = Project.objects.filter(name=options["name"]).first() or Project(name=options["name"], since=now)
        for name, value in values.items():
            setattr(project, name, value)
        try:
            project.full_clean()
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        with audit.action(on_server(), Action.REGISTER_REPOSITORY, f"Patchwork {project}", options["api"]):
            project.save()
        secretfiles.create(token_file(project))
        self.stdout.write(f"{project}: series with {' or '.join(project.states)} patches from now on, every 5 minutes")
        self.stdout.write(f"its token, for checks: write it into {token_file(project)}")
