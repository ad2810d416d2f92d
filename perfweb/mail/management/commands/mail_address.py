# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py mail_address add|remove|list`: links mail addresses to accounts, by users of the server."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.accounts import audit
from perfweb.accounts.actors import on_server
from perfweb.accounts.models import User
from perfweb.accounts.permissions import Action
from perfweb.mail.models import Address


class Command(BaseCommand):
    help = "Maps a mail address to an account. Mails from it count as the account's if their signature is valid."

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        add = commands.add_parser("add", help="you know that this address is that account's")
        add.add_argument("name")
        add.add_argument("address")
        commands.add_parser("remove", help="remove the address").add_argument("address")
        commands.add_parser("list", help="list addresses")

    def handle(self, *_: Any, **options: Any) -> None:
        if options["command"] == "list":
            for known in Address.objects.select_related("user"):
                self.stdout.write(f"{known.address}: {known.user.username}")
            return
        address = options["address"].lower()
        if options["command"] == "add":
            user = User.objects.filter(username__iexact=options["name"]).first()
            if user is None:
                raise CommandError(f"there is no account {options['name']!r}; manage.py account list shows all")
            made = Address(user=user, address=address)
            try:
                made.full_clean()
            except ValidationError as error:
                raise CommandError(" ".join(error.messages)) from None
            with audit.action(on_server(), Action.MANAGE_ACCOUNTS, user.username, f"has the address {address}"):
                made.save()
        else:
            found = Address.objects.filter(address=address).select_related("user").first()
            if found is None:
                raise CommandError(f"{address} is nobody's; manage.py mail_address list shows all")
            with audit.action(on_server(), Action.MANAGE_ACCOUNTS, found.user.username, f"lost the address {address}"):
                found.delete()
