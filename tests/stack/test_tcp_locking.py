# SPDX-License-Identifier: BSD-2-Clause
"""docs/explanation/tcp-locking.md names a test that exists for each subtle case of parallel input of TCP."""

from __future__ import annotations

import re

from tests.stack.builds import ROOT

DOCUMENT = ROOT / "docs" / "explanation" / "tcp-locking.md"
TESTS = ROOT / "stack" / "tests"
CASES = 12


def test_every_subtle_case_has_a_test() -> None:
    rows = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, CASES + 1))
    code = "".join(path.read_text(encoding="utf-8") for path in TESTS.glob("test_*.c"))
    known = set(re.findall(r"^TEST\((\w+)\)", code, re.MULTILINE))
    for number, cell in rows:
        named = [name for name in re.findall(r"`(\w+)`", cell) if "." not in name]
        assert named, f"case {number} has no test"
        assert set(named) <= known
