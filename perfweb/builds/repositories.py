# SPDX-License-Identifier: BSD-2-Clause
"""Applies patches to a commit of a git repository, and packs the result.

Patches are untrusted.  They are applied to an index and never to files: git writes blobs into a temporary directory,
no path of a patch is ever opened, and the changes are read back from the tree that git wrote.  The repository itself
is only read.
"""

import difflib
import hashlib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

from perfweb.builds.kinds import LINUX, STACK, Kind, is_prefix
from perfweb.builds.patches import Patch, PatchError, Series
from perfweb.builds.sources import LONGEST_REVISION, SourceFile, Sources, archive_path, pack, whole
from perfweb.inputlimits import PATCH_BYTES, PATCH_PATH_CHARACTERS, PATCH_PATH_FOLDERS
from perfweb.plaintext import shown

ROOT = STACK.root
"""Of the files of a commit, those below this folder are built."""
MOST_BYTES = 64 * 1024 * 1024
MOST_FILES = 10_000
LONGEST_SHOWN = 60

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}", re.ASCII)
_FILE_MODES = {"100644", "100755"}
_GONE = "000000"
_NAMES_OF_FILES = (b"diff --git ", b"--- ", b"+++ ", b"rename ", b"copy ")
_FAILED_HUNK = re.compile(r"^error: patch failed: (.+):(\d+)$", re.MULTILINE)
_FAILED_FILE = re.compile(r"^error: (.+): (does not exist in index|already exists in index)$", re.MULTILINE)
_BAD_PATH = re.compile(r"^error: invalid path '(.*)'$", re.MULTILINE)
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", re.ASCII)


class RepositoryError(ValueError):
    """The repository does not have the requested objects; the message has the reason and what to do."""


class MissingCommitError(RepositoryError):
    """The repository has no commit of that name; `near` is a branch or tag of a similar name."""

    def __init__(self, name: str, advice: str = "push it there, or name another", near: str = "") -> None:
        meant = f" (did you mean {near}?)" if near else ""
        super().__init__(f"the repository has no commit “{name}”: {advice}{meant}")
        self.near = near


class ConflictError(PatchError):
    """A patch does not apply: `hunk` is its hunk, `there` the present text at that place."""

    def __init__(self, message: str, hunk: str = "", there: str = "") -> None:
        super().__init__(message)
        self.hunk = hunk
        self.there = there


@dataclass(frozen=True)
class Commit:
    """A commit with its `git describe` and time."""

    sha: str
    revision: str
    committed: datetime


@dataclass(frozen=True)
class ChangedFile:
    """Lines that a patch adds to and removes from a file."""

    path: str
    added: int
    removed: int


@dataclass(frozen=True)
class Stage:
    """The series up to and with this patch; `tree` identifies the content."""

    patch: Patch
    tree: str
    files: tuple[ChangedFile, ...]


class Repository:
    """A git repository by its directory: a bare one, or the `.git` of a checkout."""

    def __init__(self, git_dir: Path, kind: Kind = STACK) -> None:
        self.git_dir = git_dir.absolute()
        self.kind = kind

    @classmethod
    def at(cls, place: Path, kind: Kind = STACK) -> "Repository":
        """Open the repository of a checkout, or a bare one, at `place`. Raises RepositoryError."""
        if (place / ".git").exists():
            return cls(place / ".git", kind)
        if (place / "HEAD").exists() and (place / "objects").is_dir():
            return cls(place, kind)
        raise RepositoryError(
            f"{place} is no git repository, so there is no commit to apply a patch to: deploy with `git clone`, or "
            "name a clone of the sources in PERFWEB_REPOSITORY"
        )

    def commit(self, name: str = "HEAD") -> Commit:
        """Return the commit of a branch, a tag or a hash. Raises RepositoryError."""
        check_name(name)
        with self.bench() as bench:
            sha = bench.output("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").strip()
            if not sha:
                raise MissingCommitError(name, near=_near(name, bench))
            revision = bench.output("describe", "--always", "--tags", sha).strip()
            committed = bench.output("log", "-1", "--format=%cI", "--no-show-signature", sha, "--").strip()
        return Commit(sha, revision or sha[:12], read_time(committed, sha))

    @contextmanager
    def bench(self, objects: Path | None = None) -> "Iterator[Bench]":
        """A temporary place to apply patches. New objects are temporary unless `objects` is a directory for them."""
        with tempfile.TemporaryDirectory(prefix="perfweb-patch-") as folder:
            yield Bench(self.git_dir, Path(folder), self.kind, objects)


def read_time(text: str, sha: str) -> datetime:
    """Parse the time of a commit. Raises RepositoryError, because its author chose it."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise RepositoryError(f"commit {sha[:12]} has the time {text[:40]!r}, which cannot be read") from None


def check_name(name: str) -> None:
    """Refuse what git could interpret as more than the name of a commit. Raises RepositoryError."""
    if _NAME.fullmatch(name) is None or ".." in name:
        raise RepositoryError(f"“{shown(name, 100)}” names no commit: give a branch, a tag or a hash")


def git_command(*settings: str) -> list[str]:
    """Return a git command that runs no program that a repository configures."""
    always = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.symlinks=false")
    return ["git", *(part for setting in (*always, *settings) for part in ("-c", setting))]


def git_environment(home: Path) -> dict[str, str]:
    """An environment for git in which only the command line configures it."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
    }


class Bench:
    """Return git with an index, an empty work tree, and new objects in `folder`; for as long as its kind allows."""

    _command = git_command("protocol.allow=never")

    def __init__(self, git_dir: Path, folder: Path, kind: Kind = STACK, objects: Path | None = None) -> None:
        self.kind = kind
        self._deadline = time.monotonic() + kind.seconds
        self._empty = folder / "empty"
        self._empty.mkdir()
        objects = objects or folder / "objects"
        objects.mkdir(exist_ok=True)
        self._environment = {
            **git_environment(self._empty),
            "GIT_DIR": str(git_dir),
            "GIT_WORK_TREE": str(self._empty),
            "GIT_INDEX_FILE": str(folder / "index"),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(_objects(git_dir)),
        }

    def apply(self, series: Series, base: Commit | str) -> list[Stage]:
        """Return a stage for each patch of a commit, or of a tree by its hash.

        Raises PatchError, and ConflictError if a hunk does not apply.
        """
        before = self.tree_of(base.sha if isinstance(base, Commit) else base)
        self._must("read-tree", before)
        stages = []
        for number, patch in enumerate(series.patches, 1):
            which = _label(series.patches, number)
            self._apply_one(patch, which)
            tree = self._must("write-tree").decode().strip()
            files = self._changed(before, tree, which)
            if not files:
                raise PatchError(f"{which} changes nothing.")
            stages.append(Stage(patch, tree, files))
            before = tree
        return stages

    def pack(self, tree: str, store: Path, revision: str, committed: datetime | None = None) -> Sources:
        """Pack the sources of a commit or a tree. Raises PatchError for one that is too large, and SourceError.

        A whole tree is named by its hash, because its archive also has the time at which it was made.
        """
        if self.kind is LINUX:
            sources = self.named(self.tree_of(tree), store, revision, committed)
            self._pack_tree(tree, sources.archive)
            return sources
        return pack(ROOT, self._files(tree), store, revision, committed)

    def named(self, tree: str, store: Path, revision: str, committed: datetime | None = None) -> Sources:
        """Return the sources of a tree as `pack` does, but do not make their archive, nor need the tree."""
        sha256 = hashlib.sha256("\0".join([tree, *self.kind.left_out]).encode()).hexdigest()
        return Sources(archive_path(store, sha256), sha256, revision[:LONGEST_REVISION], committed)

    def _pack_tree(self, tree: str, target: Path) -> None:
        """Pack a whole tree but what its kind leaves out, if that has not been done."""
        if target.exists():
            return
        words = [f":(exclude,glob){pattern}" for pattern in self.kind.left_out]
        with whole(target) as unfinished:
            form = ("--format=tar.gz", f"--prefix={self.kind.name}/", f"--output={unfinished}")
            self._must("archive", *form, self.tree_of(tree), "--", ".", *words)
            if (size := unfinished.stat().st_size) > MOST_BYTES:
                raise PatchError(f"The packed sources have {size} bytes; the max is {MOST_BYTES}.")

    def patch(self, base: str, head: str, *, each: bool) -> bytes:
        """Return the changes between `base` and `head` of files that a patch may change, as one diff or as a mail for
        `each` commit.

        Raises PatchError if there are none, or too many.
        """
        words = ("format-patch", "--stdout", f"--base={base}", f"{base}..{head}") if each else ("diff", base, head)
        plainly = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
        command = [*self._command, words[0], *plainly, *words[1:], "--", *self.kind.pathspec]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=self._empty, env=self._environment) as git:
            assert git.stdout is not None  # noqa: S101
            made = git.stdout.read(PATCH_BYTES + 1)
            git.kill()
        if len(made) > PATCH_BYTES:
            raise PatchError(f"These changes have more than {PATCH_BYTES} bytes. Submit a smaller range.")
        if not made:
            raise PatchError(f"Nothing {self.kind.where} is changed.")
        return made

    def output(self, *words: str, given: bytes = b"") -> str:
        """Return the output of git, empty if it fails."""
        done = self._git(words, given)
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""

    def _apply_one(self, patch: Patch, which: str) -> None:
        _check_names(patch.diff, which)
        level = self._strip_level(patch.diff, which)
        done = self._git(["apply", "--cached", "--whitespace=nowarn", f"-p{level}", "-"], patch.diff)
        if done.returncode != 0:
            raise self._refusal(patch, which, done.stderr.decode("utf-8", "replace"))

    def _refusal(self, patch: Patch, which: str, stderr: str) -> PatchError:
        """Translate git's error message."""
        if bad := _BAD_PATH.search(stderr):
            return PatchError(f"{which} names the file “{bad.group(1)[:200]}”, which may not be.")
        if failed := _FAILED_HUNK.search(stderr):
            path, line = failed.group(1), int(failed.group(2)[:9])
            hunk, length = _hunk(patch.diff, path, line)
            there = self.output("cat-file", "blob", f":{path}").split("\n")[max(line - 1, 0) :][
                : min(length, LONGEST_SHOWN)
            ]
            message = f"{which} does not apply: {path} differs from what it expects at line {line}."
            return ConflictError(message, hunk, "\n".join(there))
        if failed := _FAILED_FILE.search(stderr):
            problem = "is not in the base" if failed.group(2).startswith("does") else "is in the base already"
            return ConflictError(f"{which} does not apply: {failed.group(1)[:200]} {problem}.")
        first = next(iter(stderr.splitlines()), "").removeprefix("error: ")[:300] or "git gives no reason"
        return PatchError(f"{which} cannot be read: {first}. Send what git prints, whole and unchanged.")

    def _changed(self, before: str, after: str, which: str) -> tuple[ChangedFile, ...]:
        """Return the changes of a patch, from the trees that git wrote; refuse all but plain files."""
        listing = self._must(
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--numstat",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            before,
            after,
        )
        return changed_files(listing, which, self.kind)

    def _strip_level(self, diff: bytes, which: str) -> int:
        """Return how many leading parts to strip from the paths of a diff: 1 for a/stack/x, 0 for stack/x.

        git has other prefixes than a/ and b/ with diff.mnemonicPrefix, and none with diff.noprefix. diff(1) has the
        names of two folders there.
        """
        path, root = _first_path(diff, which), self.kind.root
        first, *others = path.removeprefix('"').split("/")
        if not root:
            whole = not is_prefix(first) and self.output("--literal-pathspecs", "ls-files", "--", first)
            return 0 if whole else 1
        if first == root and others:
            return 0
        if is_prefix(first) or others[:1] == [root]:
            return 1
        named = shown(path, 200)
        raise PatchError(f"{which} names {named}; files are a/{root}/… or {root}/…, as git diff prints them.")

    def _files(self, tree: str) -> list[SourceFile]:
        listed = self._must("ls-tree", "-r", "-l", "-z", "--full-tree", tree, "--", f"{ROOT}/")
        entries = [_entry(line) for line in listed.decode("utf-8", "surrogateescape").split("\0") if line]
        files = [entry for entry in entries if entry.mode in _FILE_MODES]
        if len(files) > MOST_FILES or sum(entry.size for entry in files) > MOST_BYTES:
            raise PatchError(f"The stack would have more than {MOST_FILES} files or {MOST_BYTES} bytes.")
        contents = self._blobs([entry.sha for entry in files])
        return [
            SourceFile(PurePosixPath(entry.path).relative_to(ROOT), content, entry.mode == "100755")
            for entry, content in zip(files, contents, strict=True)
        ]

    def _blobs(self, names: Sequence[str]) -> list[bytes]:
        listing = self._must("cat-file", "--batch", given="".join(f"{name}\n" for name in names).encode())
        blobs, place = [], 0
        for _ in names:
            line = listing.index(b"\n", place)
            size = int(listing[place:line].split()[2])
            blobs.append(listing[line + 1 : line + 1 + size])
            place = line + size + 2
        return blobs

    def tree_of(self, commit: str) -> str:
        """Return the hash of the tree of a commit or a tree. Raises RepositoryError."""
        return self._must("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}").decode().strip()

    def _must(self, *words: str, given: bytes = b"") -> bytes:
        done = self._git(words, given)
        if done.returncode != 0:
            raise RepositoryError(f"git {words[0]} failed: {done.stderr.decode('utf-8', 'replace').strip()[:300]}")
        return done.stdout

    def _git(self, words: Sequence[str], given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        try:
            return subprocess.run(
                [*self._command, *words], input=given, capture_output=True, check=False, cwd=self._empty,
                env=self._environment, timeout=max(self._deadline - time.monotonic(), 0.1),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise PatchError(f"Applying this takes longer than {self.kind.seconds:g} s. Send less at once.") from None


@dataclass(frozen=True)
class _Entry:
    """A line of `git ls-tree -l`."""

    mode: str
    sha: str
    size: int
    path: str


def changed_files(listing: bytes, which: str, kind: Kind = STACK) -> tuple[ChangedFile, ...]:
    """Parse the output of `git diff-tree -z --raw --numstat`. Raises PatchError for forbidden changes."""
    words = iter(listing.decode("utf-8", "surrogateescape").split("\0")[:-1])
    changed = []
    for word in words:
        if word.startswith(":"):
            _check_entry(word, next(words), which, kind)
        else:
            added, removed, path = word.split("\t", 2)
            changed.append(ChangedFile(shown(path, 200), _count(added), _count(removed)))
    return tuple(changed)


def _entry(line: str) -> _Entry:
    about, path = line.split("\t", 1)
    mode, _, sha, size = about.split()
    return _Entry(mode, sha, int(size) if size.isdigit() else 0, path)


def _check_entry(about: str, path: str, which: str, kind: Kind) -> None:
    """Refuse an entry of `git diff-tree --raw` that is not a plain file that patches may change, or its end."""
    mode = about.split()[1]
    if not path.isprintable():
        raise PatchError(
            f"{which} names the file “{shown(path, 200)}”; names of files are UTF-8 without control characters."
        )
    if len(path) > PATCH_PATH_CHARACTERS or path.count("/") > PATCH_PATH_FOLDERS:
        raise PatchError(
            f"{which} names the file “{shown(path, 200)}”; a name may have {PATCH_PATH_CHARACTERS} characters "
            f"and {PATCH_PATH_FOLDERS} folders at most."
        )
    if not kind.allows(path):
        raise PatchError(f"{which} changes {shown(path, 200)}; a patch may change files {kind.where} only.")
    if mode not in _FILE_MODES | {_GONE}:
        what = {"120000": "a symbolic link", "160000": "a submodule"}.get(mode, f"something of mode {mode}")
        raise PatchError(f"{which} makes {shown(path, 200)} {what}; a patch may make plain files only.")


def _near(name: str, bench: Bench) -> str:
    """The branch or tag that a name may be a misspelling of."""
    names = bench.output("for-each-ref", "--count=1000", "--format=%(refname:short)", "refs/heads", "refs/tags").split()
    return next(iter(difflib.get_close_matches(name, names, n=1)), "")


def _label(patches: Sequence[Patch], number: int) -> str:
    subject = patches[number - 1].subject
    named = f" “{shown(subject, 80)}”" if subject else ""
    return f"Patch {number} of {len(patches)}{named}" if len(patches) > 1 else f"The patch{named}"


def _check_names(diff: bytes, which: str) -> None:
    """Refuse a name that is too long before git reads it: git makes an object of each folder, which can take
    minutes.
    """
    most = 8 * PATCH_PATH_CHARACTERS + 100  # two names, whose bytes git may write as \\ooo
    if any(line.startswith(_NAMES_OF_FILES) and len(line) > most for line in diff.split(b"\n")):
        raise PatchError(f"{which} names a file with more than {PATCH_PATH_CHARACTERS} characters.")


def _first_path(diff: bytes, which: str) -> str:
    """Return the first path of a diff that is not /dev/null. Raises PatchError without one."""
    for line in diff.decode("utf-8", "replace").split("\n"):
        words = line.split()
        if line.startswith(("diff --git ", "--- ", "+++ ")) and len(words) > 1 and words[-1] != "/dev/null":
            path = words[2] if words[0] == "diff" else words[1]
            if path != "/dev/null":
                return path
    raise PatchError(f"{which} names no file.")


def _hunk(diff: bytes, path: str, line: int) -> tuple[str, int]:
    """Return the text of the hunk that begins at a line of the old file, and the number of lines that it covers."""
    current = ""
    lines = diff.decode("utf-8", "replace").split("\n")
    for place, text in enumerate(lines):
        if text.startswith(("--- ", "+++ ")) and not text.endswith("/dev/null"):
            current = text[4:].split("\t")[0]
        head = _HUNK.match(text)
        if head is None or int(head.group(1)) != line or not current.endswith(path):
            continue
        old, new = (int(head.group(group) or 1) for group in (2, 3))
        taken = _taken(lines[place + 1 :], old, new)
        return "\n".join([text, *taken[:LONGEST_SHOWN]]), old
    return "", 0


def _taken(lines: Sequence[str], old: int, new: int) -> list[str]:
    """Return as many lines as the head of a hunk announces."""
    taken = []
    for line in lines:
        if old <= 0 and new <= 0:
            break
        old -= not line.startswith("+")
        new -= not line.startswith("-")
        taken.append(line)
    return taken


def _count(number: str) -> int:
    return int(number[:9]) if number.isascii() and number.isdigit() else 0


def _objects(git_dir: Path) -> Path:
    """Return the object directory of a repository; `.git` is a file in an added work tree."""
    found = subprocess.run(
        ["git", "--git-dir", str(git_dir), "rev-parse", "--path-format=absolute", "--git-path", "objects"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode != 0:
        raise RepositoryError(f"{git_dir} is no git repository: {found.stderr.strip()[:200]}")
    return Path(found.stdout.strip())


def _quoted(path: Path) -> str:
    """Quote for GIT_ALTERNATE_OBJECT_DIRECTORIES, where a colon separates and a quote begins a C string."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
