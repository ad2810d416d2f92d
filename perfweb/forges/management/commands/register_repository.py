# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py register_repository NAME --url URL …`: registers a repository, and its project on a forge."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper

from perfweb.accounts import audit
from perfweb.accounts.actors import on_server
from perfweb.accounts.models import User
from perfweb.accounts.permissions import Action
from perfweb.builds import mirrors
from perfweb.builds.kinds import KINDS, STACK
from perfweb.builds.models import Mirror
from perfweb.builds.repositories import RepositoryError
from perfweb.forges import secrets, sending
from perfweb.forges.models import ForgeName, Member, Project
from perfweb.lab.models import Testbed
from perfweb.runs.services import RunError, find_testbed

OF_PROJECT = ("project", "api", "login", "account")


class Command(BaseCommand):
    help = "Registers a git repository, fetches it, and with --forge lets the service answer on its pull requests."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the repository here: letters, digits and -")
        parser.add_argument("--url", required=True, help="where git fetches it: https://…, or an absolute path")
        parser.add_argument("--branch", default="main", help="target branch of pull requests (default: main)")
        parser.add_argument("--kind", choices=list(KINDS), help="what it holds (default: stack)")
        parser.add_argument("--forge", choices=ForgeName.values)
        parser.add_argument("--project", help="owner/name on the forge")
        parser.add_argument("--api", help="such as https://api.github.com, https://gitlab.example.org/api/v4")
        parser.add_argument("--login", help="the bot's own name on the forge")
        parser.add_argument("--account", help="account for requests of forge users without a local account")
        parser.add_argument("--testbed", default="demo", help="testbed (demo)")
        parser.add_argument(
            "--allow", action="append", default=[], metavar="LOGIN=ACCOUNT",
            help="local account of a forge user; repeatable; LOGIN= removes it",
        )  # fmt: skip

    def handle(self, *_: Any, **options: Any) -> None:
        name = options["name"]
        try:
            mirrors.check(options["url"])
            with audit.action(on_server(), Action.REGISTER_REPOSITORY, f"repository {name}", options["url"]):
                mirror = _mirror(name, options)
                project = _project(mirror, options) if options["forge"] else None
                for pair in options["allow"]:
                    _allow(project, pair)
            base = mirrors.fetch(mirror).commit(mirror.branch)
        except (RepositoryError, RunError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"repository {mirror}: {mirror.branch} is {base.revision}")
        if project:
            secrets.make(project)
            self.stdout.write(f"webhook: {settings.SITE_URL}/forges/{mirror.name}/webhook")
            self.stdout.write(f"its secret: in {secrets.secret_file(project)}")
            _report_token(self.stdout, project)


def _report_token(out: OutputWrapper, project: Project) -> None:
    """Check the bot's token if there is one."""
    file = secrets.token_file(project)
    if not file.read_bytes().strip():
        out.write(f"the bot's token: write it into {file}, then check it: manage.py retry_bot {project}")
        return
    try:
        sending.check(project)
    except sending.AccessError as error:
        raise CommandError(f"{project} is registered, but its bot cannot work: {error}") from None
    out.write(f"the bot's token: in {file}; {project.login} may write to {project.path}")


def _mirror(name: str, options: dict[str, Any]) -> Mirror:
    mirror = Mirror.objects.filter(name=name).first() or Mirror(name=name, kind=options["kind"] or STACK.name)
    if options["kind"] not in (None, mirror.kind):
        raise CommandError(f"repository {name} is of kind {mirror.kind}: register another kind with another name")
    mirror.url, mirror.branch = options["url"], options["branch"]
    try:
        mirror.full_clean()
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from None
    mirror.save()
    return mirror


def _project(mirror: Mirror, options: dict[str, Any]) -> Project:
    if missing := [f"--{name}" for name in OF_PROJECT if not options[name]]:
        raise CommandError(f"--forge needs {', '.join(missing)}, too")
    try:
        mirrors.check(options["api"])
    except RepositoryError:
        raise CommandError(f"--api {options['api']} is no address with https://") from None
    testbed: Testbed = find_testbed(options["testbed"])
    values = {
        "forge": options["forge"], "api": options["api"], "path": options["project"], "login": options["login"],
        "account": _account(options["account"]), "testbed": testbed,
    }  # fmt: skip
    project, _ = Project.objects.update_or_create(mirror=mirror, defaults=values)
    return project


def _allow(project: Project | None, pair: str) -> None:
    login, equals, account = pair.partition("=")
    if project is None or not equals or not login:
        raise CommandError("--allow LOGIN=ACCOUNT goes with --forge: it names the account of a forge user")
    Member.objects.filter(project=project, login__iexact=login).delete()
    if account:
        Member.objects.create(project=project, login=login, user=_account(account))


def _account(name: str) -> User:
    user = User.objects.filter(username__iexact=name).first()
    if user is None:
        raise CommandError(f"there is no account {name!r}: make one with manage.py account add {name} --role submitter")
    return user
