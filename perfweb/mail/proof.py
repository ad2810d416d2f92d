# SPDX-License-Identifier: BSD-2-Clause
"""The signer of a mail, from the Authentication-Results of the service's own mail server (RFC 8601).

Any sender can write such a header. The server must remove foreign headers with its own name. If one is left, only the
topmost one about DKIM counts, because a server adds its headers above the received ones.
"""

import re
from collections.abc import Iterator, Sequence

# An unclosed string extends to the end, so that no character is scanned twice.
_QUOTED = r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_TOKEN = re.compile(rf'{_QUOTED}|[;=]|[^\s;="]+', re.DOTALL)
_PIECE = re.compile(rf"{_QUOTED}|\\.|.", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_DOMAIN = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+", re.ASCII)


def signers(headers: Sequence[str], server: str) -> frozenset[str]:
    """Return the domains whose DKIM signature `server` verified; `headers` are the Authentication-Results, topmost
    first.
    """
    for header in headers:
        statements = list(_statements(header))
        if not server or not statements or [word.lower() for word in statements[0][:1]] != [server.lower()]:
            continue
        signatures = [statement for statement in statements[1:] if statement[0].lower().partition("/")[0] == "dkim"]
        if signatures:
            return frozenset(domain for statement in signatures for domain in _passed(statement))
    return frozenset()


def _passed(statement: Sequence[str]) -> Iterator[str]:
    """Return the domain of `dkim=pass header.d=example.org`, or of `header.i=@example.org` without the former."""
    if [word.lower() for word in statement[1:3]] != ["=", "pass"]:
        return
    properties = {
        name.lower(): statement[place + 2].strip('"').lower()
        for place, name in enumerate(statement[:-2])
        if name.lower() in {"header.d", "header.i"} and statement[place + 1] == "="
    }
    domain = properties.get("header.d") or properties.get("header.i", "").rpartition("@")[2]
    if _DOMAIN.fullmatch(domain):
        yield domain


def _statements(header: str) -> Iterator[list[str]]:
    """Split at semicolons into words, with a quoted string as one word. A malformed header has none."""
    words, statements = list[str](), list[list[str]]()
    for found in _TOKEN.findall(without_comments(header)):
        if found == ";":
            statements.append(words)
            words = []
        else:
            words.append(found)
    yield from filter(None, [*statements, words])


def without_comments(text: str) -> str:
    """Return a header without its comments in parentheses, which nest; empty if one is not closed."""
    kept, depth, place = list[str](), 0, 0
    while place < len(text):
        sign = _PIECE.match(text, place)[0]  # type: ignore[index]
        if depth and sign[0] == '"':
            sign = sign[0]  # quotes have no meaning in a comment
        place += len(sign)
        if not depth and sign[0] == '"' and _STRING.fullmatch(sign) is None:
            return ""
        if sign == "(":
            depth += 1
        elif sign == ")" and depth:
            depth -= 1
            kept.append(" ")
        elif not depth:
            kept.append(sign)
    return "" if depth else "".join(kept)
