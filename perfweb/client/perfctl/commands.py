# SPDX-License-Identifier: BSD-2-Clause
"""The commands: their requests, output and exit status."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from collections.abc import Callable, Sequence
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import Any

from perfctl import __version__, lab, submissions, tokens, tracking, trying
from perfctl.answers import Comparison, LevelChange, RunDetail, RunRow, Series
from perfctl.download import DamagedError, check_archive, download
from perfctl.events import Event, follow
from perfctl.server import Refused, Server, ServerError
from perfctl.tables import mark, moment, plain, quantity, table
from perfctl.usage import Status, UsageError, print_json

DEFAULT_SERVER = "http://127.0.0.1:8000"
ARCHIVE = "raw.tar"


EPILOG = """\
exit status: 0 success, and for compare and watch no test is slower or has failed; 1 a test is slower or has failed; 2
wrong usage, or the server has no such object; 3 (with --decided) a test has not enough data, or the run is not done;
4 the server gives no usable answer; 5 the run failed, was cancelled or was interrupted. Commands that change
something need a token of an account: perfctl login."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(prog="perfctl", description="Command-line client of a perfweb server.", epilog=EPILOG)
    top.add_argument(
        "--server",
        default=os.environ.get("PERFCTL_SERVER") or DEFAULT_SERVER,
        help=f"address of the server (PERFCTL_SERVER, or {DEFAULT_SERVER})",
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(
        name: str, function: Callable[[Server, argparse.Namespace], Status], text: str, aliases: Sequence[str] = ()
    ) -> Any:
        description = f"{text[0].upper()}{text[1:]}."
        added = commands.add_parser(name, help=text, description=description, epilog=EPILOG, aliases=aliases)
        added.add_argument("--json", action="store_true", help="print the server's response as JSON, for scripts")
        added.set_defaults(function=function)
        return added

    runs = command("runs", show_runs, "list runs, newest first, with their verdicts")
    for name, text in FILTERS.items():
        runs.add_argument(f"--{name}", metavar="X", action="append" if name == "state" else "store", help=text)
    runs.add_argument("--limit", type=int, default=20, metavar="N", help="max number of runs (20)")
    command("run", show_run, "show one run").add_argument("number", type=int)
    compare = command("compare", show_comparison, "compare the variants of a run, or of several")
    compare.add_argument(
        "sides", nargs="+", metavar="RUN | SIDE", help="12, or two to seven of 12/direct, COMMIT/direct"
    )
    _verdict_options(compare)
    load = command("download", fetch, "download raw data of a run; continues after an interruption")
    load.add_argument("number", type=int)
    load.add_argument("file", nargs="?", default=ARCHIVE, help=f"which file ({ARCHIVE}, which is checked)")
    load.add_argument("-o", "--output", type=Path, help="where to (run-NUMBER-FILE)")
    watch = command("watch", watch_run, "follow a run to its end, then print its verdicts")
    watch.add_argument("number", type=int)
    _verdict_options(watch)
    series = command("series", show_series, "show a test over commits or runs")
    series.add_argument("test", help="such as tcp.rr/host-host/ipv4")
    series.add_argument("--by", choices=["commit", "run"], default="commit")
    series.add_argument("--from", dest="first", metavar="X", help="a date, or the number of a run")
    series.add_argument("--to", dest="last", metavar="X", help="a date, or the number of a run")
    series.add_argument("--newest", type=int, default=20, metavar="N", help="max number of points (20)")
    series.add_argument("--series", action="append", metavar="TESTBED/PLAN/VARIANT", help="only these")
    lab.add_commands(command)
    command("login", log_in, "read a token of your account from standard input, and store it")
    command("account", show_account, "show the account of the token, and its permissions")
    command("cancel", cancel_run, "cancel a run").add_argument("number", type=int)
    submissions.add_commands(command)
    attempt = command("try", try_changes, "submit the changes of the working tree, wait, and print their verdicts")
    submissions.add_measuring_options(
        attempt, "commit of the server (the newest that the branch shares with its upstream)"
    )
    _verdict_options(attempt)
    tracking.add_commands(command)
    return top


FILTERS = {
    "state": "in this state (repeatable)",
    "plan": "of the plan of this name",
    "test": "that measured this test",
    "variant": "with a variant of this name",
    "testbed": "on this testbed",
    "commit": "that built this revision",
    "since": "created at this date or time or later",
    "until": "created before this date or time",
}


def _verdict_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--confidence", type=float, help="in percent: 80, 90, 95, 98, 99 or 99.5 (95)")
    command.add_argument("--margin", type=float, help="margin of equivalence in percent (2)")
    command.add_argument("--decided", action="store_true", help="exit status 3 if a test has not enough data")


def run_command(arguments: Sequence[str]) -> int:
    """Run a command line; return the exit status. argparse exits on an invalid one; without any, print the help."""
    if not arguments:
        parser().print_help()
        return Status.FINE
    options = parser().parse_args(arguments)
    status = Status.FINE
    try:
        status = options.function(_server(options.server), options)
        sys.stdout.flush()
    except Refused as error:
        mistaken = error.status < HTTPStatus.INTERNAL_SERVER_ERROR
        address = options.server.rstrip("/")
        status = _failed(f"{address}: {error}", Status.WRONG_USAGE if mistaken else Status.NO_ANSWER)
    except (ServerError, DamagedError) as error:
        status = _failed(str(error), Status.NO_ANSWER)
    except BrokenPipeError:
        # The reader has closed the pipe: discard the buffered output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (UsageError, ValueError, OSError) as error:
        status = _failed(str(error), Status.WRONG_USAGE)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return status


def _server(address: str) -> Server:
    server = Server(address)
    server.token = tokens.find(server.address)
    return server


def _failed(message: str, status: Status) -> Status:
    print(f"perfctl: {plain(message)}", file=sys.stderr)
    return status


def show_runs(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl runs`."""
    if options.limit < 1:
        raise UsageError("--limit takes a number from 1 on")
    filters = {name: getattr(options, name) for name in FILTERS}
    wanted = server.runs(verdicts="true", limit=min(options.limit, 50), **filters)
    runs = list(islice(wanted, options.limit))
    if options.json:
        print_json(runs)
        return Status.FINE
    rows = [
        (
            str(run["number"]),
            run["state"],
            run["plan"]["name"],
            _where(run),
            moment(run["ended"] or run["created"]),
            "; ".join(f"{verdict['variant']}: {verdict['words']}" for verdict in run["verdicts"] or []),
        )
        for run in runs
    ]
    print(table(("run", "state", "plan", "testbed", "time", "says"), rows))
    return Status.FINE


def _where(run: RunRow) -> str:
    return f"{run['testbed']}{mark(run['origin'])}"


def show_run(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl run`."""
    run = server.run(options.number)
    if options.json:
        print_json(run)
        return Status.FINE
    counts = ", ".join(f"{count} {state}" for state, count in run["measurements"].items())
    facts = [
        ("run", f"{run['number']}: {run['plan']['title']} ({run['plan']['name']})"),
        ("state", f"{run['state']}{': ' if run['reason'] else ''}{run['reason']}"),
        *([("imported", f"from {run['imported']['origin']}, not measured here")] if run["imported"] else []),
        ("testbed", _where(run)),
        ("started", moment(run["started"])),
        ("ended", moment(run["ended"])),
        ("measured", f"{run['boots']} boots; measurements: {counts or 'none'}"),
        *(
            ("verdict", f"{verdict['variant']} against {verdict['base']}: {verdict['words']}")
            for verdict in run["verdicts"] or []
        ),
        *(("failed", f"{one['variant']} {one['kind']}: {one['line']}") for one in run["failures"]),
        *(("warning", warning.partition("\n")[0]) for warning in run["warnings"]),
        ("page", f"{server.address}{run['page']}"),
        ("files", " ".join(file["name"] for file in run["files"])),
    ]
    width = max(len(name) for name, _ in facts)
    print("\n".join(f"{name:{width}}  {plain(text)}" for name, text in facts))
    variants = [
        (
            f"{variant['name']}{' (baseline)' if variant['baseline'] else ''}",
            variant["revision"] or "-",
            " ".join([*(f"{name}={value}" for name, value in variant["tunables"].items()), *variant["build_options"]]),
        )
        for variant in run["variants"]
    ]
    print(f"\n{table(('variant', 'revision', 'tunables and build options'), variants)}")
    return Status.FINE


def show_comparison(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl compare`."""
    terms = {"confidence": options.confidence, "margin": options.margin}
    if len(options.sides) == 1:
        if not options.sides[0].isdecimal():
            raise UsageError(f"“{options.sides[0]}” is no number of a run; sides such as 12/direct need a second one")
        number = int(options.sides[0])
        compared = server.compare_run(number, **terms)
        if not (run := server.run(number))["over"]:
            _warn_unfinished(run)
    else:
        compared = server.compare(options.sides[0], *options.sides[1:], **terms)
    return _print_verdicts(server, compared, options)


def _warn_unfinished(run: RunDetail) -> None:
    print(f"perfctl: run {run['number']} is {run['state']}: these are its results so far", file=sys.stderr)


def _in_text(found: Comparison, address: str) -> str:
    """Return a comparison as text; that of counted kernels names the functions that differ."""
    return plain(found["text"]) + f"\n\n{address}{found['page']}"


def _print_verdicts(server: Server, compared: list[Comparison], options: argparse.Namespace) -> Status:
    """Print comparisons; return the worst status."""
    if options.json:
        print_json(compared)
    elif not compared:
        print("The run has one variant only, so it has no comparison.")
    else:
        print("\n\n".join(_in_text(found, server.address) for found in compared))
    return verdict_status(compared, decided=options.decided)


def verdict_status(compared: list[Comparison], *, decided: bool) -> Status:
    """Return the exit status of comparisons; `decided` requires enough data for every test."""
    found = {verdict for comparison in compared for verdict, count in comparison["verdicts"].items() if count}
    if found & {"slower", "failed"}:
        return Status.SLOWER
    measured = all(comparison["tests"] for comparison in compared) and compared
    if decided and (found & {"not enough data", "not judged"} or not measured):
        return Status.NOT_ENOUGH_DATA
    return Status.FINE


def fetch(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl download`."""
    run = server.run(options.number)
    paths = {file["name"]: file["url"] for file in run["files"]}
    if options.file not in paths:
        raise UsageError(f"run {options.number} has no file {options.file}; it has {', '.join(paths)}")
    target: Path = options.output or Path(f"run-{options.number}-{options.file}")
    download(server, paths[options.file], target)
    summary: dict[str, Any] = {"file": str(target), "bytes": target.stat().st_size}
    if options.file == ARCHIVE:
        try:
            summary["checked"] = check_archive(target)
        except DamagedError:
            target.unlink()
            raise
    if options.json:
        print_json(summary)
    else:
        checked = f"; {summary['checked']} files agree with SHA256SUMS" if "checked" in summary else ""
        print(f"{target}: {summary['bytes']} bytes{checked}")
    return Status.FINE


def try_changes(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl try`."""

    def watch(number: int) -> Status:
        return watch_run(server, argparse.Namespace(**vars(options), number=number))

    return trying.try_changes(server, options, watch)


def watch_run(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl watch`."""
    path = server.run(options.number)["events"]
    for event in follow(server, path):
        line = json.dumps({"event": event.name, **event.values}) if options.json else event_line(event)
        if line:
            print(line, flush=True)
    run = server.run(options.number)
    if run["state"] != "done":
        reason = f": {run['reason']}" if run["reason"] else ""
        return _failed(f"run {options.number} is {run['state']}{reason}", Status.RUN_NOT_DONE)
    compared = server.compare_run(options.number, confidence=options.confidence, margin=options.margin)
    if options.json:
        print(json.dumps({"event": "comparisons", "items": compared}))
        return verdict_status(compared, decided=options.decided)
    return _print_verdicts(server, compared, options)


def event_line(event: Event) -> str:
    """Return an event as a line; empty for one that is not for display, or unknown."""
    values = event.values
    try:
        return plain(_LINES[event.name](values)) if event.name in _LINES else ""
    except (KeyError, TypeError, ValueError):
        return ""


def _measured(values: dict[str, Any]) -> str:
    result = (
        quantity(values["mean"], values["unit"])
        if values["state"] == "ok"
        else f"{values['state']}: {values['reason']}"
    )
    return f"  {values['test']} on {values['variant']}: {result}"


_LINES: dict[str, Callable[[dict[str, Any]], str]] = {
    "state": lambda values: f"{values['state']}{': ' if values['reason'] else ''}{values['reason']}",
    "eta": lambda values: f"{100 * values['fraction']:.0f} %, about {values['seconds']} s left",
    "boot": lambda values: (
        f"boot {values['position'] + 1} of {values['boots']}: {values['variant']}, {values['topology']}"
    ),
    "measurement": _measured,
}


def show_series(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl series`."""
    part = {"by": options.by, "from": options.first, "to": options.last, "newest": options.newest}
    found = server.series(options.test, **part, series=options.series)
    if options.json:
        print_json(found)
        return Status.FINE
    if not found["series"]:
        print(f"{plain(options.test)} was not measured there.")
        return Status.FINE
    print(f"{plain(found['test'])}, {found['direction']} is better\n")
    print(_points(found["series"], found["unit"], options.by))
    for level in found["levels"]:
        print(plain(f"\n{_level_line(level)}"))
    for change in found["changes"]:
        facts = "; ".join(f"{fact['name']}: {fact['before']} → {fact['after']}" for fact in change["facts"])
        print(plain(f"\nrun {change['run']}, hosts of {change['testbed']} changed: {facts}"))
    if found["left_out"]:
        print(plain(f"\nnot shown: {', '.join(found['left_out'])}"))
    return Status.FINE


def _level_line(level: LevelChange) -> str:
    since, until = (level[end]["revision"] or f"run {level[end]['run']}" for end in ("since", "until"))
    size = (
        "" if level["percent"] is None else f", {level['percent']:+.2f} % ({level['low']:+.2f} to {level['high']:+.2f})"
    )
    cautions = "".join(f"; {caution}" for caution in level.get("cautions", []))
    return f"{level['verdict']} after {since}, with {until} or before: {level['series']}{size}{cautions}"


def _points(series: list[Series], unit: str, by: str) -> str:
    """A line for each commit or run, a column for each series."""
    spots: dict[tuple[str, int], dict[str, str]] = {}
    runs: dict[tuple[str, int], tuple[int, str]] = {}
    for line in series:
        for point in line["points"]:
            spot = (point["at"] or "", 0) if by == "commit" else ("", point["run"])
            spots.setdefault(spot, {})[line["name"]] = quantity(point["mean"], unit)
            runs[spot] = max(runs.get(spot, (0, "")), (point["run"], point["revision"]))
    names = [line["name"] for line in series]
    rows = [
        (
            *((moment(spot[0]),) if by == "commit" else ()),
            runs[spot][1] or "-",
            str(runs[spot][0]),
            *(spots[spot].get(name, "-") for name in names),
        )
        for spot in sorted(spots)
    ]
    return table((*(("commit of",) if by == "commit" else ()), "revision", "run", *names), rows)


def log_in(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl login`."""
    tokens.check_encrypted(server.address)
    page = f"{server.address}/account/"
    entered = getpass.getpass(f"Token, created at {page}: ") if sys.stdin.isatty() else sys.stdin.readline()
    server.token = entered.strip()
    account = server.account()
    file = tokens.keep(server.address, server.token)
    if options.json:
        print_json(account)
    else:
        print(f"{plain(account['name'])} at {server.address}; the token is kept in {file}")
    return Status.FINE


def show_account(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl account`."""
    account = server.account()
    if options.json:
        print_json(account)
        return Status.FINE
    print(plain(f"{account['name']}, {account['role']}; token {account['token']} ({account['scope']})"))
    print(f"until {moment(account['expires'])}; may: {', '.join(account['may'])}")
    return Status.FINE


def cancel_run(server: Server, options: argparse.Namespace) -> Status:
    """`perfctl cancel`."""
    run = server.cancel(options.number)
    if options.json:
        print_json(run)
    else:
        ending = " and will be cancelled in a moment" if run["cancel_requested"] else ""
        print(f"run {run['number']} is {run['state']}{ending}")
    return Status.FINE
