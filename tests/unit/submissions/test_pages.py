# SPDX-License-Identifier: BSD-2-Clause
"""The form, the list and the page of a submission, for users with and without permission."""

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from perfweb.accounts.actors import Actor
from perfweb.accounts.models import Entry, Role, User
from perfweb.builds.mirrors import FetchError
from perfweb.builds.models import Mirror
from perfweb.lab.models import Testbed
from perfweb.lab.origins import Origin
from perfweb.runs.models import Run, RunState
from perfweb.stats.comparison import Verdict
from perfweb.submissions import services
from perfweb.submissions.models import Submission, SubmissionState
from perfweb.submissions.more import more
from perfweb.submissions.plans import MATRICES
from perfweb.verdicts.wording import css_name
from tests.checkouts import Checkout
from tests.factories import create_measurements, create_run, create_submission, create_testbed
from tests.silent import SilentServer
from tests.unit.imports.test_counted import ROUND_TRIP, document, imported
from tests.unit.pages import page, text_of
from tests.unit.submissions.conftest import WANTED, five

pytestmark = pytest.mark.django_db
FIELDS = {"matrix": "tcp-quick", "testbed": "demo", "knobs": "", "base": "HEAD", "title": ""}


def signed_in(actor: Actor) -> Client:
    client = Client()
    assert actor.user is not None
    client.force_login(actor.user)
    return client


def test_estimate_before_anything_is_kept(author: Actor, diff: bytes) -> None:
    answer = signed_in(author).post("/submissions/new/", {**FIELDS, "text": diff.decode(), "examine": ""})
    text = answer.content.decode()
    assert answer.status_code == 200
    assert "Measuring it takes about" in text
    assert "8: base, patch, patch, base, base, patch, patch, base" in text
    assert "tcp.crr/host-host/ipv4; 4 samples of each" in text
    assert "stack/net/if.c</code> +1 " in text
    assert "+int five;" in text
    assert not Submission.objects.exists()


def test_counted_result_names_the_functions_that_differ(author: Actor, diff: bytes, tmp_path: Path) -> None:
    """Also those whose loads are equivalent within the margin."""
    number = services.submit(author, diff, WANTED).number
    address = f"/submissions/{number}/"
    Submission.objects.get().runs.add(imported(tmp_path, document(401, 2, 90)))
    answer = page(Client(), address)
    words = f"1 more, 0 fewer, 1 equal loads; tcp_v4_rcv +1.0000 instructions in {ROUND_TRIP}"
    assert f"patched against base, by function : {words}" in text_of(answer)
    assert "compare/base..patched/#functions" in answer
    Submission.objects.get().runs.set([create_run(tests=["tcp.rr/host-host/ipv4"])])
    assert "by function" not in page(Client(), address)


def test_address_of_the_form_has_all_choices_but_the_patch(author: Actor, topic: str) -> None:
    client = signed_in(author)
    create_testbed("sim", origin=Origin.SIMULATED)
    chosen = {
        **FIELDS, "testbed": "sim", "matrix": "sim", "knobs": "unix.locking=pair\nfd.lock=mutex", "base": "main",
        "title": "Locks & more", "each": "on", "ref": topic, "repository": "theirs",
    }  # fmt: skip
    answer = client.post("/submissions/new/", {**chosen, "examine": ""})
    link = re.search(r'href="(\?[^"]*)">Address of this form', answer.content.decode())
    assert link is not None
    form = client.get("/submissions/new/" + html.unescape(link[1])).context["form"]
    found = {name: form[name].initial for name in chosen}
    assert found == {**chosen, "each": True}
    assert client.get("/submissions/new/?testbed=nowhere").status_code == 400
    assert client.get("/submissions/new/?matrix=tcp").status_code == 400


def test_only_tests_are_offered_that_a_testbed_measures(author: Actor) -> None:
    names = re.findall(r'<option value="([\w-]+)"', page(signed_in(author), "/submissions/new/"))
    assert {"demo", "tcp-quick", "full"} < set(names)
    assert "sim" not in names
    Testbed.objects.update(inventory="")
    assert "No testbed measures yet" in page(signed_in(author), "/submissions/new/")


def test_file_of_the_estimate_is_there_to_be_submitted(author: Actor, diff: bytes) -> None:
    file = SimpleUploadedFile("a.diff", diff)
    answer = signed_in(author).post("/submissions/new/", {**FIELDS, "file": file, "examine": ""})
    assert "+int five;" in answer.content.decode()


def test_branch_of_a_registered_repository(author: Actor, topic: str) -> None:
    client, named = signed_in(author), {**FIELDS, "base": "", "ref": topic, "repository": "theirs"}
    assert '<option value="theirs">theirs</option>' in client.get("/submissions/new/").content.decode()
    assert "Measuring it takes about" in client.post("/submissions/new/", {**named, "examine": ""}).content.decode()
    answer = client.post("/submissions/new/", {**named, "submit": ""}, follow=True)
    assert "</code> of theirs</span>" in answer.content.decode()


@pytest.mark.parametrize("base", ["", "release"])
def test_branch_is_never_an_old_one(author: Actor, topic: str, repository: Checkout, base: str) -> None:
    repository.git("branch", "release")
    wanted = replace(WANTED, base=base, ref=topic, mirror="theirs")
    assert b"+int five;" in services.examine(author, b"", wanted).patch
    repository.put_malformed_branch("broken")
    repository.git("checkout", "-q", topic)
    repository.edit("stack/net/if.c", lambda text: text.replace("five;", "newest;"))
    repository.commit("net: name newest")
    repository.git("checkout", "-q", "main")
    assert b"+int newest;" in services.examine(author, b"", wanted).patch
    repository.put_malformed_branch(topic)
    with pytest.raises(FetchError):
        services.examine(author, b"", wanted)


def test_form_reports_a_repository_that_does_not_answer(
    author: Actor, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfweb.builds.mirrors.PAGE_SECONDS", 1.0)
    monkeypatch.setattr("perfweb.builds.mirrors.RESTS", 600.0)
    client, named = signed_in(author), {**FIELDS, "base": "", "ref": topic, "repository": "theirs", "submit": ""}
    with SilentServer() as server:
        Mirror.objects.update(url=f"{server.url}/x.git")
        for words in ("longer than 1 s: it is too large, or slow", "slow; the next attempt is possible in"):
            assert words in client.post("/submissions/new/", named).content.decode()
        assert server.connections == 1
    assert not Submission.objects.exists()


BOOTING = """\
name: booting
baseline: base
variants:
  - {name: base, target: stack, source: base}
  - {name: patch, target: stack, source: patch}
  - name: own
    target: linux
    tunables: {left.link.mtu: 1400, net.ipv4.tcp_sack: 0, boot.command_line: mitigations=off}
tests: [tcp.rr/host-host/ipv4]
"""


def test_approval_shows_what_a_plan_changes_of_the_hosts(author: Actor, maintainer: Actor) -> None:
    number = create_submission(plan=BOOTING).number
    text = signed_in(maintainer).get(f"/submissions/{number}/actions/").content.decode()
    table = text[text.index("<tbody>") : text.index("</tbody>")]
    cells = re.findall(r"<td[^>]*>(?:<code>)?([^<]*)", table)
    assert cells == [
        "own", "dut", "boot.command_line", "mitigations=off",
        "own", "left", "link.mtu", "1400",
        "own", "dut", "net.ipv4.tcp_sack", "0",
    ]  # fmt: skip
    labels = re.findall(r'<td[^>]* data-label="(\w+)"', table)
    assert labels == ["variant", "host", "setting", "value"] * 3, "a telephone shows no column heads"
    assert text.index("boot.command_line") < text.index("Approve patch")
    assert "boot.command_line" not in signed_in(author).get(f"/submissions/{number}/actions/").content.decode()
    plain = create_submission().number
    assert "changes no host settings" in signed_in(maintainer).get(f"/submissions/{plain}/actions/").content.decode()


def test_a_plan_with_words_that_are_refused_is_not_submitted(author: Actor, diff: bytes) -> None:
    wanted = replace(WANTED, plan=BOOTING.replace("mitigations=off", "init=/x"))
    with pytest.raises(services.PROBLEMS, match="is refused on every testbed"):
        services.submit(author, diff, wanted)


def test_submitting_leads_to_its_page(author: Actor, diff: bytes) -> None:
    client = signed_in(author)
    pasted = diff.decode().replace("\n", "\r\n")  # as a browser sends it
    answer = client.post("/submissions/new/", {**FIELDS, "text": pasted, "submit": ""})
    submission = Submission.objects.get()
    assert answer.headers["Location"] == f"/submissions/{submission.number}/"
    assert "waiting for approval" in client.get(answer.headers["Location"]).content.decode()
    text = client.get(f"{answer.headers['Location']}actions/").content.decode()
    assert "Cancel</button>" in text
    assert "Approve" not in text
    assert f'href="/submissions/{submission.number}/"' in client.get("/submissions/").content.decode()
    again = client.post("/submissions/new/", {**FIELDS, "text": pasted, "submit": ""})
    assert f'href="/submissions/{submission.number}/"' in again.content.decode()


def test_conflict_is_shown_with_the_hunk(author: Actor, diff: bytes, repository: Checkout) -> None:
    repository.edit("stack/net/if.c", lambda text: text.replace("line5;", "another;"))
    repository.commit("meanwhile")
    answer = signed_in(author).post("/submissions/new/", {**FIELDS, "text": diff.decode(), "examine": ""})
    assert "The hunk:" in answer.content.decode()
    assert "int another;" in answer.content.decode()
    number = services.submit(author, diff, WANTED).number
    text = Client().get(f"/submissions/{number}/").content.decode()
    assert "differs from what it expects" in text
    assert '\n int line4;\n<span class="removed">-int line5;</span>\n' in text
    assert "There is:\nint line2;" in text


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"text": "hello"}, "This has no diff"),
        ({}, "exactly one"),
        ({"text": "hello", "ref": "main"}, "exactly one"),
        ({"text": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "base": "nonsense"}, "has no commit"),
    ],
)
def test_what_cannot_be_submitted(author: Actor, given: dict[str, str], sentence: str) -> None:
    answer = signed_in(author).post("/submissions/new/", {**FIELDS, **given, "submit": ""})
    assert answer.status_code == 422
    assert sentence in answer.content.decode()


def test_maintainer_decides_on_the_page(author: Actor, maintainer: Actor, diff: bytes) -> None:
    number = services.submit(author, diff, WANTED).number
    client = signed_in(maintainer)
    assert "Waiting for approval" in text_of(client.get("/submissions/").content.decode())
    assert "in a sandbox" in client.get(f"/submissions/{number}/actions/").content.decode()
    assert client.post(f"/submissions/{number}/refuse/", {"reason": ""}).status_code == 409
    answer = client.post(f"/submissions/{number}/approve/", follow=True)
    run = Submission.objects.get().runs.get()
    assert f"run {run.number}" in answer.content.decode()
    assert f'data-events="/runs/{run.number}/events"' in answer.content.decode()
    assert client.post(f"/submissions/{number}/refuse/", {"reason": "late"}).status_code == 409
    assert "cancelled" in client.post(f"/submissions/{number}/cancel/", follow=True).content.decode()


def test_page_offers_as_many_boots_as_decide(maintainer: Actor, diff: bytes) -> None:
    submission = services.submit(maintainer, diff, WANTED)
    create_measurements(submission.runs.get(), MATRICES[WANTED.matrix].tests, noise=0.04, seed=2)
    found, page, client = (
        more(submission, submission.newest_run),
        f"/submissions/{submission.number}/",
        signed_in(maintainer),
    )
    assert found is not None
    assert (
        f"At the observed noise, {found.needed} boots of each variant would decide" in client.get(page).content.decode()
    )
    assert f'value="{found.boots}"' in client.get(f"{page}actions/").content.decode()
    for wrong in ("0", "51", "many", "1e1"):
        assert client.post(f"{page}rerun/", {"boots": wrong}).status_code == 409
    text = client.post(f"{page}rerun/", {"boots": str(found.boots)}, follow=True).content.decode()
    assert "would decide" not in text
    assert f"boots: {found.boots}\n" in submission.runs.latest("number").plan.text


def test_list_shows_what_is_measured_now(maintainer: Actor, diff: bytes) -> None:
    run = services.submit(maintainer, diff, WANTED).runs.get()
    assert "Being measured" not in Client().get("/submissions/").content.decode()
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    text = Client().get("/submissions/").content.decode()
    assert "Being measured" in text
    assert f'data-events="/runs/{run.number}/events"' in text


def test_number_of_queries_of_the_list_does_not_grow(
    maintainer: Actor, repository: Checkout, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for name in ("five", "six", "seven"):
        services.submit(maintainer, five(repository, name), WANTED)
    with django_assert_max_num_queries(9):
        Client().get("/submissions/")


def test_reason_has_no_control_characters(author: Actor, maintainer: Actor, diff: bytes) -> None:
    number = services.submit(author, diff, WANTED).number
    answer = signed_in(maintainer).post(f"/submissions/{number}/refuse/", {"reason": "not\1 \x1b[31mnow"}, follow=True)
    assert "not? ?[31mnow" in answer.content.decode()
    assert Entry.objects.filter(detail="refused: not? ?[31mnow").exists()


@pytest.mark.parametrize(("noise", "verdict"), [(0.001, Verdict.EQUIVALENT), (0.2, Verdict.NOT_ENOUGH_DATA)])
def test_white_space_is_equivalent_or_undecided(
    maintainer: Actor, repository: Checkout, noise: float, verdict: Verdict
) -> None:
    """Both sides scatter around one mean, on quiet and on noisy hosts; one seed in twenty would give a difference."""
    repository.edit("stack/net/if.c", lambda text: text.replace("int line", "int  line"))
    submission = services.submit(maintainer, repository.diff(), WANTED)
    create_measurements(submission.runs.get(), MATRICES[WANTED.matrix].tests, noise, seed=2)
    text = Client().get(f"/submissions/{submission.number}/").content.decode()
    assert f"patch against base</a>: 3 {verdict}" in text  # and maybe: withdrawn because of many tests
    assert text.count(f'class="verdict {css_name(verdict)}"') == 3
    assert f"patch against base</a>: 3 {verdict}" in Client().get("/submissions/").content.decode()


def test_others_only_read(author: Actor, diff: bytes) -> None:
    number = services.submit(author, diff, WANTED).number
    text = Client().get(f"/submissions/{number}/").content.decode()
    assert "<button" not in text
    assert Client().get(f"/submissions/{number}/actions/").status_code == 302
    for action in ("approve", "refuse", "cancel", "rerun"):
        answer = Client().post(f"/submissions/{number}/{action}/")
        assert (answer.status_code, "sign-in" in answer.headers["Location"]) == (302, True)
    assert signed_in(author).post(f"/submissions/{number}/approve/").status_code == 403
    assert Client().get("/submissions/new/").status_code == 302
    assert Client().get("/submissions/999/").status_code == 404


def test_patch_is_never_markup(author: Actor, repository: Checkout) -> None:
    repository.put("stack/net/x.c", "<script>alert(1)</script>\n")
    diff = repository.diff()
    number = services.submit(author, diff, WANTED).number
    assert "<script>alert" not in Client().get(f"/submissions/{number}/").content.decode()
    answer = Client().get(f"/submissions/{number}/patch.mbox")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.getvalue() == diff


def test_a_waiting_patch_names_who_approves_it(client: Client, db: None) -> None:
    for name, role in (("mia", Role.MAINTAINER), ("adam", Role.ADMIN), ("rea", Role.READER)):
        User.objects.create_user(name, role=role)
    User.objects.create_user("gone", role=Role.ADMIN, is_active=False)
    assert "approves or refuses it: adam, mia." in page(client, f"/submissions/{create_submission().pk}/")
    approved = create_submission(SubmissionState.APPROVED)
    assert "approves or refuses" not in page(client, f"/submissions/{approved.pk}/")
