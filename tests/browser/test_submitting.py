# SPDX-License-Identifier: BSD-2-Clause
"""The form for a patch, and the pages of a patch that does not build."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from perfweb.accounts.models import Role, User
from perfweb.builds.models import Build, BuildState
from perfweb.lab.origins import Origin
from perfweb.runs.models import Run, RunState, Variant
from perfweb.submissions.models import SubmissionState
from tests.browser.sessions import signed_in
from tests.browser.test_every_page import accessible_and_fits
from tests.factories import create_queued_run, create_submission, create_testbed

SOURCE_LINE = "\tskb->csum_start = skb_transport_header(skb) - skb->head + missing_offset(skb, sizeof(struct tcphdr));"
BUILD_LOG = f"""\
net/ipv4/tcp_output.c:7:8: warning: unused variable 'five' [-Wunused-variable]
net/ipv4/tcp_output.c:1207:61: error: implicit declaration of function 'missing_offset'
 1207 | {SOURCE_LINE}
      | {"^".rjust(61)}
make: *** Error 2
"""


@pytest.mark.django_db(transaction=True)
def test_form_offers_the_tests_of_the_chosen_testbed(watched_page: Page, live_server: LiveServer) -> None:
    create_testbed()
    create_testbed("sim", origin=Origin.SIMULATED)
    page = watched_page
    signed_in(page, live_server, User.objects.create_user("ann", role=Role.SUBMITTER))
    page.goto(f"{live_server.url}/submissions/new/?matrix=udp-quick")
    tests = page.get_by_label("Tests:")
    expect(tests).to_have_value("udp-quick")
    expect(tests.locator("optgroup:not([hidden]) option")).to_have_count(6)
    page.get_by_label("Testbed:").select_option("sim")
    expect(tests).to_have_value("sim")
    page.get_by_label("Testbed:").select_option("demo")
    expect(tests).to_have_value("tcp-quick")
    accessible_and_fits(page, page.url)


@pytest.mark.django_db(transaction=True)
def test_pages_of_a_patch_that_does_not_build(own_page: Page, live_server: LiveServer) -> None:
    run = create_queued_run(create_testbed("counted", origin=Origin.COUNTED))
    build = Build.objects.create(key="1" * 32, source_sha256="1" * 64, state=BuildState.FAILED, log=BUILD_LOG)
    Variant.objects.create(run=run, name="base", position=0, baseline=True, target="linux")
    Variant.objects.create(run=run, name="patch", position=1, target="linux", build=build)
    Run.objects.filter(pk=run.pk).update(state=RunState.FAILED, reason="a build failed")
    submission = create_submission(SubmissionState.APPROVED)
    submission.runs.add(run)
    main = own_page.get_by_role("main")
    for address in (f"/runs/{run.pk}/", f"/submissions/{submission.number}/"):
        accessible_and_fits(own_page, live_server.url + address)
        expect(main).to_contain_text("implicit declaration of function 'missing_offset'")
    expect(main).to_contain_text("unused variable 'five'")
