# SPDX-License-Identifier: BSD-2-Clause
"""A project on each kind of forge, whose pull request 1 changes a line of the stack."""

import base64
import copy
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from perfweb.accounts.models import Role, User
from perfweb.builds.models import Mirror
from perfweb.forges import secrets
from perfweb.forges.models import CommentRequest, Member, Project
from perfweb.forges.services import act_on_all
from perfweb.forges.table import FORGES
from tests.checkouts import Checkout
from tests.factories import create_testbed
from tests.unit.accounts.conftest import forget_limits
from tests.unit.forges.peer import DATA, LOGIN, TOKEN, Peer

PATH = {"github": "Codertocat/Hello-World", "gitlab": "net/stack", "gitea": "net/stack"}
AUTHOR = {"github": ("Codertocat", 21031067), "gitlab": ("ada", 21), "gitea": ("ada", 21)}
"""The author of the pull request, by name and number."""


def example(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def commented(kind: str, text: str, login: str = "", person: int = 0, number: int = 0) -> dict[str, Any]:
    """The webhook of a comment; GitHub's example is about an issue, and a pull request is an issue with this field."""
    name, own = AUTHOR[kind]
    if kind == "gitlab":
        payload = example("gitlab-note")
        payload["object_attributes"].update(note=text, id=number or 1244)
        payload["user"].update(username=login or name, id=person or own)
        return payload
    payload = example("github-issue_comment.created" if kind == "github" else "gitea-issue_comment")
    payload["issue"]["pull_request"] = {"url": "https://api.github.com/repos/Codertocat/Hello-World/pulls/1"}
    payload["comment"].update(body=text, id=number or 1244)
    payload["comment"]["user"].update(login=login or name, id=person or own)
    return payload


def headers(kind: str, body: bytes, secret: str, delivery: str = "", event: str = "comment") -> dict[str, str]:
    """The headers of a forge's delivery."""
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    delivery = delivery or hashlib.sha256(body).hexdigest()[:36]
    if kind == "gitlab":
        return {"X-Gitlab-Event": "Note Hook", "X-Gitlab-Token": secret, "Idempotency-Key": delivery}
    name = "issue_comment" if event == "comment" else "pull_request"
    if kind == "github":
        fields = {"X-GitHub-Event": name, "X-GitHub-Delivery": delivery, "X-Hub-Signature-256": f"sha256={signature}"}
    else:
        fields = {"X-Gitea-Event": name, "X-Gitea-Delivery": delivery, "X-Gitea-Signature": signature}
    return fields


ADA = {"id": 21, "login": "ada"}
PULL = {"number": 1, "title": "Faster", "state": "open", "user": ADA, "updated_at": "2026-11-28T10:00:00Z"}
HELP = "Please look.\n\n/perf help\n"
_GITHUB_TEXTS: list[tuple[str, dict[str, Any]]] = [
    ("pull_request", {"action": "opened", "pull_request": PULL | {"id": 5, "body": HELP}}),
    ("pull_request_review", {"action": "submitted", "review": {"id": 6, "body": HELP, "user": ADA}}),
    ("pull_request_review_comment", {"action": "created", "comment": {"id": 7, "body": HELP, "user": ADA}}),
]
_GITEA_TEXTS: list[tuple[str, dict[str, Any]]] = [
    _GITHUB_TEXTS[0],
    ("pull_request_comment", {"action": "reviewed", "review": {"content": HELP}, "sender": ADA}),
    ("pull_request_approved", {"action": "reviewed", "review": {"content": HELP}, "sender": ADA}),
    ("pull_request_rejected", {"action": "reviewed", "review": {"content": HELP}, "sender": ADA}),
]
TEXTS = [("github", *one) for one in _GITHUB_TEXTS] + [("gitea", *one) for one in _GITEA_TEXTS]
"""Requests that are no comment of the conversation: the forge, the event, and what its payload has beside PULL."""
EVENT_HEADER = {"github": "X-GitHub-Event", "gitea": "X-Gitea-Event"}


def text_of_pull(given: dict[str, Any], path: str) -> dict[str, Any]:
    """The payload of one of TEXTS."""
    return copy.deepcopy({"pull_request": PULL, "repository": {"full_name": path}, **given})


def opened_on_gitlab() -> dict[str, Any]:
    """The payload of a new merge request with a request in its description."""
    payload = example("gitlab-merge_request")
    payload["object_attributes"].update(action="open", description=HELP)
    payload["object_attributes"].pop("oldrev", None)
    return payload


def signed_for_gitlab(body: bytes, secret: str, at: float | None = None) -> dict[str, str]:
    """GitLab's newer signature."""
    when = str(int(time.time() if at is None else at))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, b"id1." + when.encode() + b"." + body, "sha256")
    return {
        "Webhook-Id": "id1",
        "Webhook-Timestamp": when,
        "Webhook-Signature": "v1,other v1," + base64.b64encode(digest).decode(),
    }


@dataclass
class Bot:
    """A project, its forge, and the repository behind it."""

    project: Project
    peer: Peer
    checkout: Checkout
    client: Client

    @property
    def kind(self) -> str:
        return self.project.forge

    def deliver(self, payload: dict[str, Any], **options: str) -> int:
        """Deliver a webhook; return the status of the response."""
        body = json.dumps(payload).encode()
        signed = headers(self.kind, body, secrets.webhook_secret(self.project), **options)
        return int(self.post(body, signed).status_code)

    def post(self, body: bytes, signed: dict[str, str]) -> Any:
        return self.client.post(
            f"/forges/{self.project}/webhook", body, content_type="application/json", headers=signed
        )

    def comment(self, text: str, login: str = "", person: int = 0) -> CommentRequest | None:
        """Comment on the pull request, and handle it."""
        number = 1000 + CommentRequest.objects.count()
        assert self.deliver(commented(self.kind, text, login, person, number)) == 202
        act_on_all()
        return CommentRequest.objects.filter(comment=number).first()

    def know(self, role: Role, login: str = "") -> User:
        """Link a forge user to a local account."""
        user, _ = User.objects.get_or_create(username=role.label, defaults={"role": role})
        Member.objects.create(project=self.project, login=login or AUTHOR[self.kind][0], user=user)
        return user

    def push(self, name: str) -> str:
        """Another head of pull request 1."""
        self.checkout.edit("stack/net/if.c", lambda text: text.replace("line5;", f"{name};"))
        sha = self.checkout.commit(f"net: name {name}")
        self.checkout.git("update-ref", FORGES[self.kind].pull_ref.format(pull=1), sha)
        self.checkout.git("reset", "-q", "--hard", "HEAD~1")
        return sha


Making = Callable[[str], Bot]


@pytest.fixture
def bot_on(checkout: Checkout, settings: Settings, tmp_path: Path, client: Client, db: None) -> Iterator[Making]:
    settings.PERFWEB_VAR = tmp_path / "var"
    settings.FORGE_SECRETS = tmp_path / "var" / "forges"
    forget_limits()
    peers = []

    def make(kind: str) -> Bot:
        peers.append(peer := Peer(kind))
        account, _ = User.objects.get_or_create(username="strangers", defaults={"role": Role.SUBMITTER})
        project = Project.objects.create(
            mirror=Mirror.objects.create(name=f"on-{kind}", url=str(checkout.tree)),
            forge=kind, api=peer.url, path=PATH[kind], login=LOGIN, testbed=create_testbed(), account=account,
        )  # fmt: skip
        secrets.make(project)
        secrets.token_file(project).write_text(TOKEN)
        made = Bot(project, peer, checkout, client)
        made.push("five")
        return made

    yield make
    for peer in peers:
        peer.stop()
        assert peer.complaints == []


@pytest.fixture(params=sorted(FORGES))
def bot(bot_on: Making, request: pytest.FixtureRequest) -> Bot:
    return bot_on(request.param)


@pytest.fixture
def github(bot_on: Making) -> Bot:
    return bot_on("github")
