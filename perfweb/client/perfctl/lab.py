# SPDX-License-Identifier: BSD-2-Clause
"""The subcommands for testbeds and their queues."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from perfctl.answers import Service
from perfctl.server import Server
from perfctl.tables import plain, table
from perfctl.usage import Status, print_json


def add_commands(command: Callable[..., Any]) -> None:
    """Describe the subcommands."""
    command("testbeds", show_testbeds, "list testbeds and how they are")
    waiting = command("queue", show_queue, "list the runs that wait, in turn, and when they probably start")
    waiting.add_argument("--testbed", metavar="X", help="only runs that wait for it")
    out = command("maintain", maintain_testbed, "take a testbed out of service; its current run continues to the end")
    out.add_argument("testbed")
    out.add_argument("why", help="for people")
    back = command("back", put_testbed_back, "put a testbed back into service, from maintenance or quarantine")
    back.add_argument("testbed")


def show_testbeds(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl testbeds`."""
    testbeds = list(server.testbeds())
    if options.json:
        print_json(testbeds)
        return Status.FINE
    rows = [
        (
            testbed["name"],
            testbed["words"],
            " ".join(str(run) for run in testbed["newest_runs"][:1]) or "-",
            ", ".join(f"{host['name']} ({host['role']})" for host in testbed["hosts"]),
        )
        for testbed in testbeds
    ]
    print(table(("testbed", "is", "last run", "hosts"), rows))
    return Status.FINE


def show_queue(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl queue`."""
    waiting = server.queue(options.testbed)
    if options.json:
        print_json(waiting)
        return Status.FINE
    rows = [
        (
            str(run["number"]),
            run["testbed"],
            plain(run["plan"]),
            plain(run["requested_by"]) or "-",
            run["priority"],
            _starts(run["seconds_to_start"]),
        )
        for run in waiting["items"]
    ]
    print(table(("run", "testbed", "plan", "for", "priority", "starts"), rows))
    return Status.FINE


def _starts(seconds: int | None) -> str:
    if seconds is None:
        return "unknown"
    return f"in {math.ceil(seconds / 60)} min" if seconds else "at once"


def maintain_testbed(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl maintain`."""
    return _print_state(server.maintain(options.testbed, options.why), options, "out of service")


def put_testbed_back(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl back`."""
    return _print_state(server.put_back(options.testbed), options, "back in service")


def _print_state(service: Service, options: argparse.Namespace, state: str) -> Status:
    if options.json:
        print_json(service)
    else:
        kinds = " and ".join(outage["kind"] for outage in service["outages"])
        print(f"testbed {service['name']} is {state}: {kinds}")
    return Status.FINE
