# SPDX-License-Identifier: BSD-2-Clause
"""Commits of every kind that a patch can have: texts, authors, names and contents of files, and what git records."""

from __future__ import annotations

from dataclasses import dataclass

from tests.checkouts import Checkout

LINES = "".join(f"int line{number};\n" for number in range(1, 41))
ADA = "Ada Example <ada@example.org>"


@dataclass(frozen=True)
class Change:
    """A commit to make: `files` with their new contents, None for one that is removed; `moved` are renames."""

    name: str
    files: dict[str, bytes | None]
    subject: str = "net: name five"
    message: str = "Because."
    author: str = ADA
    moved: tuple[tuple[str, str], ...] = ()
    executable: str = ""


def _five(text: str = "five") -> bytes:
    return LINES.replace("line5;", f"{text};").encode()


IF_C = "stack/net/if.c"
FILES: dict[str, bytes] = {
    IF_C: LINES.encode(),
    "stack/meson.build": b"project('stack')\n",
    "stack/crlf.c": LINES.replace("\n", "\r\n").encode(),
    "stack/open.c": LINES.removesuffix("\n").encode(),
    "stack/latin.c": "/* gr\xf6\xdfer */\n".encode("latin-1") + LINES.encode(),
    "stack/blank.c": LINES.replace("line7;", "line7;  \t").replace("int line9;\n", "\n").encode() + b"\n",
    "stack/odd.c": b"-- sql\n++ sum\n.\n..\nFrom a Mon Sep 17 00:00:00 2001\n\x0c\n>From\n \n-- \nend\n",
    "stack/a b.c": LINES.encode(),
    'stack/qu"o.c': LINES.encode(),
    "stack/größe.c": LINES.encode(),
    "stack/wide.c": f"/* {'x' * 1200} */\n{LINES}".encode(),
    "stack/unicode.c": f"/* a\u2028b\u00a0c\ufeffd\u202ee */\n{LINES}".encode(),
}


def _edit(path: str, old: bytes = b"line5;", new: bytes = b"five;") -> dict[str, bytes | None]:
    return {path: FILES[path].replace(old, new)}


TEXTS = {
    "plain": "Because.",
    "none": "",
    "paragraphs": "One.\n\nTwo, with a\nsecond line.\n\n\nThree.",
    "indented": "  indented from the start\n\n\ta tab\n    four",
    "from": "From here on it is faster.\n>From there, too.\n>>From both.",
    "headers": "Cc: somebody\nFrom the start: no\nDate of birth: no",
    "inner header": "Note:\n\nSubject: is not a header here\nFrom: neither",
    "dashes": "----\n-- \n--- \tno\n --- a\n---x\n- list\n-- list",
    "unicode": "Größer ist schöner: naïve, Łódź, 日本語, 😀",
    "spaces": "a  b\u00a0c\u2003d\ttab",
    "long": "word " * 60 + "x" * 300,
    "trailers": 'Why.\n\nFixes: 0123456789ab ("x")\nSigned-off-by: Ada Example <ada@example.org>',
    "equals": "a=b =3D =?utf-8?q?no?= = \n=20",
    "request": "perf: tcp quick",
    "quoted": "> perf: tcp\n\n    perf: tcp",
}
SUBJECTS = {
    "umlaut": "net: größer ist schöner",
    "cjk": "net: 日本語のパケットを速く処理するための変更",
    "long": "net: a subject that is so long that git folds it, and then more of it until it has been folded twice, ok",
    "long utf8": "net: größer ist schöner und dieser Betreff ist so lang dass git ihn faltet, auch zweimal, [2/3] ok",
    "brackets": "net: [tcp] x [2/3]",
    "colons": "net: tcp: output: x: y",
    "quotes": "net: \"quoted\" 'x' \\ back",
    "encoded": "net: what =?x",
    "re": "rework the lock",
    "marks": "net: 100% (a/b) <c> & d? e! f_g =20",
}
AUTHORS = {
    "umlaut": "Jürgen Größe <jg@example.org>",
    "polish": "Rafał Miłecki <rafal@example.org>",
    "cjk": "山田太郎 <yamada@example.org>",
    "dot": "Ada B. Example, Jr. <ada@example.org>",
    "quote": "Ada 'A' Example <ada@example.org>",
    "paren": "Ada Example (Corp) <ada@example.org>",
    "short": "Al <al@example.org>",
    "long": f"{'Very ' * 13}Long Name <long@example.org>",
    "at": "ada@home <ada@example.org>",
    "plus": "Ada Example <ada+git.tag_x@sub-domain.example.org>",
}
CHANGES = (
    *(Change(f"text {name}", _edit(IF_C), message=text) for name, text in TEXTS.items()),
    *(Change(f"subject {name}", _edit(IF_C), subject=text) for name, text in SUBJECTS.items()),
    *(Change(f"author {name}", _edit(IF_C), author=text) for name, text in AUTHORS.items()),
    Change("new file", {"stack/new.c": b"int new;\n"}),
    Change("empty file", {"stack/empty.c": b""}),
    Change("deleted file", {IF_C: None}),
    Change("rename", {}, moved=((IF_C, "stack/net/route.c"),)),
    Change("rename with edit", {"stack/net/route.c": _five()}, moved=((IF_C, "stack/net/route.c"),)),
    Change("mode", {}, executable=IF_C),
    Change("mode and edit", _edit(IF_C), executable=IF_C),
    Change("copy", {"stack/net/copy.c": LINES.encode(), IF_C: _five()}),
    Change("crlf file", _edit("stack/crlf.c")),
    Change("new crlf file", {"stack/dos.c": b"int a;\r\nint b;\r\n"}),
    Change("crlf to lf", {"stack/crlf.c": LINES.encode()}),
    Change("lone cr", {"stack/cr.c": b"int a;\rint b;\nint c;\r\n"}),
    Change("no newline", _edit("stack/open.c", b"line40;", b"forty;")),
    Change("newline added", {"stack/open.c": LINES.encode()}),
    Change("newline removed", {IF_C: LINES.removesuffix("\n").encode()}),
    Change("latin-1 file", _edit("stack/latin.c", b"line1;", b"one;")),
    Change("trailing blanks", _edit("stack/blank.c", b"line8;", b"eight; \t ")),
    Change("blank at the end", _edit("stack/blank.c", b"line40;", b"forty;")),
    Change("lines like a diff", _edit("stack/odd.c", b"-- sql\n++ sum\n", b"++ sql\n-- sum\n")),
    Change("lines like a mail", _edit("stack/odd.c", b"end\n", b"End\nFrom b Mon Sep 17 00:00:00 2001\n")),
    Change("space in a name", _edit("stack/a b.c")),
    Change("quote in a name", _edit('stack/qu"o.c')),
    Change("umlaut in a name", _edit("stack/größe.c")),
    Change("long line", _edit("stack/wide.c", b" */", b"y */")),
    Change("unicode file", _edit("stack/unicode.c", b"line1;", b"one;")),
    Change("tabs", _edit(IF_C, b"int line5;", b"\tint\tfive;")),
    Change("several files", {**_edit(IF_C), **_edit("stack/open.c"), "stack/new.c": b"\n\n", "stack/odd.c": None}),
)  # fmt: skip


def touched(change: Change) -> set[str]:
    """The files that a change makes, edits, moves or removes."""
    return {*change.files, *(path for pair in change.moved for path in pair), change.executable} - {""}


def repository(checkout: Checkout) -> str:
    """Fills an empty repository; returns its first commit, which all changes are made to."""
    checkout.git("config", "core.quotePath", "true")
    checkout.git("config", "core.autocrlf", "false")
    for path, content in FILES.items():
        checkout.put(path, content)
    return checkout.commit("The first")


def commit(checkout: Checkout, change: Change, base: str) -> str:
    """Makes a change on a base; returns its commit."""
    checkout.git("checkout", "-q", "--detach", "--force", base)
    for old, new in change.moved:
        checkout.git("mv", old, new)
    for path, content in change.files.items():
        if content is None:
            (checkout.tree / path).unlink()
        else:
            checkout.put(path, content)
    if change.executable:
        (checkout.tree / change.executable).chmod(0o755)
    checkout.git("add", "--all")
    text = f"{change.subject}\n\n{change.message}\n"
    checkout.git("commit", "-q", f"--author={change.author}", "--cleanup=verbatim", "-m", text)
    return checkout.git("rev-parse", "HEAD").decode().strip()
