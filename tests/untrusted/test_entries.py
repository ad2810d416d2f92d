# SPDX-License-Identifier: BSD-2-Clause
"""Every module that can parse input is reached by a parser of the table, or is listed with the reason why not.

A module that imports one of the libraries below can parse input. The modules that the table reaches are observed while
its parsers run, so that a new module without a row fails.
"""

from __future__ import annotations

import ast
import sys
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from tests.untrusted.hostile import GENERIC, call
from tests.untrusted.parsers import PARSERS

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("perfweb", "runners", "playbooks")
LIBRARIES = {
    *("base64", "binascii", "configparser", "csv", "email", "gzip", "html.parser", "imaplib", "ipaddress", "json"),
    *("pickle", "plistlib", "re", "shlex", "struct", "tarfile", "xml", "yaml", "zipfile", "zlib", "perfweb.jsontext"),
}
WRITES = "it only writes with it"
OWN = "it reads what the service or the tree itself has written"
OPERATOR = "it reads what an operator has written"
KERNEL = "it reads what the kernel and its tools print about the host"
PATHS = "its patterns are applied to an address or a header of limited length"
NOT_REACHED = {
    "perfweb/accounts/actors.py": "it reads an address that the web server has read",
    "perfweb/accounts/limits.py": "it reads an address that the web server has read",
    "perfweb/accounts/views_oauth.py": "its pattern is applied to a name of at most 256 KiB, in one pass",
    "perfweb/api/problems.py": WRITES,
    "perfweb/api/v1.py": WRITES,
    "perfweb/builds/services.py": WRITES,
    "perfweb/builds/sources.py": WRITES,
    "perfweb/client/perfctl/commands.py": WRITES,
    "perfweb/client/perfctl/server.py": "perfctl trusts the server that its user names",
    "perfweb/client/perfctl/tokens.py": OPERATOR,
    "perfweb/client/perfctl/usage.py": WRITES,
    "perfweb/serving/connections.py": PATHS,
    "perfweb/outbox/hooks.py": WRITES,
    "perfweb/tracking/alerts/webhooks.py": WRITES,
    "perfweb/outbox/rest.py": "it reads with perfweb.jsontext",
    "perfweb/counted/configurations/__init__.py": "its pattern has bounded repetitions only, for an item of a plan",
    "perfweb/submissions/kcidb.py": OPERATOR,
    "perfweb/submissions/management/commands/kcidb.py": WRITES,
    "perfweb/patchwork/client.py": "it reads with perfweb.jsontext, and checks each value",
    "perfweb/forges/webhooks.py": "its parts have rows of their own: JSON, deliveries",
    "perfweb/imports/write.py": WRITES,
    "perfweb/lab/inventory.py": OPERATOR,
    "perfweb/lab/services.py": OPERATOR,
    "perfweb/logs.py": WRITES,
    "perfweb/mail/intake.py": PATHS,
    "perfweb/manual/glossary.py": OWN,
    "perfweb/manual/markdown.py": OWN,
    "perfweb/manual/search.py": OWN,
    "perfweb/reports/published.py": OWN,
    "perfweb/reports/search.py": "its pattern is applied to names of tests",
    "perfweb/rawdata/archives.py": WRITES,
    "perfweb/rawdata/documents.py": WRITES,
    "perfweb/rawdata/tables.py": WRITES,
    "perfweb/figures/scaling.py": "its pattern is applied to names of tests",
    "perfweb/figures/svg.py": WRITES,
    "perfweb/reports/templatetags/reports.py": WRITES,
    "perfweb/runs/broadcast.py": WRITES,
    "perfweb/runs/bulk.py": WRITES,
    "perfweb/runs/summaries.py": WRITES,
    "perfweb/runs/pages/events.py": PATHS,
    "perfweb/samples/bundles.py": OWN,
    "perfweb/submissions/services.py": WRITES,
    "perfweb/tracking/measuring.py": "it reads plans that the plan reader has accepted",
    "perfweb/tracking/series.py": WRITES,
    "perfweb/runs/judging.py": "it reads what perfweb/imports/counted.py has accepted and written",
    "playbooks/action_plugins/build.py": WRITES,
    "playbooks/library/build.py": "it decodes an archive that the guard has limited; sources are read in a sandbox",
    "playbooks/library/daemon.py": "its pattern is a fixed text, by the table of parameters",
    "playbooks/library/data_path.py": KERNEL,
    "playbooks/library/host_environment.py": KERNEL,
    "playbooks/library/host_state.py": KERNEL,
    "playbooks/library/measure.py": WRITES,
    "playbooks/module_utils/congestion.py": KERNEL,
    "playbooks/module_utils/gauges.py": KERNEL,
    "playbooks/module_utils/module.py": "it reads parameters that Ansible or the guard has read before",
    "playbooks/module_utils/seccomp.py": WRITES,
    "playbooks/module_utils/tunnels.py": "it reads an address that the table of parameters has checked",
    "perfweb/serving/unavailable.py": "its pattern is applied to errors of libraries",
    "runners/dependencies/advisories.py": "it reads answers of the package index for an operator",
    "runners/ansible/guard.py": OWN,
    "runners/labs/common.py": OWN,
    "runners/labs/netlab.py": OWN,
    "runners/ansible/packing.py": OWN,
    "perfweb/measuring/raw.py": WRITES,
    "perfweb/measuring/record.py": "it writes JSON; what it reads has rows: outputs of tools, events of plays",
    "runners/dependencies/sbom.py": OWN,
    "runners/services/supervisor.py": OWN,
    "perfweb/measuring/spool.py": OWN,
    "runners/labs/vmimage.py": OWN,
    "runners/counted/__main__.py": WRITES,
    "runners/counted/boot.py": "its pattern is applied to lines that console.py has shortened",
    "perfweb/measuring/tools/counted.py": "it reads with perfweb.jsontext and perfweb.counted.costs, which have rows",
    "runners/counted/lane.py": WRITES,
    "runners/counted/sample.py": WRITES,
    "runners/counted/make.py": "its pattern is a fixed text and one word, for the commands that make(1) prints",
    "runners/counted/command.py": OPERATOR,
    "runners/counted/config.py": OPERATOR,
    "runners/ansible/server.py": OWN,
}


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module}
    return {name for name in found if any(f"{name}.".startswith(f"{library}.") for library in LIBRARIES)}


def _can_parse() -> set[str]:
    return {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if "migrations" not in path.parts and _imports(path)
    }


def _reached() -> set[str]:
    """The files whose functions the parsers of the table call."""
    files: set[str] = set()

    def notice(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(notice)
    try:
        for parser in PARSERS:
            for generate in islice({**parser.texts, **GENERIC}.values(), 200):
                call(parser, generate(600))
    finally:
        sys.setprofile(before)
    return {name.removeprefix(f"{ROOT}/") for name in files}


def test_every_module_that_can_parse_has_a_row_or_a_reason() -> None:
    able = _can_parse()
    reached = _reached()
    assert sorted(able - reached - set(NOT_REACHED)) == [], "give it a row in tests/untrusted"
    assert sorted(set(NOT_REACHED) & reached) == [], "it has a row: take it out of NOT_REACHED"
    assert sorted(set(NOT_REACHED) - able) == [], "it parses nothing any more: take it out of NOT_REACHED"


def test_every_tool_has_a_row() -> None:
    from perfweb.runs.catalogue import MEASURES

    assert {f"output of {measure.tool}" for measure in MEASURES} <= {parser.name for parser in PARSERS}
