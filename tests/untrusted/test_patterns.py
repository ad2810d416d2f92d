# SPDX-License-Identifier: BSD-2-Clause
"""No regular expression of the service takes more than linear time for any text.

This is decided from the patterns (tests/untrusted/ambiguity.py), because nothing that a test can count on every machine
counts the steps of the C code of `re`.
"""

from __future__ import annotations

import re

import pytest

from tests.untrusted.ambiguity import why_not_linear
from tests.untrusted.patterns import Use, uses

USES = list(uses())

OWN_FILES = "it reads files of this project, which are trusted"
NO_FAILURE = "it matches at every place where it is tried, so that no character is read twice"
ACCEPTED = {
    "perfweb/jsontext.py _PART": NO_FAILURE,
    "perfweb/builds/mails.py _IN_BODY_HEADER": "nothing behind its repeats can fail, and a header is not read again",
    "perfweb/builds/mails.py _QUOTED": "it is applied to an author of at most 200 characters",
    "perfweb/mail/proof.py _TOKEN": NO_FAILURE,
    "perfweb/mail/proof.py _PIECE": NO_FAILURE,
    **{
        f"runners/counted/console.py _{kind}_LINE": "it is matched at the start of a line that has been shortened"
        for kind in ("MEMORY", "LOCKING", "HANG", "WARNING")
    },
    "runners/dependencies/sbom.py _PIN": OWN_FILES,
    "runners/dependencies/sbom.py _PACKAGES": OWN_FILES,
}
"""Patterns that are not linear by themselves, each with the reason why that does no harm."""

GRAMMARS = (
    "perfweb/runs/linuxknobs.py CPUS",
    "perfweb/runs/linuxknobs.py QDISC",
    "perfweb/runs/linuxknobs.py SYSCTL",
    "perfweb/samples/bundles.py _DIRECTORIES",
    "playbooks/library/host_state.py",
    "playbooks/module_utils/command_line.py _FORBIDDEN",
    "playbooks/module_utils/grammar.py",
    "playbooks/module_utils/linux.py",
)
"""Where patterns are composed of parts: the grammars of parameters, and the paths that samples leave out."""

COMPUTED = {
    "perfweb/reports/contention.py": "the patterns are those of perfweb/reports/published.yaml, checked below",
    **dict.fromkeys(GRAMMARS, "a pattern of the table of parameters, applied to a text of limited length"),
    "playbooks/library/daemon.py": "the pattern is one of playbooks/roles, and the guard refuses others",
}
"""Files with computed patterns, each with what they are computed from."""


def _key(use: Use) -> str:
    return f"{use.where.partition(':')[0]} {use.name}".rstrip()


@pytest.mark.parametrize("use", [use for use in USES if use.pattern], ids=lambda use: f"{use.where} {use.name}")
def test_pattern_takes_linear_time(use: Use) -> None:
    assert use.pattern
    problem = why_not_linear(use.pattern, search=use.search, full=use.full)
    assert bool(problem) == (_key(use) in ACCEPTED), f"{use.pattern.pattern!r}: {problem or 'take it out of ACCEPTED'}"


def test_computed_patterns_are_known() -> None:
    assert {_key(use) for use in USES if use.pattern is None} == set(COMPUTED)


def test_all_patterns_are_found() -> None:
    """The search in the source finds the patterns of the modules."""
    from perfweb.builds import patches
    from perfweb.measuring.tools import netperf

    found = {(use.where.partition(":")[0], use.name): use.pattern for use in USES}
    for module, path in ((patches, "perfweb/builds/patches.py"), (netperf, "perfweb/measuring/tools/netperf.py")):
        patterns = {name: value for name, value in vars(module).items() if isinstance(value, re.Pattern)}
        assert {name: found[path, name] for name in patterns} == patterns


LINEAR = [
    r"a+b",
    r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?",
    r"[a-z](?:[a-z0-9_]{0,62}[a-z])?",
    r"\s*(?:\[[^\]]*\]\s*)+",
    r"(?>a*)a*b",
    r'(?:"(?:[^"\\]|\\.)*"\s*|[^"<>@]*)<x>',
]
LINEAR_SEARCH = [r"^From (?>[^\n]*?\d\d:\d\d)(?>[^\n]*?\d{4})[^\n]*\n", r"^a[^\n]*b$", r"`+", r"-t\s*(\S+)"]
POLYNOMIAL = [r"\d+\.?\d*x", r".*?=(.+)\ny=", r"\s*a?\s*b", r"[^<]*\s*<x>", r"(?:.*a)(?:.*b)c", r"a*(?>a*)b"]
POLYNOMIAL_SEARCH = [r"\s+$", r"^\s*x", r"a+b", r'"(?:[^"\\]|\\.)*"', r"From [^\n]*x"]
EXPONENTIAL = [r"(a+)+b", r"(?:a|a)*b", r"(?:a|b|ab)*c", r"(?:[a-z]{0,60}){0,24}!", r"(?:a*b?)*c"]


@pytest.mark.parametrize("text", LINEAR)
def test_linear_match(text: str) -> None:
    assert why_not_linear(re.compile(text), search=False, full=True) == ""


@pytest.mark.parametrize("text", LINEAR_SEARCH)
def test_linear_search(text: str) -> None:
    assert why_not_linear(re.compile(text, re.MULTILINE)) == ""


@pytest.mark.parametrize("text", POLYNOMIAL)
def test_polynomial_match(text: str) -> None:
    assert "polynomial" in why_not_linear(re.compile(text), search=False)


@pytest.mark.parametrize("text", POLYNOMIAL_SEARCH)
def test_polynomial_search(text: str) -> None:
    assert "polynomial" in why_not_linear(re.compile(text, re.MULTILINE))


@pytest.mark.parametrize("text", EXPONENTIAL)
def test_exponential(text: str) -> None:
    assert re.search("exponential|the same", why_not_linear(re.compile(text), search=False, full=True))


def test_back_references_are_refused() -> None:
    assert "refers back" in why_not_linear(re.compile(r"(a*)\1b"))
