# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py register_testbed NAME --inventory FILE`: registers a testbed, or updates it from its inventory."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.accounts import audit
from perfweb.accounts.actors import on_server
from perfweb.accounts.permissions import Action
from perfweb.lab import services
from perfweb.lab.inventory import InventoryError
from playbooks.module_utils import command_line


def _require_words(words: list[str]) -> None:
    """Raises InventoryError for kernel parameters that no testbed can allow."""
    if why := command_line.list_problem(words):
        raise InventoryError(f"command_line_words of dut: {why}")


class Command(BaseCommand):
    help = "Registers the hosts of an Ansible inventory as a testbed: left, dut and right, or dut alone to simulate."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the testbed: letters, digits and -")
        parser.add_argument(
            "--inventory", type=Path, required=True, help="Ansible inventory with left, dut and right, or dut alone"
        )

        parser.add_argument(
            "--lab",
            default="",
            metavar="NAME",
            help="lab whose own worker drives the testbed (docs/howto/testbed-operation.md)",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        name, inventory = options["name"], options["inventory"]
        try:
            with audit.action(on_server(), Action.REGISTER_TESTBED, f"testbed {name}", str(inventory)):
                testbed = services.register(name, inventory, options["lab"])
                if testbed.command_line_words is not None:
                    _require_words(testbed.command_line_words)
        except InventoryError as error:
            raise CommandError(str(error)) from None
        hosts = ", ".join(str(host) for host in testbed.hosts.all())
        self.stdout.write(f"testbed {testbed.label}: {hosts}")
        if testbed.lab:
            self.stdout.write(f"driven by workers with --queues {testbed.queue} --hostname {testbed.queue}@%h")
