# SPDX-License-Identifier: BSD-2-Clause
"""Differences between forges: one row for each, with addresses, words, signatures and the shapes of webhooks."""

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import quote

Headers = Mapping[str, str]
Payload = Mapping[str, Any]

STATUS_CONTEXT = "perfweb"
CLOCKS_DIFFER = 300.0
"""Seconds by which the time in a signature may differ from ours."""


@dataclass(frozen=True)
class Event:
    """An event of a webhook: a new text on a pull request, or a new head of one.

    A text is a comment, a review, a comment of a review, or the description of a new pull request. `comment` is the
    forge's number of a comment, and negative for other texts. `own` is so for who commented on their own pull request;
    `person` is the forge's number of who did.
    """

    kind: Literal["comment", "push"]
    path: str
    pull: int
    login: str = ""
    person: int = 0
    bot: bool = False
    own: bool = False
    closed: bool = False
    comment: int = 0
    title: str = ""
    body: str = ""
    head: str = ""


class ShapeError(ValueError):
    """A webhook lacks what it should have."""


@dataclass(frozen=True)
class Texts:
    """Where texts of one kind are written, listed and edited, and how the forge calls a text's own words and number."""

    write: str
    recent: str
    edit: str
    words: str = "body"
    number: str = "id"


@dataclass(frozen=True)
class Forge:
    """The API of one kind of forge.  Addresses have {path}, {pull}, {number}, {sha} and {since}.

    `checks` are addresses, each with a function that returns which permission its answer shows to be missing; `grant`
    shows how to give it. `turns` are what makes an issue open or closed. `page` and `commit` are where people read an
    issue and a commit, below the forge's own address.
    """

    pull_ref: str
    authorization: tuple[str, str]
    comments: Texts
    issues: Texts
    turns: Mapping[str, Mapping[str, str]]
    page: str
    commit: str
    edit: str
    statuses: str
    checks: tuple[tuple[str, Callable[[object], str]], ...]
    grant: str
    states: Mapping[str, str]
    whole_path: bool
    author: str
    delivery: str
    genuine: Callable[[Headers, bytes, str], bool]
    read: Callable[[Headers, Payload], Event | None]

    def address(self, api: str, template: str, path: str, **values: object) -> str:
        """The address of an operation on a project."""
        quoted = {name: quote(str(value), safe="") for name, value in values.items()}
        return api.rstrip("/") + template.format(path=quote(path, safe="" if self.whole_path else "/"), **quoted)

    def issue_page(self, api: str, path: str, number: str) -> str:
        """Where people read an issue."""
        return _site(api) + self.page.format(path=quote(path), number=quote(number, safe=""))

    def commit_page(self, api: str, path: str, sha: str) -> str:
        """Where people read a commit with its changes."""
        return _site(api) + self.commit.format(path=quote(path), sha=sha)

    def status(self, state: str, description: str, url: str) -> dict[str, str]:
        """The content of a commit status; `state` is pending, success, failure or error."""
        return {
            "state": self.states.get(state, state),
            "description": description,
            "target_url": url,
            "context": STATUS_CONTEXT,
        }


def _site(api: str) -> str:
    """The address of a forge: its API is below it, or on a host of its own beside it (api.github.com)."""
    return _API.sub("", api.rstrip("/")).replace("://api.", "://", 1)


def _same(given: str, wanted: str) -> bool:
    """Compares in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _hexadecimal(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, "sha256").hexdigest()


def _by_github(headers: Headers, body: bytes, secret: str) -> bool:
    return _same(headers.get("X-Hub-Signature-256", ""), f"sha256={_hexadecimal(body, secret)}")


def _by_gitea(headers: Headers, body: bytes, secret: str) -> bool:
    return _same(headers.get("X-Gitea-Signature", ""), _hexadecimal(body, secret))


def _by_gitlab(headers: Headers, body: bytes, secret: str) -> bool:
    """By its signing token (whsec_…), as in Standard Webhooks, or by the older secret token, which signs nothing."""
    if not secret.startswith("whsec_"):
        return _same(headers.get("X-Gitlab-Token", ""), secret)
    identifier, sent = headers.get("Webhook-Id", ""), headers.get("Webhook-Timestamp", "")
    if not (sent.isascii() and sent.isdigit() and abs(int(sent[:15]) - time.time()) <= CLOCKS_DIFFER):
        return False
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        return False
    signed = f"{identifier}.{sent}.".encode("utf-8", "surrogateescape") + body
    wanted = "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    given = headers.get("Webhook-Signature", "").split(" ")
    return any([_same(one, wanted) for one in given[:5]])  # noqa: C419  # all are compared


def _of_github(headers: Headers, payload: Payload) -> Event | None:
    return _of_issues(headers.get("X-GitHub-Event", ""), payload, "synchronize")


def _of_gitea(headers: Headers, payload: Payload) -> Event | None:
    return _of_issues(headers.get("X-Gitea-Event", ""), payload, "synchronized")


def _of_issues(name: str, payload: Payload, pushed: str) -> Event | None:
    """GitHub's shape, which is Gitea's, too: a pull request is an issue."""
    action = payload.get("action")
    if name in {"pull_request", "pull_request_sync"} and action == pushed:
        return Event(
            "push",
            path=_text(payload, "repository", "full_name"),
            pull=_number(payload, "pull_request", "number"),
            head=_text(payload, "pull_request", "head", "sha"),
        )
    if where := _TEXTS.get((name, str(action))):
        return _of_pull_request(payload, where)
    if name not in {"issue_comment", "pull_request_comment"} or action != "created":
        return None
    issue = payload.get("issue")
    if not (isinstance(issue, dict) and (issue.get("pull_request") or payload.get("is_pull"))):
        return None
    return Event(
        "comment",
        path=_text(payload, "repository", "full_name"),
        pull=_number(payload, "issue", "number"),
        login=_text(payload, "comment", "user", "login"),
        person=_number(payload, "comment", "user", "id"),
        bot=payload["comment"]["user"].get("type") == "Bot",
        own=_number(payload, "issue", "user", "id") == _number(payload, "comment", "user", "id"),
        closed=issue.get("state") == "closed",
        comment=_number(payload, "comment", "id"),
        title=_text(payload, "issue", "title"),
        body=_text(payload, "comment", "body"),
    )


def _of_pull_request(payload: Payload, where: str) -> Event | None:
    """A text on a pull request that is no comment of its conversation. Gitea's review has neither number nor author."""
    about, pull = _at(payload, (where,)), _at(payload, ("pull_request",))
    if not isinstance(about, Mapping) or not isinstance(pull, Mapping):
        raise ShapeError(f"{where} is no object")
    text = about.get("body") or about.get("content")
    if not isinstance(text, str):
        return None
    user = about["user"] if "user" in about else payload.get("sender")
    if not isinstance(user, Mapping):
        raise ShapeError(f"{where} has no author")
    person, number = _number(user, "id"), _number(pull, "number")
    identity = about.get("id") or f"{person} {pull.get('updated_at')} {text}"
    return Event(
        "comment",
        path=_text(payload, "repository", "full_name"),
        pull=number,
        login=_text(user, "login"),
        person=person,
        bot=user.get("type") == "Bot",
        own=_number(pull, "user", "id") == person,
        closed=pull.get("state") == "closed",
        comment=_other_number(f"{where} {number} {identity}"),
        title=_text(pull, "title"),
        body=text,
    )


def _other_number(identity: str) -> int:
    """A number for a text that is no comment: negative, because the forge's numbers of comments are positive."""
    return -1 - int.from_bytes(hashlib.sha256(identity.encode("utf-8", "replace")).digest()[:7], "big")


def _of_gitlab(_: Headers, payload: Payload) -> Event | None:
    kind = payload.get("object_kind")
    about = payload.get("object_attributes")
    if not isinstance(about, dict):
        return None
    if kind == "merge_request" and about.get("action") == "update" and about.get("oldrev"):
        return Event(
            "push",
            path=_text(payload, "project", "path_with_namespace"),
            pull=_number(payload, "object_attributes", "iid"),
            head=_text(payload, "object_attributes", "last_commit", "id"),
        )
    if kind == "merge_request" and about.get("action") == "open" and isinstance(about.get("description"), str):
        number, person = _number(payload, "object_attributes", "iid"), _number(payload, "user", "id")
        return Event(
            "comment",
            path=_text(payload, "project", "path_with_namespace"),
            pull=number,
            login=_text(payload, "user", "username"),
            person=person,
            own=_number(payload, "object_attributes", "author_id") == person,
            comment=_other_number(f"description {number}"),
            title=_text(payload, "object_attributes", "title"),
            body=about["description"],
        )
    if kind != "note" or about.get("noteable_type") != "MergeRequest" or about.get("action", "create") != "create":
        return None
    return Event(
        "comment",
        path=_text(payload, "project", "path_with_namespace"),
        pull=_number(payload, "merge_request", "iid"),
        login=_text(payload, "user", "username"),
        person=_number(payload, "user", "id"),
        bot=bool(about.get("system")),
        own=_number(payload, "merge_request", "author_id") == _number(payload, "user", "id"),
        closed=payload["merge_request"].get("state") in ("closed", "merged"),
        comment=_number(payload, "object_attributes", "id"),
        title=_text(payload, "merge_request", "title"),
        body=_text(payload, "object_attributes", "note"),
    )


def _pushes(found: object) -> str:
    """Statuses need the permission to push."""
    return "" if _maybe(found, "permissions", "push") is True else "may not write to"


def _develops(found: object) -> str:
    """Statuses need the role Developer, of the project or of a group above it (GitLab's access levels)."""
    levels = [_maybe(found, "permissions", f"{whose}_access", "access_level") for whose in ("project", "group")]
    return "" if any(isinstance(level, int) and level >= _DEVELOPER for level in levels) else "is no Developer of"


def _has_scope(found: object) -> str:
    scopes = _maybe(found, "scopes")
    return "" if isinstance(scopes, list) and "api" in scopes else "has a token without the scope api for"


def _maybe(found: object, *path: str) -> object:
    try:
        return _at(found, path)
    except ShapeError:
        return None


def _text(payload: Payload, *path: str) -> str:
    found = _at(payload, path)
    if not isinstance(found, str):
        raise ShapeError(f"{'.'.join(path)} is no text")
    return found


def _number(payload: Payload, *path: str) -> int:
    found = _at(payload, path)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 < found < 2**63:
        raise ShapeError(f"{'.'.join(path)} is no number")
    return found


def _at(found: object, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            raise ShapeError(f"{'.'.join(path)} is not there")
        found = found[name]
    return found


_TEXTS = {
    ("pull_request", "opened"): "pull_request",
    ("pull_request_review_comment", "created"): "comment",
    ("pull_request_review", "submitted"): "review",  # GitHub's, and three of Gitea's
    **{(f"pull_request_{kind}", "reviewed"): "review" for kind in ("approved", "rejected", "comment")},
}
"""Where an event and its action have a text that is no comment of the conversation."""
_API = re.compile(r"/api/v\d+$")
_NOTES = "/projects/{path}/merge_requests/{pull}/notes"
_DEVELOPER = 30
_GITLAB_ISSUES = "/projects/{path}/issues"
_ISSUES = "/repos/{path}/issues"
_COMMENTS = f"{_ISSUES}/{{pull}}/comments"
_ONE_ISSUE = f"{_ISSUES}/{{number}}"
_ONE_COMMENT = f"{_ISSUES}/comments/{{number}}"

_GITHUB = Forge(
    pull_ref="refs/pull/{pull}/head",
    authorization=("Authorization", "Bearer {token}"),
    comments=Texts(_COMMENTS, f"{_COMMENTS}?per_page=100&since={{since}}", _ONE_COMMENT),
    issues=Texts(_ISSUES, f"{_ISSUES}?state=all&per_page=100&since={{since}}", _ONE_ISSUE, number="number"),
    turns={"open": {"state": "open"}, "closed": {"state": "closed"}},
    page="/{path}/issues/{number}",
    commit="/{path}/commit/{sha}",
    edit="PATCH",
    statuses="/repos/{path}/statuses/{sha}",
    checks=(("/repos/{path}", _pushes),),
    grant=(
        "Make the bot a collaborator with the role Write, and its token a fine-grained one with Pull requests and "
        "Commit statuses read and write, or a classic one with the scope repo."
    ),
    states={},
    whole_path=False,
    author="login",
    delivery="X-GitHub-Delivery",
    genuine=_by_github,
    read=_of_github,
)
_GITEA = replace(
    _GITHUB,
    authorization=("Authorization", "token {token}"),
    comments=Texts(_COMMENTS, f"{_COMMENTS}?since={{since}}", _ONE_COMMENT),
    issues=Texts(_ISSUES, f"{_ISSUES}?state=all&type=issues&since={{since}}", _ONE_ISSUE, number="number"),
    grant="Make the bot a collaborator with Write, and give its token issue and repository, read and write.",
    delivery="X-Gitea-Delivery",
    genuine=_by_gitea,
    read=_of_gitea,
)
_GITLAB = Forge(
    pull_ref="refs/merge-requests/{pull}/head",
    authorization=("PRIVATE-TOKEN", "{token}"),
    comments=Texts(_NOTES, f"{_NOTES}?per_page=100&sort=desc&order_by=created_at", f"{_NOTES}/{{number}}"),
    issues=Texts(
        _GITLAB_ISSUES,
        f"{_GITLAB_ISSUES}?per_page=100&created_after={{since}}",
        f"{_GITLAB_ISSUES}/{{number}}",
        words="description",
        number="iid",
    ),
    turns={"open": {"state_event": "reopen"}, "closed": {"state_event": "close"}},
    page="/{path}/-/issues/{number}",
    commit="/{path}/-/commit/{sha}",
    edit="PUT",
    statuses="/projects/{path}/statuses/{sha}",
    checks=(("/projects/{path}", _develops), ("/personal_access_tokens/self", _has_scope)),
    grant="Give the bot the role Developer, and its token the scope api.",
    states={"failure": "failed", "error": "failed"},
    whole_path=True,
    author="username",
    delivery="Idempotency-Key",
    genuine=_by_gitlab,
    read=_of_gitlab,
)
FORGES: dict[str, Forge] = {"github": _GITHUB, "gitlab": _GITLAB, "gitea": _GITEA}
