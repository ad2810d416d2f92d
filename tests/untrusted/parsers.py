# SPDX-License-Identifier: BSD-2-Clause
"""The parsers of untrusted input: the arguments of each, its possible exceptions, and texts made for it.

Parsers of HTTP requests and of hosts have their own modules. test_entries.py checks that none is missing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path

from perfctl import events, lore
from perfctl.usage import UsageError

from perfweb.builds import mirrors, repositories
from perfweb.builds.bases import expected_files
from perfweb.builds.patches import PatchError, read_series
from perfweb.builds.repositories import RepositoryError
from perfweb.builds.threads import series_in
from perfweb.counted import diagnostics
from perfweb.figures import durations
from perfweb.forges import markdown
from perfweb.forges.table import FORGES, ShapeError
from perfweb.imports.records import Files, ImportProblemsError, Options, Report, moment, slug
from perfweb.imports.write import FORMATS
from perfweb.jsontext import JsonError, read_json, read_request, refuse_repeated
from perfweb.mail import proof
from perfweb.mail.messages import IgnoredError, Rules, read_message
from perfweb.measuring import tools
from perfweb.measuring.tools import ToolError
from perfweb.outbox import public
from perfweb.plaintext import plain
from perfweb.reports.pages import boots
from perfweb.runs.catalogue import MEASURES, Measure
from perfweb.runs.planfile import PlanError, SizeError, read_plan, resized
from perfweb.stats.samples import COLUMNS, parse_samples
from perfweb.submissions import commands, difftext, plans
from perfweb.verdicts import counters, lockprofiles
from runners.counted import console
from tests.untrusted import hosts, modules, requests
from tests.untrusted.hostile import DENSE_JSON, Generator, Parser, repeated, within


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


MAIL = "From: a@b.org\nMessage-ID: <1@b.org>\nSubject: [PATCH] x\n"
COMMIT = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
DIFF = "diff --git a/stack/x b/stack/x\n--- a/stack/x\n+++ b/stack/x\n@@ -1 +1 @@\n-a\n+b\n"
PLAN = "name: x\nbaseline: a\nvariants:\n- {name: a, target: stack}\ntests: [tcp.rr/host-host/ipv4]\n"
_LINUX = (
    "name: x\nbaseline: a\ntests: [tcp.rr/host-host/ipv4]\nvariants:\n- name: a\n  target: linux\n  tunables: {KNOB: '"
)
_SHAPES = ("run", "nested", "opening")

_MAIL_HEADERS = (
    *("To", "Cc", "Reply-To", "Sender", "Date", "Message-ID", "In-Reply-To", "Received", "List-Id", "Return-Path"),
    *("Content-Type", "Content-Disposition", "Content-Transfer-Encoding", "DKIM-Signature", "Authentication-Results"),
)
_HEADER_SHAPES = (
    "run of '(",
    "run of '<",
    "run of '\"",
    "run of '=?utf",
    "run of ';",
    "run of ' ",
    "run of 'a",
    "nested",
)

_IN_MAIL = {
    **within(f"{MAIL}\n", f"\n{DIFF}", *_SHAPES),
    **within("From: ", "\nMessage-ID: <1@b.org>\nSubject: x\n\nx\n", *_SHAPES),
    **within("From: a@b.org\nMessage-ID: <1@b.org>\nSubject: [PATCH] ", f"\n\n{DIFF}", *_SHAPES),
    **within(f"{MAIL}References: ", f"\n\n{DIFF}", "run of '<", "numbered '<"),
    **within(f"{MAIL}Content-Type: text/plain; ", f"\n\n{DIFF}", *_SHAPES),
    **within(f"{MAIL}Content-Type: multipart/mixed; boundary=x\n\n--x\n", "\n--x--\n", *_SHAPES),
    **within(f"{MAIL}Content-Type: text/html\n\n", f"\n\n{DIFF}", "run of '<p", "run of '&#9", *_SHAPES),
    **within(f"{MAIL}Content-Transfer-Encoding: base64\n\n", "", *_SHAPES),
    **within(f"{MAIL}Content-Transfer-Encoding: quoted-printable\n\n", "", *_SHAPES),
    **within(f"{MAIL}Content-Transfer-Encoding: x-uuencode\n\nbegin 644 a\n", "\nend\n", *_SHAPES),
    **within(f"{MAIL}Content-Type: text/plain; charset=", f"\n\n\udce9{DIFF}", *_SHAPES),
    **{
        name: generate
        for header in _MAIL_HEADERS
        for name, generate in within(f"{MAIL}{header}: ", f"\n\n{DIFF}", *_HEADER_SHAPES).items()
    },
    **repeated(MAIL, "X-{0}: y\n", f"\n{DIFF}"),
    **repeated(f"{MAIL}Content-Type: text/plain; format=flowed\n\n", "a{0} \n", DIFF),
    **repeated(f"{MAIL}\n", "[PATCH] x{0}\n", DIFF),
    **repeated(f"{MAIL}\n", f">{COMMIT}", DIFF),
    **repeated(MAIL, "DKIM-Signature: l=1\n", f"\n{DIFF}"),
    **repeated(MAIL, 'Authentication-Results: mx; x="\\"\\""\n', f"\n{DIFF}"),
    **repeated(f"{MAIL}Content-Type: multipart/mixed; boundary=x\n\n", "--x\n\n"),
    **repeated(f"{MAIL}Content-Type: multipart/mixed; boundary=x\n\n", "--x\nContent-Type: message/rfc822\n\n\n"),
    **repeated(f"{MAIL}Content-Type: multipart/digest; boundary=x\n\n", "--x\n\n\n"),
    **repeated(MAIL, "Content-Type: multipart/mixed; boundary=b{0}\n\n--b{0}\n"),
    **repeated(f"{MAIL}Content-Type: text/plain", "; a*{0}*=utf-8''x", f"\n\n{DIFF}"),
    **repeated(f"{MAIL}\n", "From: a\n"),
}
_PATCHES = {
    **within(f"{COMMIT}{MAIL}\n", f"\n{DIFF}", *_SHAPES),
    **within(DIFF, "", *_SHAPES),
    **within("", f"\n{DIFF}", *_SHAPES),
    **repeated("", f"{COMMIT}{MAIL}\n{DIFF}\n"),
    **repeated("", f"{COMMIT}From: a@b.org\nSubject: [PATCH {{0}}/64] x\n\n{DIFF}\n".replace("@@ -1 +1 @@", "@@")),
}
_THREADS = {
    **_PATCHES,
    **within(f"{COMMIT}Message-ID: <1@b.org>\nSubject: [PATCH 1/2] x\nIn-Reply-To: ", f"\n\n{DIFF}", *_HEADER_SHAPES),
    **repeated("", f"{COMMIT}Message-ID: <{{0}}@b.org>\nIn-Reply-To: <1@b.org>\nSubject: [PATCH 1/2] x\n\nx\n"),
}


def _read_mail(text: str) -> object:
    return read_message(_bytes(text), Rules("perf@example.org", "mx", {"list": "list@example.org"}), "a@b.org")


def _tool(measure: Measure) -> Callable[[str], object]:
    return lambda text: tools.parse(measure, text)


def _interim(measure: Measure) -> Callable[[str], object]:
    return lambda text: tools.interim(measure, text)


_ONE_OF_EACH = {measure.tool: measure for measure in MEASURES}
_TOOL_TEXTS: dict[str, dict[str, Generator]] = {
    "netperf": {
        **repeated("", "NETPERF_INTERIM_RESULT[0]=1\nNETPERF_UNITS[0]=10^3bits/s\nNETPERF_INTERVAL[0]=0.2\n"),
        **within("NETPERF_INTERIM_RESULT", "\nNETPERF_UNITS=", "run of '='", "run of 'a='"),
        **within("THROUGHPUT=", "\n", *_SHAPES),
    },
    "iperf3": {
        **within('{"intervals": ', "}", "nested"),
        **repeated('{"intervals": [', '{"sum": {"end": 1, "bits_per_second": 2}},', "1]}"),
        **within('{"end": {"sum_received": {"bits_per_second": ', "}}}", "run of '9", "run of '0", "nested"),
    },
    "simstack": {
        **within('{"unit": "packets/s", "runs": [{"rate": ', "}]}", "run of '9", "run of '0", "nested"),
        **within('{"unit": ', ', "runs": [{"rate": 1}]}', "nested"),
    },
    "tcpbench": {
        **repeated("", " 100  1000  1.0  100.00% \n"),
        **repeated("", " 100  1000  1.0  100.00% \nConn:\n"),
        **within(" 100 1 ", "% \n", "run of '1.", "run of ' '"),
    },
    "netblast": {
        **repeated("ndr: 1 datagrams/s\npdr: 1 datagrams/s\n", "load: 25 % p50: 1 us\n"),
        **within("ndr: 1 datagrams/s\nload: 25 % ", " us\n", "run of 'p50", "run of ' '"),
        **within("sent: 1 seconds: 1 rate: ", " datagrams/s\n", "run of '9"),
    },
}
_COUNTED = "VALUE 1 bits/sec x\n"


def _import(form: str) -> Callable[[str], object]:
    def read(text: str) -> object:
        with tempfile.TemporaryDirectory(prefix="perfweb-test-") as made:
            folder = Path(made) / "2026-11-21T00:00:00Z"
            folder.mkdir()
            path = folder / "test.result"
            path.write_bytes(_bytes(text))
            report = Report()
            options = Options("x", test="a/host-host/ipv4")
            found = list(FORMATS[form]([str(made if form == "test-result" else path)], options, Files(report)))
            report.settle()
            return found

    return read


_COSTS = (
    '{"sides": {"base": [{"seed": 1, "loads": {"counted.tcp.rr/local/ipv4": {"units": 1, "windows": [[1, 1, 1]], '
    '"functions": {'
)
_IMPORT_TEXTS: dict[str, dict[str, Generator]] = {
    "counted": {
        **repeated('{"sides": {"base": [', '{"seed": 1, "loads": {}}, ', "{}]}}"),
        **repeated('{"sides": {"base": [', '{"seed": {0}, "loads": {}}, ', "{}]}}"),
        **repeated(_COSTS, '"f{0}": [1, 2, 3, 1, 2, 3], ', '"f": [1, 2, 3, 1, 2, 3]}}}}]}}'),
    },
    "csv": {
        **repeated("value\n", "1\n"),
        **repeated("", "{0},"),
        **repeated("", "{0},", "a,a\n1"),
        **within("value\n", "\n", *_SHAPES),
        **within('value\n"', '"\n', *_SHAPES),
    },
    "iperf3": {**repeated("", "{0} "), **repeated("", "\n1"), **within("", "1", "run of ' ", "run of '\\n")},
    "ministat": {**repeated("", "1 2 3\n"), **within("1", "x\n", "run of '9", "run of '1.")},
    "netperf": {
        **repeated("", "THROUGHPUT=1\nTHROUGHPUT_UNITS=Trans/s\nELAPSED_TIME=1\n"),
        **repeated("", "THROUGHPUT=1\n"),
        **within("TCP STREAM TEST from ", " AF_INET\n", *_SHAPES),
        **within("TCP STREAM TEST from a AF_INET\n", "\n", *_SHAPES),
        **within("Throughput,Throughput Units\n", "\n", *_SHAPES),
    },
    "test-result": {
        **repeated("", f"{_COUNTED}PASS iperf3_-c10.0.0.{{0}}_-t10\n"),
        **repeated("", _COUNTED, "PASS x\n"),
        **within(f"{_COUNTED}PASS ", "\n", *_SHAPES),
    },
}


def _delivery(forge: str) -> Callable[[str], object]:
    headers = {"X-GitHub-Event": "issue_comment", "X-Gitea-Event": "issue_comment"}

    def read(text: str) -> object:
        payload = read_request(_bytes(text))
        return FORGES[forge].read(headers, payload) if isinstance(payload, dict) else None

    return read


def _comment(text: str) -> str:
    user = {"login": "a", "id": 1}
    return json.dumps(
        {
            "action": "created", "repository": {"full_name": "a/b"}, "comment": {"id": 1, "user": user, "body": text},
            "issue": {"number": 1, "user": user, "title": text, "pull_request": {}},
        }
    )  # fmt: skip


_COMMENTS: dict[str, Generator] = {
    "comment of spaces": lambda length: _comment(" " * length),
    "comment of lines": lambda length: _comment("/perf run\n" * (length // 10)),
    "comment of quotes": lambda length: _comment('"\\' * (length // 2)),
}


def _commands(prefix: str) -> Callable[[str], object]:
    def read(text: str) -> object:
        found = commands.find(text, prefix)
        return commands.parse(found) if found is not None else None

    return read


def _samples(text: str) -> object:
    return parse_samples(StringIO(text, newline=""), "samples.csv")


_SAMPLE_HEAD = f"{','.join(COLUMNS)}\n"

PARSERS = [
    Parser("files of a patch", lambda text: dict(expected_files(read_series(_bytes(text)))), (PatchError,), _PATCHES),
    Parser("patch", lambda text: read_series(_bytes(text)), (PatchError,), {**_PATCHES, **_IN_MAIL}),
    Parser("series of a thread", lambda text: series_in(_bytes(text), "1@b.org"), (PatchError,), _THREADS),
    Parser("thread of an archive", lambda text: lore.mbox_of(_bytes(text)), (UsageError,), _THREADS),
    Parser("mail", _read_mail, (IgnoredError,), _IN_MAIL),
    Parser("results of authentication", lambda text: proof.signers([text], "mx"), (), within("mx; dkim=pass ", "")),
    Parser("request in a mail", _commands("perf:"), (commands.RequestError,), within("perf: ", "\n")),
    Parser("request in a comment", _commands("/perf"), (commands.RequestError,), within("/perf ", "\n")),
    Parser("URL of a webhook", public.checked, (public.UrlError,), within("https://x.example/", "")),
    Parser("knobs", plans.read_knobs, (plans.KnobError,), within("net.x=", "\n")),
    Parser(
        "difference of two boots",
        lambda text: boots.difference("boot.log", text, text[1:]),
        (),
        repeated("", "[ {0}.1] a{0}\n"),
    ),
    Parser("patch as HTML", difftext.marked, (), within("@@ -1 +1,", " @@\n")),
    Parser(
        "hunk",
        lambda text: repositories._hunk(_bytes(text), "x", 1),
        (),
        within("--- x\n@@ -1,", " +1 @@\n", *_SHAPES),
    ),
    Parser("paths of a diff", lambda text: repositories._first_path(_bytes(text), "It"), (PatchError,)),
    Parser(
        "plan",
        read_plan,
        (PlanError,),
        {
            **within(PLAN, "", "nested", "lists", "run of '-", "run of '[", "run of '?", "run of '&"),
            **within("name: ", "\n"),
            **{
                name: generate
                for knob in ("boot.command_line", "net.core.rmem_max", "left.link.qdisc", "link.cpus")
                for name, generate in within(
                    _LINUX.replace("KNOB", knob), "'}", "run of 'a", "run of '0", "run of ' "
                ).items()
            },
            **repeated("a: &a0 [x]\n", "b{0}: &b{0} [*a0, *a0]\n"),
            **repeated(f"{PLAN}x: [", "[[[[[]]]]],", "1]"),
        },
    ),
    Parser(
        "plan of another size",
        lambda text: resized(text, {"boots": "3", "sentinel": "2"}),
        (PlanError, SizeError),
        within("boots: ", "\n"),
    ),
    *(
        Parser(f"output of {tool}", _tool(one), (ToolError,), _TOOL_TEXTS.get(tool, {}))
        for tool, one in _ONE_OF_EACH.items()
    ),
    *(
        Parser(f"interim results of {tool}", _interim(_ONE_OF_EACH[tool]), (), _TOOL_TEXTS[tool])
        for tool in ("netperf", "iperf3", "tcpbench")
    ),
    *(Parser(f"import of {form}", _import(form), (ImportProblemsError,), _IMPORT_TEXTS[form]) for form in FORMATS),
    Parser("time of an import", moment, (ValueError,)),
    Parser("name of an import", slug),
    Parser("console of a kernel", console.failure, (), within("[ 1.0] ", "\n")),
    Parser("output of a kernel's build", diagnostics.reason, (), within("a.c:1:2: error: ", "\n")),
    Parser("JSON", read_json, (JsonError,)),
    Parser(
        "JSON of a request",
        lambda text: read_request(_bytes(text), objects=refuse_repeated),
        (JsonError,),
        DENSE_JSON,
    ),
    *(
        Parser(f"delivery of {forge}", _delivery(forge), (JsonError, ShapeError), {**_COMMENTS, **DENSE_JSON})
        for forge in FORGES
    ),
    Parser("Markdown, a line", markdown.code),
    Parser("Markdown, a block", markdown.block),
    Parser("plain text", plain),
    Parser("counters", counters.read_counters, (), repeated("", "a.b{0}: 1\n")),
    Parser(
        "histograms of durations",
        lambda text: durations.read_bins(text, 0),
        (),
        repeated("== sample 1:\n", "took {0} to 9999999 us: 1\n"),
    ),
    Parser(
        "profile of locks",
        lockprofiles.read_profile,
        (),
        {**within("count cnt_lock name\n", ""), **repeated("count cnt_lock name\n", "1 2 a{0}\n")},
    ),
    Parser(
        "samples of a bundle",
        _samples,
        (ValueError,),
        {**within(_SAMPLE_HEAD, ""), **repeated(_SAMPLE_HEAD, "a,1,t{0},m,1,u,higher,false,ok\n")},
    ),
    Parser(
        "events of perfctl",
        lambda text: list(events.parse(text.splitlines(keepends=True))),
        (),
        within("data: ", "\n\n"),
    ),
    Parser("address of a repository", mirrors.check, (RepositoryError,), within("https://", "")),
    *requests.PARSERS,
    *hosts.PARSERS,
    *modules.PARSERS,
]
