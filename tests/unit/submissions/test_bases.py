# SPDX-License-Identifier: BSD-2-Clause
"""A patch for a commit that the repository does not have: a named base is taken, and an error names those that fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.core import mail as sent

from perfweb.accounts.actors import Actor
from perfweb.builds import mirrors
from perfweb.builds.models import Mirror
from perfweb.builds.repositories import MissingCommitError
from perfweb.lab.origins import Origin
from perfweb.mail.intake import receive
from perfweb.submissions import services
from perfweb.submissions.models import SubmissionState
from tests.checkouts import IF_C, Checkout
from tests.factories import create_testbed
from tests.unit.forges.conftest import Making, bot_on
from tests.unit.mail.conftest import set_up, work
from tests.unit.submissions.conftest import WANTED, five

__all__ = ["bot_on", "set_up"]
pytestmark = pytest.mark.django_db
UNKNOWN = "0df4018be5f4abd39967b7b2c538765c76903df8"


def with_base(diff: bytes, commit: str = UNKNOWN) -> bytes:
    return diff + f"\nbase-commit: {commit}\n".encode()


def history(checkout: Checkout) -> tuple[str, str]:
    """Two branches and a tag that differ in the file, and are behind or beside main; the commits of topic and main."""
    checkout.git("tag", "v1")
    checkout.git("checkout", "-q", "-b", "topic")
    checkout.edit("stack/net/if.c", lambda text: text.replace("line4;", "four;"))
    topic = checkout.commit("topic")
    checkout.git("checkout", "-q", "main")
    checkout.put("stack/net/if.c", IF_C.replace("line6;", "six;"))
    return topic, checkout.commit("main goes on")


def diff_on(checkout: Checkout, name: str) -> bytes:
    checkout.git("checkout", "-q", name)
    made = five(checkout)
    checkout.git("checkout", "-q", "main")
    return made


def test_a_named_base_counts_although_the_patch_names_another(author: Actor, repository: Checkout) -> None:
    topic, main = history(repository)
    patch = with_base(diff_on(repository, "topic"))
    assert services.examine(author, patch, replace(WANTED, base="topic")).base.sha == topic
    known = with_base(diff_on(repository, "topic"), main)
    assert services.examine(author, known, replace(WANTED, base="topic")).base.sha == topic
    assert services.examine(author, with_base(five(repository), main), WANTED).base.sha == main


@pytest.mark.parametrize(("made_on", "named"), [("topic", "in topic."), ("v1", "in v1."), ("main", "in main.")])
def test_the_error_names_bases_that_fit(author: Actor, repository: Checkout, made_on: str, named: str) -> None:
    history(repository)
    with pytest.raises(MissingCommitError, match=f"no commit “{UNKNOWN}”: .*{named}.* --base, or by base="):
        services.submit(author, with_base(diff_on(repository, made_on)), WANTED)


def test_a_commit_without_a_name_fits_too(author: Actor, repository: Checkout) -> None:
    repository.edit("stack/net/if.c", lambda text: text.replace("line4;", "four;"))
    middle = repository.commit("a commit between")
    patch = five(repository)
    repository.edit("stack/net/if.c", lambda text: text.replace("line6;", "six;"))
    repository.commit("main goes on")
    with pytest.raises(MissingCommitError, match=middle[:12]):
        services.submit(author, with_base(patch), WANTED)
    assert services.submit(author, with_base(patch), replace(WANTED, base=middle[:12])).base == middle


def test_no_base_fits(author: Actor, repository: Checkout) -> None:
    patch = with_base(five(repository)).replace(b"index ", b"index 1111111..2222222 100644\nindex ", 1)
    with pytest.raises(MissingCommitError, match="No branch, tag or commit of the newest 200 of HEAD has the files"):
        services.submit(author, patch, WANTED)


def test_a_patch_of_another_repository_names_those_that_are_registered(author: Actor, repository: Checkout) -> None:
    diff = five(repository).replace(b"stack/net/if.c", b"net/ipv4/tcp.c")
    assert "repositor" not in services.submit(author, diff, WANTED).reason
    for name in ("theirs", "linux"):
        Mirror.objects.create(name=name, url=str(repository.tree))
    assert services.submit(author, diff + b"\n", WANTED).reason.endswith("Other repositories: linux, theirs.")
    mirrors.fetch(Mirror.objects.get(name="linux"))
    theirs = replace(WANTED, mirror="linux")
    assert services.submit(author, diff, theirs).reason.endswith("Other repositories: the service's own, theirs.")
    with pytest.raises(MissingCommitError, match=r"Other repositories: the service's own, theirs\.$"):
        services.submit(author, with_base(diff), theirs)


def test_a_series_is_known_by_what_its_first_patches_change(author: Actor, repository: Checkout) -> None:
    """The second patch of a file expects the first, and files that are made are in no base."""
    repository.git("checkout", "-q", "-b", "topic")
    repository.edit("stack/net/if.c", lambda text: text.replace("line4;", "four;"))
    repository.commit("net: four")
    for name in ("five", "six"):
        text = (repository.tree / "stack/net/if.c").read_text()
        repository.put("stack/net/if.c", text.replace("line5;", f"{name};line5;"))
        repository.put(f"stack/net/{name}.c", "int made;\n")
        repository.commit(f"net: {name}")
    series = repository.git("format-patch", "--stdout", "-2")
    repository.git("reset", "-q", "--hard", "HEAD~2")
    repository.git("checkout", "-q", "main")
    with pytest.raises(MissingCommitError, match="in topic"):
        services.submit(author, with_base(series), WANTED)


def test_a_patch_without_context_is_recognised(author: Actor, repository: Checkout) -> None:
    repository.edit("stack/net/if.c", lambda text: text.replace("line5;", "five;\nsix;").replace("line9;", "nine;"))
    repository.put("stack/net/made.c", "int made;\n")
    repository.git("add", "-N", ".")
    patch = repository.git("diff", "-U0")
    repository.git("reset", "-q", "--hard")
    submission = services.submit(author, patch, WANTED)
    assert submission.state == SubmissionState.CONFLICT
    assert "Its hunks have no context (git diff -U0)" in submission.reason.partition("\n\n")[0]
    assert "Name a base" not in submission.reason


def test_a_conflict_names_bases_that_fit(author: Actor, repository: Checkout) -> None:
    repository.git("branch", "stable")
    patch = five(repository)
    repository.edit("stack/net/if.c", lambda text: text.replace("line5;", "other;"))
    repository.commit("main goes on")
    submission = services.submit(author, patch, WANTED)
    assert submission.state == SubmissionState.CONFLICT
    assert "as it expects them in stable." in submission.reason.partition("\n\n")[0]


def test_a_mail_with_an_unknown_base_is_answered_with_one_and_then_measured(repository: Checkout) -> None:
    history(repository)
    patch = with_base(diff_on(repository, "topic"))
    head = "From: ada@example.org\nSubject: [PATCH%s] net: five\nMessage-ID: <%d@example.org>\n\nperf: tcp %s\n---\n"
    receive((head % ("", 1, "")).encode() + patch)
    work()
    assert "in topic. Name a base" in " ".join(str(sent.outbox[-1].body).split())
    receive((head % (" v2", 2, "base=topic")).encode() + patch)
    work()
    assert "This will be measured" in str(sent.outbox[-1].body)


def test_a_comment_names_another_base(bot_on: Making) -> None:
    bot = bot_on("github")
    older = bot.checkout.git("rev-parse", "HEAD").decode().strip()
    bot.checkout.git("branch", "older")
    bot.checkout.edit("stack/net/if.c", lambda text: text.replace("line30;", "thirty;"))
    bot.checkout.commit("main goes on")
    bot.push("six")
    request = bot.comment("/perf run tcp base=older")
    assert request is not None
    assert not request.answer
    assert request.submissions.get().base == older
    wrong = bot.comment("/perf run tcp base=oldr", "eve", 66)
    assert wrong is not None
    assert "(did you mean older?)" in wrong.answer


def test_a_series_with_more_patches_than_a_plan_has_variants(author: Actor, repository: Checkout) -> None:
    for number in range(1, 21):
        text = (repository.tree / "stack/net/if.c").read_text()
        repository.put("stack/net/if.c", text.replace(f"line{number};", f"name{number};"))
        repository.commit(f"net: {number}")
    series = repository.git("format-patch", "--stdout", "-20")
    repository.git("reset", "-q", "--hard", "HEAD~20")
    with pytest.raises(services.SubmissionError, match=r"This series has 20 patches; patch by patch .* at most 15"):
        services.submit(author, series, replace(WANTED, each=True))
    assert len(services.submit(author, series, WANTED).stages) == 20


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"title": "a\tb"}, "The title must be one line"),
        ({"knobs": "\n".join(f"net.x{number}=1" for number in range(65))}, "These knobs cannot be used"),
        ({"knobs": "boot.command_line=x"}, "These knobs cannot be used"),
        ({"testbed": "sim"}, "testbeds that measure: demo; tests for sim: sim"),
    ],
)
def test_errors_are_about_the_request_and_not_its_plan(
    author: Actor, diff: bytes, change: dict[str, Any], sentence: str
) -> None:
    create_testbed("sim", origin=Origin.SIMULATED)
    with pytest.raises(services.PROBLEMS, match=sentence) as caught:
        services.submit(author, diff, replace(WANTED, **change))
    assert not any(word in str(caught.value) for word in ("column", "variants[", "plan"))


def test_an_error_in_a_written_plan_has_its_line(author: Actor, diff: bytes) -> None:
    with pytest.raises(services.PROBLEMS, match="line 1, column"):
        services.submit(author, diff, replace(WANTED, plan="{}"))
