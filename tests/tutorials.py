# SPDX-License-Identifier: BSD-2-Clause
"""The commands of the tutorials: blocks marked `sh` are for the user's terminal."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "tutorials"
NAMES = sorted(path.stem for path in FOLDER.glob("*.md"))


@dataclass
class Step:
    """A block of commands, and the output that the tutorial shows for it."""

    command: str
    output: str = ""


def steps(name: str) -> list[Step]:
    """Return the steps of a tutorial, in order.

    Commands are in blocks marked `sh`. An indented block is a command that needs the user, if it begins with a
    program; otherwise it is the output of the commands before it.
    """
    found: list[Step] = []
    for token in MarkdownIt().parse((FOLDER / f"{name}.md").read_text(encoding="utf-8")):
        if token.type == "code_block" and not token.content.startswith(("./dev ", "python3 ")):
            found[-1].output += token.content
        elif token.type == "code_block" or (token.type == "fence" and token.info == "sh"):
            found.append(Step(token.content))
    return found


def blocks(name: str) -> list[str]:
    """Return the blocks of commands of a tutorial, without those that need the user."""
    return [step.command for step in steps(name) if not step.command.startswith(("./dev ", "python3 -m perfctl login"))]


def here_documents(block: str) -> list[str]:
    """Return the plans that a block writes."""
    return [part.partition("\nPLAN\n")[0] + "\n" for part in block.split("<<'PLAN'\n")[1:]]


def commands(block: str) -> list[list[str]]:
    """Return the words of each command of a block, without its here-documents."""
    for document in here_documents(block):
        block = block.replace(f"{document}PLAN\n", "")
    return [shlex.split(line, comments=True) for line in block.splitlines() if line]
