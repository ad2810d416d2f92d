# SPDX-License-Identifier: BSD-2-Clause
"""The configuration of a kernel of this lane: `make allnoconfig`, and the options of kernel.config."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from runners.counted.errors import CountedError

FRAGMENT = Path(__file__).with_name("kernel.config")
_SET = re.compile(r"^(CONFIG_\w+)=(.*)$", re.MULTILINE)
_UNSET = re.compile(r"^# (CONFIG_\w+) is not set$", re.MULTILINE)


def options(text: str) -> dict[str, str]:
    """Returns the options of a .config or a fragment; `n` for those that are not set, the last line of several."""
    lines = [(found.start(), found[1], found[2]) for found in _SET.finditer(text)]
    lines += [(found.start(), found[1], "n") for found in _UNSET.finditer(text)]
    return {name: value.strip() for _, name, value in sorted(lines)}


def fragment(more: Iterable[Path] = ()) -> str:
    """Returns the options of the lane and of further files; the last line of an option counts.

    Raises OSError, and CountedError for a file that is no text.
    """
    wanted: dict[str, str] = {}
    for path in (FRAGMENT, *more):
        try:
            wanted |= options(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise CountedError(f"{path} is not UTF-8: name a file with lines such as CONFIG_NET=y") from None
    return "".join(f"{name}={value}\n" for name, value in wanted.items())


def missing(wanted: str, got: str) -> Mapping[str, str]:
    """Returns the options that a kernel's configuration has not as wanted, with the value that they have."""
    have = options(got)
    return {name: have.get(name, "n") for name, value in options(wanted).items() if have.get(name, "n") != value}
