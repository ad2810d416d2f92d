# SPDX-License-Identifier: BSD-2-Clause
"""Configurations of kernels that count: the files *.config here, and single options.

Each kernel has the options of `small`. A plan, or the command line, adds configurations by name, and options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent
SMALL = "small"
NAMES = tuple(sorted(file.stem for file in FOLDER.glob("*.config")))
OPTION = re.compile(
    r"CONFIG_[A-Z0-9_]{1,80}=(?:y|n|[0-9]{1,10}|0x[0-9a-fA-F]{1,16}|\"[A-Za-z0-9_./-]{0,64}\")", re.ASCII
)
"""A line of a .config (Documentation/kbuild/kconfig-language.rst); no modules, because a guest loads none."""
WORD_RULE = f"the name of a configuration ({', '.join(NAMES)}) or an option such as CONFIG_TCP_CONG_BBR=y"


def is_word(text: str) -> bool:
    """Return whether a plan can name this: a configuration or an option."""
    return text in NAMES or OPTION.fullmatch(text) is not None


def lines(words: Iterable[str]) -> str:
    """Return the lines of configurations and options, in their order. Raises ValueError for any other word."""
    found = []
    for word in words:
        if not is_word(word):
            raise ValueError(f"“{word[:80]}” is not {WORD_RULE}")
        found.append((FOLDER / f"{word}.config").read_text(encoding="utf-8") if word in NAMES else f"{word}\n")
    return "".join(found)
