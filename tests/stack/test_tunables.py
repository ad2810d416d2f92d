# SPDX-License-Identifier: BSD-2-Clause
"""docs/reference/tunables.md lists the tunables that a booted stack has, with their defaults."""

from __future__ import annotations

from tests.stack.builds import ROOT
from tests.stack.topology import Topology

DOCUMENT = ROOT / "docs" / "reference" / "tunables.md"
# Values that the test itself sets appear as placeholders.
SHOWN = {"ctl.path": "", "if.<name>.inet": "", "if.<name>.inet6": "", "net.inet.ip.forwarding": "0"}


def test_the_document_lists_every_tunable(topology: Topology) -> None:
    topology.boot({"net.inet.ip.forwarding": "1", "if.tap0.inet6": "2001:db8::2/64", "net.inet6.ip6.dad_count": "1"})
    values = dict(line.split(": ", 1) for line in topology.ask("sysctl", "-a").splitlines())
    rows = []
    for line in topology.ask("sysctl", "-d").splitlines():
        label, _, description = line.partition(": ")
        name, bracket, when = label.partition(" [")
        shown = name.replace("if.tap0.", "if.<name>.")
        if bracket:
            default = SHOWN.get(shown, values[name])
            rows.append(f"| `{shown}` | {default and f'`{default}`'} | {when.rstrip(']')} | {description} |")
    table = "\n".join(rows) + "\n"
    assert table in DOCUMENT.read_text(encoding="utf-8"), f"the table of {DOCUMENT.name} should be:\n{table}"
