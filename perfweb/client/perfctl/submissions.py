# SPDX-License-Identifier: BSD-2-Clause
"""The subcommands for submitted patches."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perfctl import lore
from perfctl.answers import RunDetail, SubmissionDetail
from perfctl.server import Server
from perfctl.tables import plain
from perfctl.usage import Status, UsageError, print_json


def add_commands(command: Callable[..., Any]) -> None:
    """Add the subcommands; `command` makes one of a name, a function and a description."""
    submit = command("submit", submit_patch, "submit a patch, to be measured against its base")
    submit.add_argument(
        "patch", nargs="?", type=Path, help="output of git format-patch --stdout or git diff; - for standard input"
    )
    submit.add_argument("--ref", help="a branch, tag or commit instead: its changes since the base")
    submit.add_argument("--lore", metavar="MAIL", help="Message-ID or address of a mail: its series, from an archive")
    submit.add_argument(
        "--archive", default=lore.ADDRESS, metavar="ADDRESS", help=f"public-inbox (PERFCTL_LORE, or {lore.ADDRESS})"
    )
    submit.add_argument("--each", action="store_true", help="measure a series patch by patch")
    add_measuring_options(submit, "branch, tag or commit, instead of the patch's base-commit")
    command("submission", show_submission, "show the progress of a submission").add_argument("number", type=int)
    approve = command("approve", approve_submission, "approve a patch, after you have read it")
    approve.add_argument("number", type=int)
    refuse = command("refuse", refuse_submission, "refuse a patch that waits for approval")
    refuse.add_argument("number", type=int)
    refuse.add_argument("reason", help="reason, shown to the author")
    withdraw = command("withdraw", withdraw_submission, "cancel a submission and its runs")
    withdraw.add_argument("number", type=int)
    rerun = command("rerun", rerun_submission, "measure a submission again")
    rerun.add_argument("number", type=int)
    rerun.add_argument("--boots", type=int, metavar="N", help="of each variant (as in the plan)")


def add_measuring_options(command: argparse.ArgumentParser, base: str) -> None:
    """Add the options that say what is measured, and where; `base` is the help of --base."""
    command.add_argument("--base", help=base)
    command.add_argument("--repository", help="registered repository of ref and base (the server's own)")
    command.add_argument("--testbed", default="demo", help="testbed (demo)")
    command.add_argument("--tests", help="matrix of tests (tcp-quick)")
    command.add_argument(
        "--set", action="append", default=[], metavar="TUNABLE=VALUE", help="tunable of both base and patch"
    )
    command.add_argument("--title", help="title (the subject of the patch)")
    command.add_argument("--plan", type=Path, help="a plan instead of tests and tunables")


def submit_patch(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl submit`."""
    if [options.patch, options.ref, options.lore].count(None) != 2:
        raise UsageError("give a file with a patch, or --ref, or --lore: one of them")
    patch, message = lore.thread_of(options.lore, options.archive) if options.lore else (_patch(options.patch), "")
    made = submit(server, patch, options, base=options.base, ref=options.ref, each=options.each, message_id=message)
    return print_submission(server, made, options)


def submit(server: Server, patch: str, options: argparse.Namespace, **more: object) -> SubmissionDetail:
    """Submit a patch with the measuring options of a command line; empty ones are left out."""
    wanted = {
        "tests": options.tests,
        "tunables": dict(setting.partition("=")[::2] for setting in options.set),
        "title": options.title,
        "repository": options.repository,
        "plan": options.plan.read_text(encoding="utf-8") if options.plan else None,
        **more,
    }
    return server.submit(patch, options.testbed, **{name: value for name, value in wanted.items() if value})


def _patch(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        return (sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()).decode()
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8: upload it with the form of the page") from None


def show_submission(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl submission`."""
    return print_submission(server, server.submission(options.number), options)


def approve_submission(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl approve`."""
    return print_submission(server, server.approve(options.number), options)


def refuse_submission(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl refuse`."""
    return print_submission(server, server.refuse(options.number, options.reason), options)


def withdraw_submission(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl withdraw`."""
    return print_submission(server, server.withdraw(options.number), options)


def rerun_submission(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl rerun`."""
    return print_submission(server, server.rerun(options.number, options.boots), options)


def _print_results(run: RunDetail) -> None:
    for failure in run["failures"]:
        print(plain(f"run {run['number']}: {failure['variant']} {failure['kind']}: {failure['line']}"))
    for verdict in run["verdicts"] or []:
        print(plain(f"run {run['number']}: {verdict['variant']} against {verdict['base']}: {verdict['words']}"))
    if run["state"] == "done":
        print(f"    every test: perfctl compare {run['number']}")


def print_submission(server: Server, submission: SubmissionDetail, options: argparse.Namespace) -> Status:
    """Print the state of a submission, its runs with their verdicts, and the address of its page."""
    if options.json:
        print_json(submission)
        return Status.FINE
    runs = ", ".join(f"run {run['number']} is {run['state']}" for run in submission["runs"])
    print(plain(f"submission {submission['number']} is {submission['state']}{': ' if runs else ''}{runs}"))
    for line in submission["reason"].splitlines():
        print(f"    {plain(line)}")
    for number in [run["number"] for run in submission["runs"] if run["state"] in {"done", "failed"}]:
        _print_results(server.run(number))
    if boots := submission["deciding_boots"]:
        print(f"a run with {boots} boots of each variant would decide what is open: perfctl rerun --boots")
    print(f"{server.address}{submission['page']}")
    return Status.FINE
