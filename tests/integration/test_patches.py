# SPDX-License-Identifier: BSD-2-Clause
"""Patches by each interface, to their verdict and to the response by that interface."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.test import Client
from perfctl.commands import run_command
from pytest_django import Settings

from perfweb.accounts.models import Role, Scope, User
from perfweb.accounts.tokens import issue
from perfweb.builds.models import Mirror
from perfweb.forges import secrets
from perfweb.forges.following import follow
from perfweb.forges.models import Member, Project
from perfweb.forges.table import FORGES
from perfweb.lab.models import Testbed
from perfweb.mail.models import Address
from perfweb.mail.series import attend
from perfweb.outbox.services import deliver
from perfweb.runs.models import Run, RunState
from perfweb.submissions import services
from perfweb.submissions.models import Submission
from perfweb.submissions.plans import MATRICES, Matrix, plan_text
from tests.checkouts import Checkout
from tests.integration.conftest import ROOT, LabHosts, wait_for_state
from tests.integration.workers import BUILD_SECONDS
from tests.unit.forges.conftest import AUTHOR, PATH, Bot
from tests.unit.forges.peer import LOGIN, TOKEN, Peer
from tests.unit.mail.conftest import OWN, SENDER, SERVER, SIGNED, posted, receive_all

pytestmark = [
    pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("lasting_worker"),
    pytest.mark.timeout(BUILD_SECONDS + 300),
]  # fmt: skip
INPUT = "stack/netinet/tcp_input.c"
BEGIN = "void\ntcp_input(struct mbuf *m, unsigned hlen)\n{\n"
# Once it would cost some 20 ns of a round trip of 30 us, which eight samples cannot detect.
LOCK = "\tfor (int i = 0; i < 100000; i++) {\n\t\tmtx_lock(&arriving);\n\t\tmtx_unlock(&arriving);\n\t}\n"
SMALL = Matrix("tcp-quick", "one test, so that it is over soon", ("tcp.rr/host-host/ipv4",), samples=8)
SLOWER = "patch-2 against base"


def unoptimised(*values: Any, **more: Any) -> str:
    """A submission's plan without slow optimisation."""
    return plan_text(*values, **more).replace("-Dbuildtype=release", "-Dbuildtype=debug")


def ungated(*values: Any, **more: Any) -> str:
    """A submission's plan for a machine on which other tests run, too."""
    return f"{unoptimised(*values, **more)}gates: off\n"


@dataclass
class Ways:
    """A maintainer's page and token, and a series of two patches of the stack in every format."""

    page: Client
    patch: str
    plan: str
    mails: list[bytes]
    bot: Bot
    site: str
    token: str

    def by_form(self, testbed: str) -> Submission:
        wanted = {"text": self.patch, "matrix": SMALL.name, "testbed": testbed, "each": "on", "submit": ""}
        answer = self.page.post("/submissions/new/", wanted)
        assert answer.status_code == 302, answer.content.decode()
        return Submission.objects.get()

    def by_api(self, testbed: str) -> str:
        wanted = {"patch": self.patch, "testbed": testbed, "each": True}
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = Client().post("/api/v1/submissions", wanted, content_type="application/json", headers=headers)
        return str(answer.json()["detail"])


@pytest.fixture
def ways(
    testbed: Testbed,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> Iterator[Ways]:
    monkeypatch.setitem(MATRICES, SMALL.name, SMALL)
    monkeypatch.setattr(services, "plan_text", ungated)
    repository = tmp_path / "repository"
    settings.PATCH_REPOSITORY, settings.FORGE_SECRETS = repository, tmp_path / "forges"
    settings.MAIL_ADDRESS, settings.MAIL_AUTHSERV_ID, settings.MAIL_TESTBED = OWN, SERVER, testbed.name
    user = User.objects.create(username="ada", role=Role.MAINTAINER)
    Address.objects.create(user=user, address=SENDER)
    token = issue(user, "laptop", Scope.MAINTAIN, 1)[1]
    for name, value in (("PERFCTL_TOKEN", token), ("PERFWEB_REPOSITORY", str(repository))):
        monkeypatch.setenv(name, value)
    page = Client()
    page.force_login(user)
    checkout = series_of_the_stack(repository)
    patch = checkout.git("format-patch", "--stdout", "--base=HEAD~2", "HEAD~2").decode()
    checkout.git("update-ref", FORGES["github"].pull_ref.format(pull=1), "HEAD")
    mails = posted(checkout, 2, asking="perf: tcp quick each")
    plan = ungated(SMALL, "series", "a series", {}, 2, each=True)
    bot = Bot(project(repository, testbed, user, peer := Peer("github")), peer, checkout, Client())
    yield Ways(page, patch, plan, mails, bot, request.getfixturevalue("asgi_server"), token)
    peer.stop()
    assert peer.complaints == []


def series_of_the_stack(tree: Path) -> Checkout:
    """A repository with a change of white space, and then a lock on the receive path."""
    tree.mkdir()
    checkout = Checkout(tree)
    shutil.copytree(ROOT / "stack", tree / "stack")
    checkout.commit("the stack")
    checkout.edit(INPUT, lambda text: text + "\n")
    checkout.commit("tcp: end with an empty line")
    checkout.edit(INPUT, lambda text: text.replace(BEGIN, f"static struct mtx arriving;\n\n{BEGIN}{LOCK}"))
    checkout.commit("tcp: take a lock for each segment")
    return checkout


def project(repository: Path, testbed: Testbed, user: User, peer: Peer) -> Project:
    mirror = Mirror.objects.create(name=f"github-{testbed.name}", url=str(repository))
    made = Project.objects.create(
        mirror=mirror, forge="github", api=peer.url, path=PATH["github"], login=LOGIN, testbed=testbed, account=user
    )
    Member.objects.create(project=made, login=AUTHOR["github"][0], user=user)
    secrets.make(made)
    secrets.token_file(made).write_text(TOKEN)
    return made


def answers(mailoutbox: list[EmailMessage]) -> list[str]:
    """Run the messenger; return its present messages to the authors of mails and comments."""
    attend()
    follow()
    deliver()
    return [str(mail.body) for mail in mailoutbox]


def verdicts(run: Run, variant: str, confidence: float = 95) -> set[str]:
    """Return the API's verdict on a variant against the base."""
    compared = Client().get(f"/api/v1/runs/{run.number}/comparisons?confidence={confidence}").json()["items"]
    return {test["verdict"] for one in compared if one["other"].endswith(f"/{variant}") for test in one["tests"]}


def test_series_is_measured_patch_by_patch_whichever_way_it_comes(
    ways: Ways, testbed: Testbed, hosts: LabHosts, tmp_path: Path, mailoutbox: list[EmailMessage],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Measure the first submission; the others with the same content get its result."""
    submission = ways.by_form(testbed.name)
    there = f"Submission {submission.number} by ada has the same patch, base, plan and testbed."
    assert there in ways.by_api(testbed.name)
    patch, plan = tmp_path / "series.mbox", tmp_path / "series.yml"
    patch.write_text(ways.patch)
    plan.write_text(ways.plan)
    perfctl = ["--server", ways.site]
    assert run_command([*perfctl, "submit", str(patch), "--testbed", testbed.name, "--plan", str(plan)]) == 2
    assert there in capsys.readouterr().err
    receive_all([SIGNED + mail for mail in ways.mails])
    ways.bot.comment("/perf run tcp each")
    [received] = answers(mailoutbox)
    page = f"/submissions/{submission.number}/"
    assert page in received
    assert page in ways.bot.peer.comments[100]
    assert Submission.objects.get() == submission

    run = Run.objects.get()
    wait_for_state(run, RunState.DONE, RunState.FAILED, seconds=BUILD_SECONDS)
    assert (run.state, run.reason) == (RunState.DONE, "")
    hosts.assert_clean(run)

    assert f"{SLOWER}</a>: 1 slower<" in Client().get(page).content.decode()
    assert run_command([*perfctl, "submission", str(submission.number)]) == 0
    assert f"run {run.number} is done" in capsys.readouterr().out
    assert verdicts(run, "patch-2") == {"slower"}
    # Among a hundred patches without an effect five seem to have one, at 95 %: the comment may have "and faster".
    assert verdicts(run, "patch-1", confidence=99.5) in ({"equivalent"}, {"not enough data"})
    _, result = answers(mailoutbox)
    assert f"Slower: 1 slower ({SLOWER})" in " ".join(result.split())
    assert re.match(r"\*\*Slower( and faster)?: ", ways.bot.peer.comments[100])
    assert ways.bot.peer.statuses[-1]["state"] == "failure"
