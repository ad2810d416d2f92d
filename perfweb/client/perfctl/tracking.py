# SPDX-License-Identifier: BSD-2-Clause
"""The subcommands for alerts of tracked branches."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import islice
from typing import Any

from perfctl.answers import AlertDetail, AlertRow, MovementOut
from perfctl.server import Server
from perfctl.tables import mark, moment, plain, table
from perfctl.usage import Status, UsageError, print_json

JUDGEMENTS = ("acknowledged", "fixed", "not-a-bug", "infrastructure")


def add_commands(command: Callable[..., Any]) -> None:
    """Add the subcommands; `command` makes one of a name, a function and a description."""
    alerts = command("alerts", show_alerts, "list alerts of tracked branches, newest first")
    alerts.add_argument("--branch", metavar="X", help="only of this tracked branch")
    alerts.add_argument("--state", metavar="X", help=f"only new, refuted, confirmed, {', '.join(JUDGEMENTS)}")
    alerts.add_argument("--limit", type=int, default=20, metavar="N", help="max number of runs (20)")
    command("alert", show_alert, "show the changes, the commit and the comments of an alert").add_argument(
        "number", type=int
    )
    text = "set the outcome or the owner of a confirmed alert, or comment"
    update = command("update-alert", update_alert, text, aliases=["say"])  # the former name
    update.add_argument("number", type=int)
    update.add_argument("text", nargs="?", default="", help="a comment")
    update.add_argument("--state", choices=JUDGEMENTS, help="the outcome")
    update.add_argument("--owner", metavar="ACCOUNT", help="the owner; empty for none")
    update.add_argument("--due", metavar="DATE", help="until when, as 2026-11-23")


def show_alerts(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl alerts`."""
    if options.limit < 1:
        raise UsageError("--limit takes a number from 1 on")
    wanted = server.alerts(limit=min(options.limit, 50), branch=options.branch, state=options.state)
    alerts = list(islice(wanted, options.limit))
    if options.json:
        print_json(alerts)
        return Status.FINE
    rows = [
        (
            str(alert["number"]), alert["state"], alert["branch"], _where(alert), alert["owner"] or "-",
            "; ".join(_moved(row) for row in alert["movements"]),
        )
        for alert in alerts
    ]  # fmt: skip
    print(table(("alert", "state", "branch", "commit", "owner", "moved"), rows))
    return Status.FINE


def show_alert(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl alert`."""
    return _print_alert(server, server.alert(options.number), options)


def update_alert(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl update-alert`."""
    given = {"state": options.state, "owner": options.owner, "due": options.due, "text": options.text}
    fields = {name: value for name, value in given.items() if value is not None}
    return _print_alert(server, server.update_alert(options.number, **fields), options)


def _print_alert(server: Server, alert: AlertDetail, options: argparse.Namespace) -> Status:
    if options.json:
        print_json(alert)
        return Status.FINE
    due = f", due {alert['due']}" if alert["due"] else ""
    branch = f"{alert['branch']}{mark(alert['origin'])}"
    print(plain(f"alert {alert['number']} on {branch} is {alert['state']}, {_where(alert)}"))
    print(plain(f"owner: {alert['owner'] or 'none'}{due}"))
    for row in alert["movements"]:
        print(plain(f"    {_moved(row)}"))
    if alert["conclusion"]:
        print(plain(alert["conclusion"]))
    for step in alert["steps"]:
        words = ": ".join(filter(None, (step["state"], " ".join(step["text"].split()))))
        print(plain(f"{moment(step['at'])}  {step['who']}  {words}"))
    print(f"{server.address}{alert['page']}")
    return Status.FINE


def _where(alert: AlertRow | AlertDetail) -> str:
    """Return the culprit, or the range of commits."""
    if alert["commit"]:
        return f"{alert['commit']['sha'][:10]} {alert['commit']['subject']}"
    return f"after {alert['since']['sha'][:10]}, with {alert['until']['sha'][:10]} or before"


def _moved(row: MovementOut) -> str:
    where = f"{row['test']} on {row['variant']}"
    if row["percent"] is None or row["low"] is None or row["high"] is None:
        return f"{where} {row['suspected']:+.2f} %, not measured again"
    doubt = "" if row["confirmed"] else ", which proves nothing"
    return f"{where} {row['percent']:+.2f} % ({row['low']:+.2f} to {row['high']:+.2f}){doubt}"
