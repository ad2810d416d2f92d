# SPDX-License-Identifier: BSD-2-Clause
"""What git reads of a mail with a patch, and the tree that it makes of it."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.checkouts import Checkout

_ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


_B4_AM = (
    "b4", "--offline-mode", "--no-stdin", "--no-interactive", "am", "--use-local-mbox=given", "--save-as-maildir",
    "--mbox-name=series", "--no-cover", "--no-add-trailers", "--no-partial-reroll", "--allow-unicode-control-chars",
)  # fmt: skip
_B4_ENVIRONMENT = {
    **{name: value for name, value in _ENVIRONMENT.items() if not name.startswith("XDG_")},
    "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "b4.attestation-policy", "GIT_CONFIG_VALUE_0": "off",
}  # fmt: skip
_MESSAGE_ID = re.compile(rb"^Message-Id:\s*<([^>]+)>", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Read:
    """Author with address, subject without tags, message, and the text from its diff on."""

    author: str
    subject: str
    message: str
    diff: bytes


def split(content: bytes) -> list[bytes]:
    """The mails of an mbox, by git-mailsplit(1), which leaves a text that is no mbox as it is."""
    with tempfile.TemporaryDirectory() as folder:
        mbox = Path(folder) / "mbox"
        mbox.write_bytes(content)
        _git(["mailsplit", "-b", "--keep-cr", f"-o{folder}", "--", str(mbox)], Path(folder))
        return [path.read_bytes() for path in sorted(Path(folder).glob("[0-9]*"))]


def mailinfo(mail: bytes) -> Read:
    """Author, subject, message and patch, by git-mailinfo(1).  Raises CalledProcessError where git refuses a mail."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        output = _git(["mailinfo", "message", "patch"], folder, mail)
        named = dict(line.partition(": ")[::2] for line in _text(output).split("\n") if ": " in line)
        return Read(
            author=f"{named.get('Author', '')} <{named.get('Email', '')}>",
            subject=named.get("Subject", ""),
            message=_text((folder / "message").read_bytes()),
            diff=(folder / "patch").read_bytes(),
        )


def b4_am(mails: Sequence[bytes]) -> list[Read]:
    """What git reads of the mails that `b4 am` makes of a thread; empty where b4 finds no patch."""
    thread = _MESSAGE_ID.search(mails[0])
    assert thread is not None
    with tempfile.TemporaryDirectory() as name:
        folder, made = Path(name), Path(name) / "made"
        for part in ("cur", "new", "tmp"):
            (folder / "given" / part).mkdir(parents=True)
        for place, mail in enumerate(mails):
            (folder / "given" / "new" / f"{place}.eml").write_bytes(mail)
        subprocess.run(
            [*_B4_AM, f"--outdir={made}", thread[1].decode()],
            env={**_B4_ENVIRONMENT, "HOME": name},
            cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        return [mailinfo(path.read_bytes()) for path in sorted(made.glob("*/new/*"))]


def apply(checkout: Checkout, base: str, mails: Sequence[bytes]) -> str:
    """The tree that git-am(1) makes of mails, without cover letters; empty where it refuses one of them."""
    checkout.git("checkout", "-q", "--detach", "--force", base)
    for mail in mails:
        if len(mails) > 1 and b"\ndiff --git " not in mail:
            continue
        try:
            _git(["am", "--quiet", "--keep-cr", "--no-gpg-sign"], checkout.tree, mail)
        except subprocess.CalledProcessError:
            checkout.git("am", "--abort")
            return ""
    return checkout.git("rev-parse", "HEAD^{tree}").decode().strip()


def _text(content: bytes) -> str:
    """Bytes that are no UTF-8 become Latin-1 in a commit (git-commit(1), section Discussion)."""
    return "".join(_line(line) for line in content.split(b"\n") for line in (line, b"\n")).removesuffix("\n")


def _line(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _git(words: list[str], folder: Path, given: bytes = b"") -> bytes:
    return subprocess.run(
        ["git", *words], cwd=folder, input=given, check=True, capture_output=True, env=_ENVIRONMENT
    ).stdout
