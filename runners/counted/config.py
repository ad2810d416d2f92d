# SPDX-License-Identifier: BSD-2-Clause
"""The configuration of a kernel of this lane: `make allnoconfig`, and the options of its configurations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from perfweb.counted import configurations
from perfweb.counted.configurations import SMALL
from runners.counted.errors import CountedError

_SET = re.compile(r"^(CONFIG_\w+)=(.*)$", re.MULTILINE)
_UNSET = re.compile(r"^# (CONFIG_\w+) is not set$", re.MULTILINE)


def options(text: str) -> dict[str, str]:
    """Returns the options of a .config or a fragment; `n` for those that are not set, the last line of several."""
    lines = [(found.start(), found[1], found[2]) for found in _SET.finditer(text)]
    lines += [(found.start(), found[1], "n") for found in _UNSET.finditer(text)]
    return {name: value.strip() for _, name, value in sorted(lines)}


def fragment(words: Iterable[str] = ()) -> str:
    """Returns the options of `small` and of `words`, each a shipped configuration, an option, or the path of a file
    with a slash or a dot in its name. The last line of an option counts. Raises OSError and CountedError.
    """
    wanted: dict[str, str] = {}
    for word in (SMALL, *words):
        wanted |= options(_lines(word))
    return "".join(f"{name}={value}\n" for name, value in wanted.items())


def _lines(word: str) -> str:
    if configurations.is_word(word):
        return configurations.lines([word])
    try:
        return Path(word).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CountedError(f"there is no file {word}; it is not {configurations.WORD_RULE}, either") from None
    except UnicodeDecodeError:
        raise CountedError(f"{word} is not UTF-8: name a file with lines such as CONFIG_NET=y") from None


def missing(wanted: str, got: str) -> Mapping[str, str]:
    """Returns the options that a kernel's configuration has not as wanted, with the value that they have."""
    have = options(got)
    return {name: have.get(name, "n") for name, value in options(wanted).items() if have.get(name, "n") != value}
