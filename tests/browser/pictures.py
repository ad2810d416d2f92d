# SPDX-License-Identifier: BSD-2-Clause
"""Makes the pictures of submissions in docs/howto/patches.md, of generated patches and results:

./dev test tests/browser/pictures.py
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from perfweb.accounts.actors import Actor
from perfweb.accounts.models import Means, Role, User
from perfweb.runs import progress
from perfweb.runs.models import Run, RunState
from perfweb.submissions import services
from perfweb.submissions.plans import MATRICES
from perfweb.submissions.services import SubmissionRequest
from tests.browser.screenshot import DESKTOP
from tests.browser.sessions import signed_in
from tests.checkouts import Checkout
from tests.factories import create_measurements, create_testbed

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
INPUT = "stack/netinet/tcp_input.c"
HANDOVER = "void\ntcp_input(struct mbuf *m, unsigned hlen)\n{\n"
COMMENTED = f"/* On this CPU, or on that of its connection. */\n{HANDOVER}"
COUNTED = (
    f"static struct mtx tcp_seen_mtx;\nstatic uint64_t tcp_seen;\n\n{HANDOVER}"
    "\tmtx_lock(&tcp_seen_mtx);\n\ttcp_seen++;\n\tmtx_unlock(&tcp_seen_mtx);\n"
)
SERIES = (
    ("tcp: say who handles a segment", HANDOVER, COMMENTED),
    ("tcp: count segments under a lock", HANDOVER, COUNTED),
    ("tcp: begin to count at one", "static uint64_t tcp_seen;", "static uint64_t tcp_seen = 1;"),
)
COSTS = {"patch-2": 0.962, "patch-3": 0.963}
WANTED = SubmissionRequest(testbed="demo", knobs="net.isr.dispatch=direct")


def person(name: str, role: Role) -> Actor:
    return Actor(name, role, Means.PAGE, user=User.objects.create_user(name, role=role))


@pytest.fixture
def checkout(settings: Settings, tmp_path: Path) -> Checkout:
    """Make a repository of the stack, with SERIES on top of its main branch."""
    settings.PATCH_REPOSITORY, settings.PERFWEB_VAR = tmp_path, tmp_path / "var"
    shutil.copytree(ROOT / "stack", tmp_path / "stack")
    made = Checkout(tmp_path)
    made.put(".gitignore", "var\n")
    made.commit("the stack")
    made.git("checkout", "-q", "-b", "series")
    for subject, old, new in SERIES:
        made.put(INPUT, (tmp_path / INPUT).read_text(encoding="utf-8").replace(old, new))
        made.commit(subject)
    made.git("checkout", "-q", "main")
    return made


@pytest.fixture
def submissions(checkout: Checkout, live_server: LiveServer) -> dict[str, int]:
    """Make a submission of each kind, by its name, and the patch that the form is shown with."""
    create_testbed()
    ada, grace = person("ada", Role.MAINTAINER), person("grace", Role.SUBMITTER)
    series = checkout.git("format-patch", "--stdout", "--base=main", "main..series")
    first, second = (checkout.git("format-patch", "--stdout", "-1", f"series~{back}") for back in (2, 1))
    measured = services.submit(ada, series, replace(WANTED, each=True))
    create_measurements(
        measured.runs.get(), MATRICES["tcp-quick"].tests, 0.006, 1, lambda name, _: COSTS.get(name, 1.0)
    )
    conflict = services.submit(grace, second, WANTED)
    waiting = services.submit(grace, first, WANTED)
    running = services.submit(ada, series, replace(WANTED, matrix="quick", title="tcp: count segments, IPv6 too"))
    run = running.runs.get()
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    progress.begin(run.pk)
    progress.publish(run.pk, "boot", position=2, boots=8, variant="patch", topology="host-host", server="netserver")
    progress.publish(run.pk, "eta", seconds=310, fraction=0.31)
    return {"measured": measured.pk, "conflict": conflict.pk, "waiting": waiting.pk, "running": running.pk}


@pytest.fixture
def desktop(own_page: Page, live_server: LiveServer, submissions: dict[str, int]) -> Page:
    """A page as a maintainer sees it."""
    own_page.set_viewport_size(DESKTOP)
    signed_in(own_page, live_server, User.objects.get(username="ada"))
    return own_page


def test_form(desktop: Page, live_server: LiveServer, checkout: Checkout) -> None:
    desktop.goto(f"{live_server.url}/submissions/new/")
    estimate(desktop, checkout)
    desktop.screenshot(path=IMAGES / "form.png")


def test_queue(desktop: Page, live_server: LiveServer) -> None:
    desktop.goto(f"{live_server.url}/submissions/")
    desktop.screenshot(path=IMAGES / "queue.png")


def test_submission(desktop: Page, live_server: LiveServer, submissions: dict[str, int]) -> None:
    desktop.goto(f"{live_server.url}/submissions/{submissions['measured']}/")
    desktop.screenshot(path=IMAGES / "submission.png")


def estimate(page: Page, checkout: Checkout) -> None:
    """Show the form's preview of a patch that was not submitted yet."""
    page.locator("[name=text]").fill(checkout.git("format-patch", "--stdout", "--base=main", "main..series~1").decode())
    page.locator("[name=examine]").click()
    page.get_by_role("status").wait_for()
