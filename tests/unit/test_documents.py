# SPDX-License-Identifier: BSD-2-Clause
"""Links between documents lead to files that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^()\s]+)\)")
DOCUMENTS = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", DOCUMENTS.split())
def test_a_link_leads_to_a_file(name: str) -> None:
    document = ROOT / name
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    local = [target.partition("#")[0] for target in LINK.findall(text) if "://" not in target]
    assert [target for target in local if target and not (document.parent / target).exists()] == []
