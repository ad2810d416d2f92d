# SPDX-License-Identifier: BSD-2-Clause
"""The kinds of repositories: which files a patch may change, and how long git may work on it."""

from collections.abc import Sequence
from dataclasses import dataclass

_PREFIXES = {"a", "b", "c", "i", "o", "w", "1", "2"}
"""Of paths in a diff, by git-config(1), diff.mnemonicPrefix."""


@dataclass(frozen=True)
class Kind:
    """`root` is the folder that patches may change, empty for all of the tree; `seconds` limit all calls of git.

    `title` is what its sources are. Plans build and measure only kinds that are `measured`.
    """

    name: str
    title: str
    root: str
    seconds: float
    measured: bool = True

    def allows(self, path: str) -> bool:
        """Return whether a patch may change the file at `path`."""
        return not self.root or path.startswith(f"{self.root}/")

    @property
    def pathspec(self) -> Sequence[str]:
        """Return words for git that leave out the files that no patch may change."""
        return (f"{self.root}/",) if self.root else ()

    @property
    def where(self) -> str:
        """Return the place of its files in words."""
        return f"below {self.root}/" if self.root else "in this repository"

    def path(self, name: str) -> str:
        """Return the path that a diff means by `name`, without its prefix; empty if no patch may change it."""
        if not self.root:
            first, _, rest = name.partition("/")
            return rest if is_prefix(first) else name
        begin = name.find(f"{self.root}/")
        return name[begin:] if begin >= 0 else ""


def is_prefix(part: str) -> bool:
    """Return whether the first part of a path in a diff is one that git puts before it."""
    return part in _PREFIXES


STACK = Kind("stack", "the stack", root="stack", seconds=20.0)
LINUX = Kind("linux", "the Linux kernel", root="", seconds=120.0, measured=False)
KINDS = {kind.name: kind for kind in (STACK, LINUX)}
