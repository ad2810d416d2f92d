# SPDX-License-Identifier: BSD-2-Clause
"""The kinds of repositories: which files a patch may change, and how long git may work on it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """`root` is the folder that patches may change, empty for all of the tree; `seconds` limit all calls of git."""

    name: str
    root: str
    seconds: float

    def allows(self, path: str) -> bool:
        """Return whether a patch may change the file at `path`."""
        return not self.root or path.startswith(f"{self.root}/")


STACK = Kind("stack", root="stack", seconds=20.0)
LINUX = Kind("linux", root="", seconds=120.0)
