# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: N999 (the file is called what the command is called)
"""`manage.py import FORMAT PATH…`: makes runs of results from elsewhere."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.accounts import audit
from perfweb.accounts.actors import on_server
from perfweb.accounts.permissions import Action
from perfweb.faults.models import Fault
from perfweb.imports.records import ImportProblemsError, Options, moment, slug
from perfweb.imports.write import FORMATS, import_files, read_files
from perfweb.runs.models import Topology
from perfweb.runs.states import SUMMARISE

SHOWN = 200
TESTBEDS = {"counted": "counted"}
"""The testbeds of results that are not measured, by format."""


class Command(BaseCommand):
    help = "Creates runs from results that were measured elsewhere. On an error, prints all errors and imports nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("format", choices=sorted(FORMATS))
        parser.add_argument(
            "path",
            nargs="+",
            help="netperf, iperf3, ministat: [NAME=]PATH is a variant, a file one boot of it, a folder a file for each "
            "boot; test-result: folders to look for test.result in; csv: tables; counted: from ./dev kernel --json",
        )
        parser.add_argument("--plan", default="", help="series of the results (name of the first path)")
        parser.add_argument("--title", default="", help="of the plan, for people")
        parser.add_argument("--origin", default="", help="origin of the results: author, time, licence")
        parser.add_argument("--testbed", default="", help="testbed of the results (imported, or counted)")
        parser.add_argument("--revision", default="", help="revision, if the files do not name it")
        parser.add_argument("--date", default="", help="time of its commit: 2015-01-04T09:30:00Z")
        parser.add_argument("--test", default="", help="the test: tcp.rr/host-host/ipv4")
        parser.add_argument(
            "--topology", default="host-host", choices=Topology.values, help="if the files name the test"
        )
        parser.add_argument("--baseline", default="", help="the variant to compare with (the first)")
        parser.add_argument("--metric", default="", help="metric, for csv and ministat")
        parser.add_argument("--unit", default="", help="of the numbers in csv and ministat")
        parser.add_argument("--lower", action="store_true", help="lower is better (usual for units of time)")
        parser.add_argument(
            "--column",
            action="append",
            default=[],
            metavar="FIELD=NAME",
            help="csv: which column is the value, test, variant, boot, revision, date, testbed or unit; ministat: "
            "value=NUMBER, counted from 1",
        )
        parser.add_argument("--boot-per-sample", action="store_true", help="the system was booted before each sample")
        parser.add_argument("--check", action="store_true", help="read only, and print what would be imported")

    def handle(self, *_: Any, **given: Any) -> None:
        try:
            options = _options(given)
            if given["check"]:
                records, sha256 = read_files(given["format"], given["path"], options)
                runs = len({(record.testbed, record.revision, record.committed) for record in records})
                self.stdout.write(f"{len(records)} samples of {runs} runs can be imported; SHA-256 {sha256}")
                return
            actor = on_server()
            with audit.action(actor, Action.IMPORT, detail=" ".join(given["path"])) as entry:
                made, records = import_files(given["format"], given["path"], options, actor.name)
                numbers = sorted(made.runs.values_list("pk", flat=True))
                named = f"run {numbers[0]}" if len(numbers) == 1 else f"runs {numbers[0]} to {numbers[-1]}"
                entry.subject = named
        except ImportProblemsError as error:
            shown = "\n".join(map(str, error.problems[:SHOWN]))
            more = f"\nand {len(error.problems) - SHOWN} more" if len(error.problems) > SHOWN else ""
            raise CommandError(f"nothing was imported:\n{shown}{more}") from None
        except ValueError as error:
            raise CommandError(str(error)) from None
        what = f"{len(records)} samples are {named}" if records else f"imported before, as {named}"
        self.stdout.write(f"{what}: {settings.SITE_URL}/runs/{numbers[-1]}/")
        imported = [f"run {number}" for number in numbers]
        if failed := Fault.objects.filter(task=SUMMARISE.name, item__in=imported).values_list("item", flat=True):
            raise CommandError(f"no summaries of {', '.join(failed)}: manage.py faults shows why")


def _options(given: dict[str, Any]) -> Options:
    """Raises ValueError for values that cannot be valid."""
    columns = dict(entry.partition("=")[::2] for entry in given["column"])
    if wrong := next((entry for entry in given["column"] if "=" not in entry), None):
        raise ValueError(f"--column {wrong} does not say which field it is: write FIELD={wrong}")
    if len(columns) < len(given["column"]):
        raise ValueError("--column maps a field twice")
    plan = slug(given["plan"] or Path(given["path"][0].rpartition("=")[2]).resolve().stem)
    if not plan:
        raise ValueError(f"--plan {given['plan']!r} is no name: it takes a letter or a digit")
    return Options(
        plan=plan,
        title=given["title"][:200],
        origin=given["origin"],
        testbed=given["testbed"] or TESTBEDS.get(given["format"], "imported"),
        revision=given["revision"],
        committed=moment(given["date"]) if given["date"] else None,
        test=given["test"],
        topology=given["topology"],
        metric=given["metric"],
        unit=given["unit"],
        direction="lower" if given["lower"] else "",
        baseline=given["baseline"],
        columns=columns,
        boot_per_sample=given["boot_per_sample"],
    )
