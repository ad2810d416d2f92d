# SPDX-License-Identifier: BSD-2-Clause
"""Requests every address of a site as every user, checks each response, and writes a table of the access rights."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from django.db import connection, transaction
from django.test import Client
from django.test.client import MULTIPART_CONTENT
from psycopg import sql

from perfweb.accounts.middleware import NAME_COOKIE
from perfweb.accounts.models import Entry, Outcome
from tests.unit.accounts.site import ANONYMOUS, ROLES, Site
from tests.unit.crawl.addresses import ADDRESSES, Address

NOT_REQUESTED = {
    "/runs/{number}/events": "a stream without a session, which closes its connection to the database",
    "/health/": "503, because no worker runs",
    "/metrics": "another response each second",
}
"""Addresses without a GET request, with the reason; other tests request them."""
LOG = "accounts_entry"
SCRIPTS = {"script-src 'self'"}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
WORDS = {
    200: "read",
    401: "token",
    403: "refused",
    404: "not found",
    400: "not possible",
    409: "not possible",
    422: "not possible",
}
INTRODUCTION = """\
# Access by role

Which role can read or change what?

A crawl requests every address of the site, by GET and by POST, as every role. A test compares the answers with this
page; `./dev test tests/unit/accounts/test_crawl.py --write` writes it.

*author* has the role submitter and owns the requested objects; *submitter* has that role, too. Roles use a session
on pages, and a token with all their permissions in the API. Requests are valid, so only the role decides. The
exceptions are webhook signatures, password links and external sign-ins, which no role has.

| word | response |
|---|---|
| read | 200, and nothing has changed |
| changed | the change was made |
| refused | 403 |
| sign in | a redirect to the page for sign-in |
| token | 401: the API needs a token |
| not found | 404 |
| not possible | 400, 409 or 422, with the reason |
| redirect | a redirect to another page |

Unless the word is *changed*, no row of any table has changed, except the audit log's entry about a refused action.
Every response has the security headers, and no page has a script that is not a file of the service. None shows a
secret, a session, a password hash, a mail address, another user's token, or the text of a mail, a webhook or an
outgoing message. Only maintainers see the audit log.

Every list is the same, byte for byte, for anonymous users and for admins, and does not read the session.
"""


def digests() -> dict[str, str]:
    """A digest of the rows of each table."""
    one = sql.SQL("SELECT {}, md5(string_agg(line::text, '|' ORDER BY line::text)) FROM {} AS line")
    tables = connection.introspection.table_names()
    with connection.cursor() as cursor:
        parts = [one.format(sql.Literal(name), sql.Identifier(name)) for name in tables]
        cursor.execute(sql.SQL(" UNION ALL ").join(parts))
        return dict(cursor.fetchall())


class Scripts(HTMLParser):
    """Find inline scripts in a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        inline = tag == "script" and "src" not in given and given.get("type") != "application/json"
        led = any(value.strip().lower().startswith("javascript:") for value in given.values())
        if inline or led or any(name.startswith("on") for name in given):
            self.found.append(self.get_starttag_text() or tag)


class Crawl:
    """The access rights: a word for each method of each address and each user; `wrong` has the errors."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.wrong: list[str] = []
        self.words: dict[tuple[Address, str], dict[str, str]] = {}
        self._before = digests()
        self._looked_at: set[tuple[str, int]] = set()
        self._public: dict[Address, tuple[int, str | None, int]] = {}

    def browser(self, person: str, **options: Any) -> Client:
        """The client of a signed-in user."""
        made = Client(raise_request_exception=False, **options)
        if person != ANONYMOUS:
            made.cookies["sessionid"] = self.site.sessions[person]
        return made

    def ask(self, person: str, method: str, address: Address, browser: Client | None = None) -> Any:
        """The response for a user: pages with a session, the API with a token."""
        browser = browser or self.browser(ANONYMOUS if address.operations else person)
        token = self.site.tokens.get(person, "") if address.operations else ""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        place = self.site.place(address.name)
        if method != "POST":
            return browser.generic(method, place, headers=headers)
        kind = "application/json" if address.operations else MULTIPART_CONTENT
        return browser.post(place, self.site.sent(address.name), kind, headers=headers)

    def changed_by(
        self, person: str, method: str, address: Address, browser: Client | None = None
    ) -> tuple[Any, set[str]]:
        """The response for a user, and the tables that it changed, which are then restored."""
        with transaction.atomic():
            answer = self.ask(person, method, address, browser)
            changed = {table for table, digest in digests().items() if digest != self._before.get(table)}
            newest = Entry.objects.first() if LOG in changed else None
            if newest and newest.outcome == Outcome.REFUSED:
                changed.remove(LOG)
            transaction.set_rollback(True)
        return answer, changed

    def look(self, person: str) -> None:
        """Request everything; addresses that are equal for all users are requested by the lowest and the highest
        role.
        """
        for address in ADDRESSES:
            if address.is_personal:
                self._do(person, "GET", address)
            elif address.name not in NOT_REQUESTED and person in (ANONYMOUS, "admin"):
                self._note(person, "GET", address, self.ask(person, "GET", address), set())
        if digests() != self._before:
            self.wrong.append(f"{person}: looking has changed something")

    def act(self, person: str) -> None:
        """Do everything."""
        for address in ADDRESSES:
            if address.action:
                self._do(person, "POST", address)

    def _do(self, person: str, method: str, address: Address) -> None:
        """Do an action in a savepoint that is rolled back."""
        answer, changed = self.changed_by(person, method, address)
        word = self._note(person, method, address, answer, changed)
        if changed and (method, word) != ("POST", "changed"):
            self.wrong.append(f"{person}: {method} {address.name} was {word} and has changed {changed}")

    def _compare(self, person: str, address: Address, answer: Any, content: bytes) -> None:
        """Public pages are the same for all users, and need no session, so that caches may store them."""
        got = (answer.status_code, answer.headers.get("ETag"), hash(content))
        if got != self._public.setdefault(address, got):
            self.wrong.append(f"{person}: GET {address.name} is not what others get")
        if "Cookie" in answer.headers.get("Vary", "") or answer.cookies:
            self.wrong.append(f"{person}: GET {address.name} asks for a session")

    def _note(self, person: str, method: str, address: Address, answer: Any, changed: set[str]) -> str:
        word = _word(answer, changed)
        content = answer.getvalue()
        if method == "GET" and not address.is_personal:
            self._compare(person, address, answer, content)
        if word:
            self.words.setdefault((address, method), {})[person] = word
            self.wrong += [
                f"{person}: {method} {address.name}: {wrong}" for wrong in self._judged(person, answer, content)
            ]
        return word

    def _judged(self, person: str, answer: Any, content: bytes) -> Iterator[str]:
        """Return the errors of a response."""
        if answer.status_code >= 500:
            yield f"status {answer.status_code}"
        policy = answer.headers.get("Content-Security-Policy", "")
        if "default-src 'none'" not in policy or not SCRIPTS.issuperset(re.findall(r"script-src[^;]*", policy)):
            yield f"policy {policy!r}"
        yield from (f"lacks {name}" for name, value in HEADERS.items() if answer.headers.get(name) != value)
        yield from (
            f"cookie {name}"
            for name, cookie in answer.cookies.items()
            if cookie.value and not ((cookie["httponly"] or name == NAME_COOKIE) and cookie["samesite"] == "Lax")
        )
        if (key := (person, hash(content))) in self._looked_at:
            return
        self._looked_at.add(key)
        text = content.decode("utf-8", "replace")
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            yield from Scripts(text).found
        yield from (f"shows {mark}" for mark, who in self.site.private.items() if person not in who and mark in text)


def _word(answer: Any, changed: set[str]) -> str:
    """Return the response for a user in one word; empty if an address does not know the method."""
    status = answer.status_code
    if status == 405:
        return ""
    if changed and status < 400:
        return "changed"
    if status in {301, 302}:
        return "sign in" if answer.headers["Location"].startswith("/account/sign-in/") else "redirect"
    return WORDS.get(status, f"status {status}")


def report(words: dict[tuple[Address, str], dict[str, str]]) -> str:
    """Return the page: for each part of the site the rights that all users have, and a table of the others."""
    people = [ANONYMOUS, *ROLES]
    head = f"| | {' | '.join(people)} |\n|{'---|' * (len(people) + 1)}\n"
    found = sorted(words.items(), key=lambda item: (item[0][0].name, item[0][1]))
    parts = []
    for app in dict.fromkeys(address.app for address in ADDRESSES):
        own = [(method, address, got) for (address, method), got in found if address.app == app]
        alike = [
            f"* `{address.name}`: {got[ANONYMOUS]}\n"
            for method, address, got in own
            if (method, address.is_personal) == ("GET", False)
        ]
        rows = [
            f"| {method} `{address.name}` | {' | '.join(got[person] for person in people)} |\n"
            for method, address, got in own
            if address.is_personal or method == "POST"
        ]
        parts.append("\n".join([f"## {app}\n", *([head + "".join(rows)] if rows else []), "".join(alike)]).rstrip())
    not_requested = [f"* `{name}`: {why}\n" for name, why in NOT_REQUESTED.items()]
    return "\n\n".join([INTRODUCTION.rstrip(), *parts, f"## Not requested\n\n{''.join(not_requested)}"])
