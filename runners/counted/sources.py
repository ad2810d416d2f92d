# SPDX-License-Identifier: BSD-2-Clause
"""A base of the kernel's sources and its patches, as trees of git that are checked out one after the other.

A base is a git repository, or a directory such as Debian's package linux-source has. Neither is changed: objects are in
a repository of this lane, which borrows those of the base. All trees of a base share one work tree. So make(1) compiles
only what differs between two trees, and results are named by a tree, not by a place or a time.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from perfweb.builds.kinds import LINUX
from perfweb.builds.patches import PatchError, read_series
from perfweb.builds.repositories import ConflictError, Repository, RepositoryError, git_command, git_environment
from runners.counted import store
from runners.counted.errors import CountedError

_SETTINGS = ("core.symlinks=true", "core.autocrlf=false", "core.excludesFile=/dev/null", "core.looseCompression=1")


class Sources:
    """The trees of one base, below a directory of this lane."""

    def __init__(self, base: Path, folder: Path) -> None:
        if not base.is_dir():
            raise CountedError(f"{base} is no directory: give a source tree of Linux, a clone or an unpacked archive")
        self.base = base.resolve()
        self.folder = folder / store.key(str(self.base))
        self.work_tree = self.folder / "source"
        self._git_dir = self.folder / "git"
        self._is_repository = (base / ".git").exists() or (base / "HEAD").exists()

    def base_tree(self, commit: str = "HEAD") -> str:
        """Returns the tree of a commit of the base; of a directory without git, the tree of its files.

        Raises CountedError.
        """
        self._prepare()
        if self._is_repository:
            tree = self._tree_of(commit)
        else:
            if commit != "HEAD":
                raise CountedError(f"{self.base} is no git repository: it has no commit “{commit}”")
            if (self.base / ".config").exists():
                raise CountedError(f"{self.base} holds a build: run `make mrproper` there, and build with O=")
            # Debian's .gitignore ignores all sources.
            with store.alone(self.folder):
                (self._git_dir / "base-index.lock").unlink(missing_ok=True)  # of a killed git
                self._git("add", "--all", "--force", ".", work_tree=self.base, index="base-index")
                tree = self._git("write-tree", index="base-index")
        listed = self._git("ls-tree", "--name-only", tree, "Kconfig", "Makefile").split()
        if listed != ["Kconfig", "Makefile"]:
            raise CountedError(f"{self.base} is no source tree of Linux: it has no Kconfig and Makefile")
        return tree

    def commit(self, name: str) -> str:
        """Returns the hash of a commit of the base; empty for a directory without git. Raises CountedError."""
        if not self._is_repository:
            return ""
        try:
            return Repository.at(self.base, LINUX).commit(name).sha
        except RepositoryError as error:
            raise CountedError(f"{self.base}: {error}") from None

    def _tree_of(self, commit: str) -> str:
        return self._git("rev-parse", "--verify", f"{self.commit(commit)}^{{tree}}")

    def patched(self, tree: str, name: str, content: bytes) -> str:
        """Returns a tree after the patches of a file: a diff, a mail, or a mailed series. Raises CountedError."""
        try:
            series = read_series(content)
            with Repository(self._git_dir, LINUX).bench(self._git_dir / "objects") as bench:
                return bench.apply(series, tree)[-1].tree
        except ConflictError as error:
            there = f"\nThe patch has\n{error.hunk}\nand the base has\n{error.there}" if error.hunk else ""
            raise CountedError(f"{name}: {error}{there}") from None
        except (PatchError, RepositoryError) as error:
            raise CountedError(f"{name}: {error}") from None

    def check_out(self, tree: str) -> Path:
        """Returns the work tree with the files of `tree`; changes only files that differ. The caller is alone."""
        self.work_tree.mkdir(exist_ok=True)
        (self._git_dir / "index.lock").unlink(missing_ok=True)  # of a killed git
        self._git("read-tree", "--reset", "-u", tree, work_tree=self.work_tree)
        return self.work_tree

    def _prepare(self) -> None:
        store.made(self._git_dir, self._init)
        if self._is_repository:
            objects = self._git(
                "rev-parse", "--path-format=absolute", "--git-path", "objects",
                git_dir=Repository.at(self.base, LINUX).git_dir,
            )  # fmt: skip
            (self._git_dir / "objects" / "info" / "alternates").write_text(f"{objects}\n", encoding="utf-8")

    def _init(self, new: Path) -> None:
        self._git("init", "--quiet", "--bare", git_dir=new)

    def _git(self, *words: str, git_dir: Path | None = None, work_tree: Path | None = None, index: str = "") -> str:
        directory = git_dir or self._git_dir
        environment = git_environment(directory) | {"GIT_DIR": str(directory)}
        if work_tree:
            environment["GIT_WORK_TREE"] = str(work_tree)
        if index:
            environment["GIT_INDEX_FILE"] = str(directory / index)
        done = subprocess.run(
            [*git_command(*_SETTINGS), *words], capture_output=True, text=True, check=False, env=environment,
            cwd=work_tree or directory.parent, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode != 0:
            raise CountedError(f"git {words[0]} failed for {self.base}: {done.stderr.strip()[:300]}")
        return done.stdout.strip()
