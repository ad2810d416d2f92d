# SPDX-License-Identifier: BSD-2-Clause
"""The catalogue of documents: each Markdown file of docs/, by the purpose of its reader (https://diataxis.fr/).

Files are read once for each process, because a running service never changes its own documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from django.conf import settings
from django.urls import reverse
from markdown_it.token import Token

from perfweb.manual import markdown
from perfweb.manual.markdown import Rendered, Target

IMAGES = "docs/images"
KINDS = {
    "tutorials": ("Tutorials", "lessons with every command, for the first hour"),
    "howto": ("How-to guides", "steps to a goal, for daily work"),
    "reference": ("Reference", "facts to look up"),
    "explanation": ("Explanation", "how it works, and why"),
    "measured": ("Measurements", "generated tables, with the command that makes each"),
}
FIRST = "tutorials/first-verdict"
"""The tutorial that the others build on."""

OUTSIDE = {
    "stack/README.md": "explanation/stack",
    "stack/tests/conformance.md": "reference/conformance",
    "stack/tests/packetdrill.md": "reference/packetdrill",
    "playbooks/README.md": "reference/playbooks",
}
"""Documents beside the code that they describe, with their names on the site."""

MOVED = {"howto/operators": "howto/install", "howto/users": "howto/browse"}
"""Former names of documents; their addresses redirect."""


@dataclass(frozen=True)
class Document:
    """A document: its name in the address, its file relative to the root of the tree, and its Markdown text."""

    name: str
    file: str
    text: str

    @property
    def kind(self) -> str:
        """A key of KINDS, or an empty text for the glossary."""
        return self.name.rpartition("/")[0]

    @cached_property
    def tokens(self) -> list[Token]:
        """The parsed text."""
        return markdown.parse(self.text)

    @cached_property
    def outline(self) -> markdown.Outline:
        """Title, summary and sections, without HTML."""
        return markdown.outline(self.tokens)

    @cached_property
    def rendered(self) -> Rendered:
        """The HTML, with links that lead to other documents on the site."""
        return markdown.render(self.text, self._target, self._image)

    def _target(self, link: str) -> Target:
        """Resolve a link between documents; LookupError if no document has that file."""
        path, mark, anchor = link.partition("#")
        if "://" in link or not path:
            return Target(link)
        name = by_file()[_normalised(self.file, path)]
        address = reverse("manual:document", args=[name])
        return Target(f"{address}{mark}{anchor}", documents()[name].outline.title)

    def _image(self, link: str) -> str:
        """Return the path below STATIC_URL of an image; LookupError if it is not in docs/images/."""
        path = _normalised(self.file, link)
        if not path.startswith(f"{IMAGES}/") or not (settings.BASE_DIR / path).is_file():
            raise LookupError(f"{self.file}: no image {path}")
        return f"docs/{path.removeprefix(f'{IMAGES}/')}"


@cache
def documents() -> dict[str, Document]:
    """Return all documents by name, grouped by kind in the order of KINDS."""
    root: Path = settings.BASE_DIR
    names = {str(path.relative_to(root)): "" for path in sorted((root / "docs").rglob("*.md"))}
    names = {file: file.removeprefix("docs/").removesuffix(".md") for file in names} | OUTSIDE
    found = [Document(name, file, (root / file).read_text(encoding="utf-8")) for file, name in names.items()]
    found.sort(key=_place)
    return {one.name: one for one in found}


def _place(document: Document) -> tuple[int, bool, str]:
    kinds = [*KINDS, ""]
    return kinds.index(document.kind), document.name != FIRST, document.outline.title.lower()


@cache
def by_file() -> dict[str, str]:
    """Return the names of documents by their files."""
    return {one.file: one.name for one in documents().values()}


def _normalised(file: str, link: str) -> str:
    """Return the target file of a relative link in another file."""
    parts: list[str] = []
    for part in (Path(file).parent / link).parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
