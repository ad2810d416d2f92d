# SPDX-License-Identifier: BSD-2-Clause
"""The commands of the tutorials: blocks marked `sh` are for the user's terminal."""

from __future__ import annotations

import shlex
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "tutorials"
NAMES = sorted(path.stem for path in FOLDER.glob("*.md"))


def blocks(name: str) -> list[str]:
    """Return the shell blocks of a tutorial, in order."""
    tokens = MarkdownIt().parse((FOLDER / f"{name}.md").read_text(encoding="utf-8"))
    return [token.content for token in tokens if token.type == "fence" and token.info == "sh"]


def here_documents(block: str) -> list[str]:
    """Return the plans that a block writes."""
    return [part.partition("\nPLAN\n")[0] + "\n" for part in block.split("<<'PLAN'\n")[1:]]


def commands(block: str) -> list[list[str]]:
    """Return the words of each command of a block, without its here-documents."""
    for document in here_documents(block):
        block = block.replace(f"{document}PLAN\n", "")
    return [shlex.split(line, comments=True) for line in block.splitlines() if line]
