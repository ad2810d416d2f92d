# SPDX-License-Identifier: BSD-2-Clause
"""Pages of docs/reference/ that are generated from the code: plan file, command line, addresses of the API,
reproductions.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class
from perfctl.commands import parser

from perfweb.api.v1 import document
from perfweb.runs.planfile import MOST_VARIANTS, SOURCE_RULE, TARGETS, read_plan
from perfweb.yamlnodes import Record
from playbooks.module_utils.gates import BY_NAME, DEFAULT_LIMITS
from tests.tutorials import blocks, here_documents
from tests.unit.manual.reproductions import reproductions

MARK = "`./dev test tests/unit/manual/test_reference.py --write` generates this page from the code."

MEANINGS = {
    "name": "name of the plan; runs of one name form series",
    "title": "one line for pages",
    "baseline": "the variant that the others are compared with",
    "variants": "what is compared; see below",
    "tests": "names of tests; `/tests/` lists all",
    "boots": "boots of each variant",
    "samples": "counted samples of each variant and test, over all boots",
    "discard": "warm-up samples at the start of each boot",
    "seconds": "length of a sample",
    "timeout": "seconds after which a sample is killed and its measurement fails",
    "order": "order of boots: `abba` alternates the direction, `random` shuffles each block",
    "stop": "`decided` ends the run when every comparison is decided",
    "margin": "for `stop: decided`: percent below which variants are equivalent",
    "confidence": "for `stop: decided`: confidence in percent",
    "profile": "count what locks or mutexes cost",
    "layouts": "number of memory layouts of each build; boots use them in turn",
    "gates": "limits of validity gates, or `off`; see below",
    "voids_allowed": "void samples of a measurement that are taken again",
    "budget": "minutes or hours from which boots and samples are computed",
    "sentinel": "boots between two boots of the sentinel, or `variant`, `every` and `samples`",
}
VARIANT_MEANINGS = {
    "name": "lower-case letters, digits, `_` and `-`",
    "target": ", ".join(f"`{target}`" for target in TARGETS),
    "source": SOURCE_RULE,
    "build": "meson options such as `-Dbuildtype=release`; of a kernel that counts, "
    "[configurations](../howto/kernel-patches.md#configurations) and options",
    "tunables": "names and values: of the stack, or knobs of the Linux kernel",
}


class Reader:
    """What the plan reader accepts, recorded while it reads an example."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.facts: dict[str, tuple[str, str]] = {}
        self.allowed: dict[str, Sequence[str]] = {}
        for method in ("number", "decimal", "choice", "text"):
            patch.setattr(Record, method, self._recording(getattr(Record, method)))
        original = Record.allow

        def allow(record: Record, *names: str) -> None:
            self.allowed.setdefault(record.field.path.partition("[")[0], names)
            original(record, *names)

        patch.setattr(Record, "allow", allow)
        read_plan(here_documents(blocks("first-verdict")[1])[0].replace("gates: off", "gates: {steal: 0.1}"))

    def _recording(self, method: Any) -> Any:
        def record(self_: Record, name: str, **options: Any) -> Any:
            if self_.field.path == "plan":
                self.facts[name] = (str(options["default"]), _range(options))
            return method(self_, name, **options)

        return record


def _range(options: dict[str, Any]) -> str:
    if "allowed" in options:
        return ", ".join(f"`{choice}`" for choice in options["allowed"])
    if "longest" in options:
        return f"at most {options['longest']} characters"
    return f"{options['lowest']:g} to {options['highest']:g}"


def plan_file(patch: pytest.MonkeyPatch) -> str:
    """Return the page of the plan file."""
    reader = Reader(patch)
    assert set(reader.allowed["plan"]) == set(MEANINGS), "MEANINGS describes each field of a plan"
    assert set(reader.allowed["variants"]) == set(VARIANT_MEANINGS)
    rows = []
    for name, meaning in MEANINGS.items():
        default, limits = reader.facts.get(name, ("", ""))
        rows.append(f"| `{name}` | {'' if name == 'title' else default} | {limits} | {meaning} |")
    variants = [f"| `{name}` | {meaning} |" for name, meaning in VARIANT_MEANINGS.items()]
    gates = [f"| `{name}` | {DEFAULT_LIMITS.get(name, 'off')} |" for name in BY_NAME]
    return "\n".join(
        [
            "# Plan file", "", "Which fields does a plan have, and what are their defaults and limits?", "",
            MARK, "",
            "Defaults and limits are those of the plan of the [first tutorial](../tutorials/first-verdict.md).",
            "Those of `boots`, `seconds` and `timeout` depend on other fields.",
            "An unknown field or a bad value is refused with its line.",
            "[Plans](../howto/plans.md) explains how to use them.", "",
            "## Fields of a plan", "", "| field | default | allowed | meaning |", "|---|---|---|---|", *rows, "",
            f"## Fields of a variant (1 to {MOST_VARIANTS})", "", "| field | meaning |", "|---|---|", *variants, "",
            "## Validity gates", "", "[Void samples](../howto/plans.md#void-samples) describes each gate.", "",
            "| gate | default limit |", "|---|---|", *gates, "",
        ]
    )  # fmt: skip


def command_line(patch: pytest.MonkeyPatch) -> str:
    """Return the page of manage.py's commands and perfctl."""
    patch.setenv("COLUMNS", "100")
    patch.delenv("PERFCTL_SERVER", raising=False)
    patch.setattr(settings, "PERFWEB_VAR", Path("var"))
    ours = sorted(name for name, app in get_commands().items() if str(app).startswith("perfweb."))
    parts = ["# Command line", "", "Which commands are there, and which options do they take?", "", MARK, ""]
    parts += ["## perfctl", "", "```", parser().format_help().rstrip(), "```", ""]
    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                if command.prog.split()[-1] != name:  # a former name
                    continue
                parts += [f"### perfctl {name}", "", "```", _usage(command), "```", ""]
    parts += ["## manage.py", ""]
    for name in ours:
        made = load_command_class(str(get_commands()[name]), name).create_parser("manage.py", name)
        parts += [f"### manage.py {name}", "", "```", _usage(made), "```", ""]
    return "\n".join(parts).replace(str(Path("var/run").resolve()), "var/run")


def _usage(command: argparse.ArgumentParser) -> str:
    """Return the help of a command without the options that Django adds to all."""
    common = {"--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color"}
    for action in command._actions:
        if common & set(action.option_strings) or "--skip-checks" in action.option_strings:
            action.help = argparse.SUPPRESS
    lines = command.format_help().rstrip().splitlines()
    return "\n".join(line.rstrip() for line in lines)


def api_addresses(_patch: pytest.MonkeyPatch) -> str:
    """Return the page of the API's addresses."""
    rows = []
    for path, operations in document()["paths"].items():
        for method, operation in operations.items():
            queries = ", ".join(f"`{one['name']}`" for one in operation["parameters"] if one["in"] == "query")
            rows.append(f"| {method.upper()} | `{path}` | {operation['summary']} | {queries} |")
    head = ["| method | address | what | query |", "|---|---|---|---|"]
    question = "Which addresses does the API have? [The API](api.md) describes tokens, lists, errors and exit statuses."
    return "\n".join(["# API addresses", "", question, "", MARK, "", *head, *rows, ""])


PAGES = {
    "plan-file": plan_file,
    "command-line": command_line,
    "api-addresses": api_addresses,
    "reproductions": reproductions,
}
