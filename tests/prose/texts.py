# SPDX-License-Identifier: BSD-2-Clause
"""The prose of a file, with the line that each text begins in.

C, JavaScript, CSS and Python have comments, docstrings and messages, shell and YAML have comments and names of tasks,
Markdown and templates have paragraphs.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Text(NamedTuple):
    """A comment, message or paragraph, and the line of its file that it begins in."""

    line: int
    kind: str
    text: str


_C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_MARGIN = re.compile(r"^[ \t]*\*(?: |(?=\t)|$)", re.MULTILINE)
_FORMATTED = re.compile(r"^[ \t]*\t.*$", re.MULTILINE)
_WORDS = re.compile(r"[A-Za-z]{2,}")
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_FENCE = re.compile(r"^(?:```.*?^```|(?: {4}|\t)[^\n]*$)", re.DOTALL | re.MULTILINE)


def _blank(match: re.Match[str]) -> str:
    """Spaces in the place of a match, so that lines keep their numbers."""
    return re.sub(r"[^\n]", " ", match.group())


def c_texts(source: str) -> Iterator[Text]:
    """Comments, without preformatted lines, and strings of at least three words."""
    for match in _C_TOKEN.finditer(source):
        token, line = match.group(), source.count("\n", 0, match.start()) + 1
        if token.startswith("/*"):
            body = _FORMATTED.sub(_blank, _MARGIN.sub("", token[2:-2]))
            if "SPDX-License-Identifier" not in body:
                yield Text(line, "comment", body)
        elif token.startswith("//"):
            yield Text(line, "comment", token[2:])
        elif token.startswith('"') and len(_WORDS.findall(token)) >= 3:
            yield Text(line, "message", token[1:-1].replace("\\n", "  "))


def markdown_texts(source: str) -> Iterator[Text]:
    """Paragraphs, list items, headings and cells of tables, without code."""
    source = _LINK.sub(r"\1", _CODE.sub("code", _FENCE.sub(_blank, source)))
    start, block = 1, ""
    for number, line in enumerate([*source.split("\n"), ""], 1):
        if line.startswith("|"):
            yield from (Text(number, "cell", cell) for cell in line.strip("|").split("|") if _WORDS.search(cell))
        elif not line.strip() or re.match(r"\s*(?:[-*#]|\d+\.) ?", line):
            if block.strip():
                yield Text(start, "paragraph", block)
            start, block = number, line.lstrip("#-* ")
        else:
            start, block = (number, line) if not block.strip() else (start, f"{block}\n{line}")
    if block.strip():
        yield Text(start, "paragraph", block)


_TEMPLATE_COMMENT = re.compile(r"\{#(.*?)#\}")
_UNREAD = re.compile(r"<(script|style|pre)\b[^>]*>.*?</\1>", re.DOTALL)
_HTML_CODE = re.compile(r"<code\b[^>]*>.*?</code>", re.DOTALL)
_LABEL = re.compile(r'\b(?:aria-label|alt|placeholder|title|content|data-label)="([^"<>{}]*)"')
_QUOTED = re.compile(r"""(?:default|yesno):"([^"]+)"|"([^"<>]* [^"<>]*)\"""")
_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}")
_BRANCH = re.compile(r"\{%-? *(?:else|elif|empty|block|endblock|for|endfor)\b.*?%\}")
_ELEMENT = re.compile(r"<[^>]*>")
_INLINE = re.compile(r"</?(?:a|abbr|b|br|code|em|i|s|small|span|strong|sup)\b")


def template_texts(source: str) -> Iterator[Text]:
    """Comments, labels, strings in tags, and the text between block elements, of a Django template."""
    for pattern, kind in ((_TEMPLATE_COMMENT, "comment"), (_LABEL, "label")):
        for match in pattern.finditer(source):
            yield Text(source.count("\n", 0, match.start()) + 1, kind, match[1])
    source = _UNREAD.sub(_blank, _TEMPLATE_COMMENT.sub(_blank, source))
    for tag in _TAG.finditer(source):
        for match in _QUOTED.finditer(tag.group()):
            yield Text(source.count("\n", 0, tag.start()) + 1, "message", match[1] or match[2])
    source = _TAG.sub(lambda match: "x" if match.group().startswith("{{") else "", _BRANCH.sub("\0", source))
    source = _ELEMENT.sub(
        lambda match: "" if _INLINE.match(match.group()) else "\0" + "\n" * match.group().count("\n"),
        _HTML_CODE.sub("code", source),
    )
    line = 1
    for block in source.split("\0"):
        if len(_WORDS.findall(block)) > 1:
            yield Text(line + len(block[: -len(block.lstrip()) or None].split("\n")) - 1, "paragraph", block.strip())
        line += block.count("\n")


_DIRECTIVE = re.compile(r"#\s*(?:SPDX|noqa|type:|fmt:|ruff:|mypy:|!)")


def python_texts(source: str) -> Iterator[Text]:
    """Comments, docstrings, strings of at least three words, and names that the source defines, of Python.

    A `help_text` is a comment on a model's field, because no page shows it.
    """
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not _DIRECTIVE.match(token.string):
            yield Text(token.start[0], "comment", token.string.lstrip("# "))
    tree = ast.parse(source)
    yield from _strings(tree)
    yield from _names(tree)


def _strings(node: ast.AST) -> Iterator[Text]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            if isinstance(child.value.value, str):
                yield Text(child.lineno, "docstring", _CODE.sub("code", child.value.value))
        elif isinstance(child, ast.keyword) and child.arg == "help_text":
            yield from (text._replace(kind="comment") for text in _strings(child))
        elif isinstance(child, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "x" for part in child.values)
            yield from _message(child.lineno, "".join(str(part) for part in parts))
        elif isinstance(child, ast.Constant):
            if isinstance(child.value, str):
                yield from _message(child.lineno, child.value)
        else:
            yield from _strings(child)


_REQUIRED_METHODS = {"tell"}
"""Methods that Python requires of files (`io.IOBase`)."""


def _is_required(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef(name=name, args=ast.arguments(args=[ast.arg(arg="self"), *_])):
            return name in _REQUIRED_METHODS
    return False


def _names(tree: ast.AST) -> Iterator[Text]:
    """The words of each name of a variable, attribute, parameter, function or class, where it is defined."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.arg(arg=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ) if not _is_required(node):
                yield Text(node.lineno, "name", name.strip("_").replace("_", " "))


def _message(line: int, text: str) -> Iterator[Text]:
    if len(_WORDS.findall(text)) >= 3 and " " in text.strip():
        yield Text(line, "message", text)


_TASK = re.compile(r"^ *- name: +(?P<name>.+)$", re.MULTILINE)
_HEREDOC = re.compile(r"<<'TEXT'\n(?P<text>.*?)^TEXT$", re.DOTALL | re.MULTILINE)


def shell_texts(source: str) -> Iterator[Text]:
    """Blocks of comment lines, names of tasks, and the entries of help texts, of shell scripts and YAML."""
    for start, block in _comment_blocks(source):
        if "SPDX-License-Identifier" not in block:
            yield Text(start, "comment", block)
    for task in _TASK.finditer(source):
        yield Text(source.count("\n", 0, task.start()) + 1, "message", task["name"])
    for here in _HEREDOC.finditer(source):
        line = source.count("\n", 0, here.start("text")) + 1
        for entry in re.finditer(r"^\S.*\n(?:[ \t].*\n)*", here["text"], re.MULTILINE):
            yield Text(line + here["text"].count("\n", 0, entry.start()), "message", entry[0])


def _comment_blocks(source: str) -> Iterator[tuple[int, str]]:
    for match in re.finditer(r"(?:^[ \t]*#(?!!)[^\n]*\n)+", source, re.MULTILINE):
        for block in re.finditer(r"(?:^(?![ \t]*#[ \t]*$)[^\n]+\n)+", match[0], re.MULTILINE):
            line = source.count("\n", 0, match.start() + block.start()) + 1
            yield line, re.sub(r"^[ \t]*#+ ?", "", block[0], flags=re.MULTILINE)


KINDS = frozenset({"comment", "docstring", "label", "message", "name", "paragraph", "cell"})
READERS = {
    ".c": c_texts, ".h": c_texts, ".css": c_texts, ".js": c_texts,
    ".md": markdown_texts, ".html": template_texts, ".py": python_texts,
    ".sh": shell_texts, ".yaml": shell_texts, ".yml": shell_texts,
}  # fmt: skip
"""The reader of a file's prose, by its suffix."""


def texts(path: Path) -> Iterator[Text]:
    """The prose of one file; a script without a suffix names its interpreter in the first line."""
    source = path.read_text(encoding="utf-8")
    return READERS[path.suffix or (".py" if "python" in source[:40] else ".sh")](source)


def _is_script(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def files(path: Path) -> list[Path]:
    """The files below a path whose prose can be read, without migrations, which record texts of the past."""
    if not path.is_dir():
        return [path]
    found = (file for file in path.rglob("*") if file.suffix in READERS or (not file.suffix and _is_script(file)))
    return sorted(file for file in found if not {"migrations", "vendor"} & set(file.parts))
