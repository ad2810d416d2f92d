# SPDX-License-Identifier: BSD-2-Clause
"""A site with some object of every kind, users of every role, and objects that only some of them may see."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from perfweb.accounts import audit
from perfweb.accounts.actors import Actor, on_server
from perfweb.accounts.models import Identity, Means, Role, Scope, Token, User
from perfweb.accounts.permissions import Action
from perfweb.accounts.tokens import issue
from perfweb.builds.models import Mirror
from perfweb.forges import secrets
from perfweb.forges.models import Delivery, ForgeName, Project
from perfweb.lab.models import OutageKind
from perfweb.lab.outages import begin
from perfweb.mail.models import Address, Posting, Series
from perfweb.outbox.services import post
from perfweb.runs.models import Artefact, Run, RunState
from perfweb.runs.summaries import summarise
from perfweb.submissions import services
from perfweb.submissions.models import Submission
from perfweb.tracking.alerts.addresses import sign
from perfweb.tracking.history import refresh
from perfweb.tracking.models import Alert, AlertAddress, Movement
from perfweb.tracking.services import BranchRequest, track
from perfweb.tracking.states import confirm
from tests.checkouts import Checkout
from tests.factories import DEMO_TESTS, PLAN_TEXT, create_plan, create_queued_run, create_run, create_testbed
from tests.unit.accounts.conftest import PASSWORD

ANONYMOUS = "anonymous"
ROLES = {
    "reader": Role.READER,
    "author": Role.SUBMITTER,
    "submitter": Role.SUBMITTER,
    "maintainer": Role.MAINTAINER,
    "admin": Role.ADMIN,
}
"""`author` has made all submissions; `submitter` may submit, too."""
WANTED = services.SubmissionRequest(testbed="demo", matrix="tcp-quick", knobs="")
TRACKED_PLAN = """\
name: head
variants: [{name: direct, target: stack, source: commit}]
baseline: direct
tests: [tcp.rr/host-host/ipv4]
"""
READS_LOG = {"maintainer", "admin"}


@dataclass
class Site:
    """The objects and the users."""

    checkout: Checkout
    users: dict[str, User] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    private: dict[str, set[str]] = field(default_factory=dict)
    """Texts, and the users that may find them in a response."""

    def furnish(self) -> None:
        self.run = create_run(tests=DEMO_TESTS[:2])
        summarise([self.run.pk])
        for name, role in ROLES.items():
            self._settle(name, role)
        Token.objects.update(used=timezone.now() + timedelta(hours=1))  # times to the minute are stored already
        self.waiting = self._submit("five")
        self.approved = self._submit("six")
        services.approve(self._actor("maintainer"), self.approved.number)
        self.approved.runs.update(state=RunState.DONE)
        self.queued = create_queued_run()
        repeatable = create_plan(f"{PLAN_TEXT}tests: [{DEMO_TESTS[0]}]\n")
        Run.objects.filter(pk=self.queued.pk).update(requested_by="author", plan=repeatable)
        self.resting = create_testbed("resting")
        begin(self.resting, OutageKind.MAINTENANCE, "new cables", "maintainer")
        self.unsent = self._diff("seven")
        self.alert = self._tracked()
        self._confide()

    def place(self, address: str) -> str:
        """An address with existing objects."""
        return address.format(**self.values(address)) + self.query(address)

    def values(self, address: str) -> dict[str, Any]:
        """The variables of an address, for existing objects."""
        run, test = self.run.pk, DEMO_TESTS[0]
        values: dict[str, Any] = {
            "a": "deferred", "b": "direct", "variant": "direct", "test": test, "form": "csv", "number": run,
            "name": "demo", "sha256": self.run.plan.sha256, "uidb64": "MQ", "token": "x-y", "document": "glossary",
        }  # fmt: skip
        if "/submissions/" in address:
            values["number"] = (self.approved if "rerun" in address else self.waiting).number
        elif "/alerts/" in address:
            values["number"] = self.alert.number
        elif "/cancel" in address or "/again" in address:
            values["number"] = self.queued.pk
        elif address.endswith("/back"):
            values["name"] = self.resting.name
        if address.startswith("/alerts/"):
            values["token"] = sign(address.split("/")[2], self.users["author"].pk, "author@alerts.example")
        keys = {"artefacts": Artefact.objects.earliest("pk").pk, "tokens": self.token.pk, "unlink": self.identity.pk}
        values["key"] = next((key for part, key in keys.items() if f"/{part}/" in address), "github")
        named = {"topics": "tcp", "forges": "on-github", "tracking": "head"}
        values["name"] = "head" if "/tracked-branches/" in address else named.get(address.split("/")[1], values["name"])
        return values

    def query(self, address: str) -> str:
        """Further parameters that an address requires."""
        run, test = self.run.pk, DEMO_TESTS[0]
        query = {
            "/search/": "?q=direct", "/alerts/watch/": "?branch=head", "/api/v1/series": f"?test={test}",
            "/api/v1/summaries": f"?test={test}",
        }  # fmt: skip
        if address.startswith(("/compare/", "/api/v1/comparisons")):
            query[address] = f"?base={run}/deferred&with={run}/direct"
        return query.get(address, "")

    def sent(self, address: str) -> dict[str, Any]:
        """The content of a request that changes something."""
        patch = self.unsent.decode()
        new = {"new_password1": "a much better one", "new_password2": "a much better one"}
        forms: dict[str, dict[str, Any]] = {
            "/account/sign-in/": {"username": "reader", "password": PASSWORD},
            "/account/password/": {"old_password": PASSWORD, **new},
            "/account/tokens/": {"name": "new", "scope": 1, "days": 7},
            "/submissions/new/": {
                "text": patch,
                "matrix": "tcp-quick",
                "testbed": "demo",
                "base": "HEAD",
                "submit": "",
            },
            "/submissions/{number}/refuse/": {"reason": "no"},
            "/testbeds/{name}/service/": {"why": "new cables"},
            "/alerts/{number}/update/": {"state": "acknowledged", "text": "seen"},
            "/api/v1/testbeds/{name}/maintain": {"why": "new cables"},
            "/api/v1/submissions": {"patch": patch, "testbed": "demo"},
            "/api/v1/submissions/{number}/refuse": {"reason": "no"},
        }
        return forms.get(address, {})

    def _settle(self, name: str, role: Role) -> None:
        """A user with a session and a token."""
        user = User.objects.create_user(name, f"{name}@private.example", PASSWORD, role=role)
        token, secret = issue(user, f"token-of-{name}", Scope.MAINTAIN, days=1)
        browser = Client()
        browser.force_login(user)
        self.users[name], self.tokens[name] = user, secret
        self.sessions[name] = browser.cookies["sessionid"].value
        self.private |= {user.email: {name}, token.name: {name}}
        self.private |= {text: set() for text in (user.password, token.digest, secret, self.sessions[name])}
        identity = Identity.objects.create(
            user=user, issuer="https://github.com", subject=name, name=f"{name}-elsewhere"
        )
        self.private[identity.name] = {name}
        if name == "author":
            self.token, self.identity = token, identity

    def _actor(self, name: str) -> Actor:
        return Actor(name, ROLES[name], Means.PAGE, user=self.users[name])

    def _diff(self, name: str) -> bytes:
        self.checkout.edit("stack/net/if.c", lambda text: text.replace("line5;", f"{name};"))
        return self.checkout.diff()

    def _submit(self, name: str) -> Submission:
        return services.submit(self._actor("author"), self._diff(name), WANTED)

    def _tracked(self) -> Alert:
        """A tracked branch with a confirmed alert."""
        branch = track(on_server(), BranchRequest(name="head", plan=TRACKED_PLAN, testbed="demo"))
        refresh(branch, timezone.now())
        [commit] = branch.commits.all()
        alert = Alert.objects.create(branch=branch, since=commit, until=commit)
        Movement.objects.create(alert=alert, variant="direct", test=DEMO_TESTS[0], better=False, suspected=-7.0)
        return confirm(alert.number, "It was seen again.")

    def _confide(self) -> None:
        """Texts that are in the database, but on no page of most users."""
        audit.record(on_server(), Action.IMPORT, "line-of-the-log")
        project = Project.objects.create(
            mirror=Mirror.objects.create(name="on-github", url=str(self.checkout.tree)), forge=ForgeName.GITHUB,
            api="http://127.0.0.1:9", path="net/stack", login="bot", testbed=self.run.testbed,
            account=self.users["submitter"],
        )  # fmt: skip
        secrets.make(project)
        Delivery.objects.create(project=project, identifier="1", digest="2", event={"body": "text-of-a-delivery"})
        post("forge:on-github", "comment 1", {"body": "text-of-a-letter"})
        Address.objects.create(user=self.users["author"], address="author@mail.private.example")
        AlertAddress.objects.create(user=self.users["author"], address="author@alerts.example")
        series = Series.objects.create(sender="stranger@mail.private.example")
        Posting.objects.create(
            series=series, message_id="<1@private.example>", related=[], subject="subject-of-a-mail", title="title",
            mbox=b"text-of-a-mail",
        )  # fmt: skip
        nobodys = (
            "text-of-a-delivery", "text-of-a-letter", "mail.private.example", "subject-of-a-mail", "text-of-a-mail",
            secrets.webhook_secret(project),
        )  # fmt: skip
        self.private |= {text: set() for text in nobodys}
        self.private["line-of-the-log"] = READS_LOG
