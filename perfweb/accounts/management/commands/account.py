# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py account add|role|link|deactivate|activate|list`: accounts, managed by users of the server."""

from typing import Any

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from perfweb.accounts import audit
from perfweb.accounts.actors import on_server
from perfweb.accounts.models import Role, User
from perfweb.accounts.permissions import Action

ROLES = {role.label: role for role in Role}


class Command(BaseCommand):
    help = "Makes accounts and gives them roles. A password is set by its owner, with a link that works once."

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        add = commands.add_parser("add", help="make an account; prints a link to set its password")
        add.add_argument("name")
        add.add_argument("--role", choices=ROLES, default=Role.READER.label)
        role = commands.add_parser("role", help="give an account another role")
        role.add_argument("name")
        role.add_argument("role", choices=ROLES)
        for name, text in (
            ("link", "print a new link to set the password"),
            ("deactivate", "end its sessions and tokens, and refuse its sign-ins"),
            ("activate", "allow its sign-ins again"),
        ):
            commands.add_parser(name, help=text).add_argument("name")
        commands.add_parser("list", help="list accounts")

    def handle(self, *_: Any, **options: Any) -> None:
        command = options["command"]
        if command == "list":
            for user in User.objects.all():
                ending = "" if user.is_active else ", not active"
                self.stdout.write(f"{user.username}: {user.get_role_display()}{ending}")
            return
        name = options["name"]
        user = _new(name) if command == "add" else _known(name)
        with audit.action(on_server(), Action.MANAGE_ACCOUNTS, name) as entry:
            entry.detail = self._changed(user, command, options)
        self.stdout.write(f"{user.username}: {entry.detail}")
        if command in {"add", "link"}:
            self.stdout.write(f"Set the password at {_link(user)} (this address works once)")

    def _changed(self, user: User, command: str, options: dict[str, Any]) -> str:
        """Change the account; return the change for the log."""
        done = {"add": "made, ", "role": "now ", "deactivate": "not active", "activate": "active", "link": "new link"}
        if command in {"add", "role"}:
            user.role = ROLES[options["role"]]
        if command in {"deactivate", "activate"}:
            user.is_active = command == "activate"
        user.save()
        return f"{done[command]}{options.get('role') or ''}"


def _new(name: str) -> User:
    user = User(username=name)
    user.set_unusable_password()
    try:
        user.full_clean()
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from None
    return user


def _known(name: str) -> User:
    user = User.objects.filter(username__iexact=name).first()
    if user is None:
        there_are = ", ".join(User.objects.values_list("username", flat=True)) or "none"
        raise CommandError(f"there is no account {name!r}; there are: {there_are}")
    return user


def _link(user: User) -> str:
    """The address for setting the password, valid once and until PASSWORD_RESET_TIMEOUT is over."""
    key = urlsafe_base64_encode(force_bytes(user.pk))
    path = reverse("accounts:set-password", args=[key, default_token_generator.make_token(user)])
    return f"{settings.SITE_URL}{path}"
