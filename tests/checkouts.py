# SPDX-License-Identifier: BSD-2-Clause
"""Git checkouts to edit, from which git itself makes patches."""

import subprocess
from collections.abc import Callable
from pathlib import Path

IF_C = "".join(f"int line{number};\n" for number in range(1, 41))
SETTINGS = """\
[user]
	name = Ada Example
	email = ada@example.org
[commit]
	gpgsign = false
[maintenance]
	auto = false
"""


class Checkout:
    """A git checkout to edit."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.git("init", "-q", "-b", "main")
        with (tree / ".git" / "config").open("a", encoding="utf-8") as file:
            file.write(SETTINGS)

    def git(self, *words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=self.tree, check=True, capture_output=True).stdout

    def put(self, name: str, content: str | bytes) -> None:
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def edit(self, name: str, change: Callable[[str], str]) -> None:
        self.put(name, change((self.tree / name).read_text(encoding="utf-8")))

    def commit(self, subject: str) -> str:
        self.git("add", "--all")
        self.git("commit", "-q", "-m", subject)
        return self.git("rev-parse", "HEAD").decode().strip()

    def put_malformed_branch(self, name: str) -> str:
        """Make a branch whose commit has no committer, so that nobody who checks it can fetch it; return its hash."""
        tree = self.git("rev-parse", "HEAD^{tree}").strip()
        made = subprocess.run(
            ["git", "hash-object", "--literally", "-t", "commit", "-w", "--stdin"], cwd=self.tree,
            input=b"tree %s\nauthor a <a@b> 0 +0000\n\nno committer\n" % tree, check=True, capture_output=True,
        ).stdout.decode().strip()  # fmt: skip
        self.git("update-ref", f"refs/heads/{name}", made)
        return made

    def diff(self, *words: str) -> bytes:
        """Return the output of `git diff` for all edits, and undo them."""
        self.git("add", "--all")
        made = self.git("diff", "--cached", *words)
        self.git("reset", "-q", "--hard")
        return made


def small_checkout(tree: Path) -> Checkout:
    """Make a repository in an empty directory, whose one commit has the min files of a stack's build."""
    made = Checkout(tree)
    made.put("README.md", "A project.\n")
    made.put("stack/meson.build", "project('stack')\n")
    made.put("stack/net/if.c", IF_C)
    made.commit("The first")
    return made
