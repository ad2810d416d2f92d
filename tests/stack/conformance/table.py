# SPDX-License-Identifier: BSD-2-Clause
"""stack/tests/conformance.md: which scripts assert which clause of which RFC."""

from __future__ import annotations

import re
from collections import defaultdict

from tests.stack.builds import ROOT
from tests.stack.conformance import cases

OWN = ROOT / "stack" / "tests" / "packetdrill"
PAGE = ROOT / "stack" / "tests" / "conformance.md"
MUSTS = [f"RFC 9293 MUST-{number}" for number in range(1, 70)]
"""All requirements of RFC 9293 appendix B that are a MUST or a MUST NOT."""

# What packets of one connection cannot show, or what the stack refuses.
ELSEWHERE = {
    "RFC 9293 MUST-51": "not met: source routes are refused, as RFC 7126 section 4.4 and 4.5 advise (`test_ip.c`)",
    "RFC 9293 MUST-52": "not met, for the same reason",
    "RFC 9293 MUST-53": "not met, for the same reason",
}

HEAD = """# Clauses and scripts

What the stack promises of RFCs, and the scripts of `packetdrill/` that assert it. `./dev conformance` plays them, each
with IPv4, with IPv4 in IPv6 sockets and with IPv6. A name with `*` means several cases. With `--print --only NAME`
it prints them, and with `--table` it writes this page.
"""


def _key(clause: str) -> tuple[object, ...]:
    _, rfc, part = clause.split()
    return int(rfc), part[0].isalpha(), [(int(n) if n.isdigit() else 0, n) for n in re.split(r"[.-]", part)]


def by_clause() -> dict[str, list[str]]:
    """The scripts of each clause; cases of one header are one name with `*`."""
    found: dict[str, list[str]] = defaultdict(list)
    for case in cases.read_folder(OWN):
        for clause in case.clauses:
            if case.pattern not in found[clause]:
                found[clause].append(case.pattern)
    return found


def page() -> str:
    """The text of the page."""
    found = by_clause()
    total = sum(1 for _ in cases.read_folder(OWN))
    lines = [HEAD, f"{total} scripts; {len(found)} clauses.", "", "| clause | scripts |", "|---|---|"]
    for clause in sorted({*found, *MUSTS}, key=_key):
        names = ", ".join(f"`{name}`" for name in found.get(clause, []))
        lines.append(f"| {clause} | {names or ELSEWHERE[clause]} |")
    return "\n".join(lines) + "\n"
