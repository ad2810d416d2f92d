# SPDX-License-Identifier: BSD-2-Clause
"""The comment: the verdict first, at most five rows, the rest folded; and no untrusted text is markup or mentions a
user.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from perfweb.builds.models import Mirror
from perfweb.forges.comments import report
from perfweb.forges.markdown import block, code, folded, table
from perfweb.forges.models import CommentRequest, Project
from perfweb.runs.models import HostFacts, Run, Variant
from perfweb.submissions.models import Submission, SubmissionState
from tests.factories import (
    DEMO_TESTS,
    create_queued_run,
    create_run,
    create_submission,
    create_testbed,
    create_watched_run,
    faster_later,
)

GITHUB_LIMIT = 65_536
NASTY = "@everyone <img src=x onerror=alert(1)> `|` **b** [x](javascript:1) </details> #1 http://evil.example\x1b[31m"


@pytest.fixture
def comment_request(db: None) -> CommentRequest:
    author = create_submission().author
    Submission.objects.all().delete()
    project = Project.objects.create(
        mirror=Mirror.objects.create(name="demo", url="/x"), forge="github", api="http://127.0.0.1:1", path="a/b",
        login="bot", testbed=create_testbed(), account=author,
    )  # fmt: skip
    return CommentRequest.objects.create(project=project, pull=1, comment=1, login="eve", words="tcp", head="b" * 40)


def measured(comment_request: CommentRequest, *runs: Run, **fields: object) -> str:
    """The comment on submissions that have been measured."""
    for run in runs:
        submission = create_submission(SubmissionState.APPROVED, **fields)
        submission.runs.add(run)
        comment_request.submissions.add(submission)
    return report(comment_request).body


def unfolded(body: str) -> str:
    return body.partition("<details>")[0]


def rows(body: str) -> list[str]:
    return [line for line in unfolded(body).splitlines() if line.startswith("| `")]


def rendered(body: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(body))


def test_the_verdict_first_then_five_rows_then_the_rest_folded(comment_request: CommentRequest) -> None:
    body = measured(comment_request, create_run(boots=4, gain=1.2))
    assert body.startswith("**Faster: 6 faster**\n")
    assert len(rows(body)) == 5
    row = r"\| `\S+` \| `direct` \| \+\S+.% \(\+\S+ to \+\S+\) \| faster \|"
    assert re.fullmatch(row, rows(body)[0])
    assert "1 more changed, see below." in body
    summaries = re.findall(r"<summary>(.*?)</summary>", body)
    assert summaries == ["All tests", "ministat", "Environment", "How to reproduce"]
    for word in ("Difference at 95.0% confidence", "raw.tar", "manage.py replay raw.tar --run", "6.1.0-28-amd64"):
        assert word in body
    html = rendered(body)
    assert html.count("<table>") == 2
    assert html.count("<details>") == html.count("</details>") == 4


def test_a_row_whose_verdict_is_in_doubt_states_it(comment_request: CommentRequest) -> None:
    body = measured(comment_request, create_watched_run(order="aaaabbbb", level=faster_later, gain=1.0))
    assert len(re.findall(r"\| faster; sentinel \+3\.\d+.% \|$", unfolded(body), re.MULTILINE)) == 2
    assert "Drift may explain" in unfolded(body)


def test_without_a_change_it_states_the_detectable_difference(comment_request: CommentRequest) -> None:
    body = measured(comment_request, create_run(tests=["tcp.rr/host-host/ipv4"], boots=4, gain=1.0))
    assert not rows(body)
    assert re.search(r"Changes from [\d.]+.% on would have shown in each test in 4 runs of 5", body)
    assert body.splitlines()[0] in {"**Equivalent: 1 equivalent**", "**No change was proven: 1 not enough data**"}


def test_several_comparisons_are_one_comment(comment_request: CommentRequest) -> None:
    made = [create_run(tests=DEMO_TESTS[:1], boots=4, gain=gain, seed=seed) for seed, gain in enumerate((0.8, 1.2), 1)]
    body = measured(comment_request, *made)
    assert body.splitlines()[0] == "**Slower and faster: 1 slower, 1 faster**"
    assert len(rows(body)) == 2
    assert report(comment_request).state == "failure"
    assert "<summary>ministat <code>debug.mpsafenet=1 net.isr.dispatch=deferred</code></summary>" in body


@pytest.mark.parametrize(
    ("state", "reason", "verdict", "status"),
    [
        (SubmissionState.WAITING, "", "Waits for a maintainer's approval", "pending"),
        (SubmissionState.CONFLICT, "It wants:\n@@ -1 +1 @@", "Does not apply", "error"),
        (SubmissionState.REFUSED, NASTY, "Refused", "error"),
        (SubmissionState.CANCELLED, "", "Cancelled", "error"),
    ],
)
def test_what_is_not_measured(
    comment_request: CommentRequest, state: SubmissionState, reason: str, verdict: str, status: str
) -> None:
    comment_request.submissions.add(create_submission(state, reason=reason))
    comment = report(comment_request)
    assert comment.body.startswith(f"**{verdict}**\n\nCommit `bbbbbbbbbbbb`, [submission ")
    assert (comment.state, comment.description, comment.final) == (status, verdict, state != SubmissionState.WAITING)
    assert bool(reason) == ("<summary>Why</summary>" in comment.body)


def test_the_comment_for_a_failed_run_states_the_reason(comment_request: CommentRequest) -> None:
    run = create_queued_run()
    Run.objects.filter(pk=run.pk).update(state="failed", reason="no such host: <b>x</b>")
    body = measured(comment_request, run)
    assert body.startswith(f"**Could not be measured: run {run.pk} failed**")
    assert "<b>" not in rendered(body)


def test_what_is_outdated_is_marked_and_folded(comment_request: CommentRequest) -> None:
    body = measured(comment_request, create_run(tests=DEMO_TESTS[:1], boots=4, gain=1.2))
    comment_request.outdated = True
    old = report(comment_request).body
    assert old.startswith("*Outdated: this was about commit `bbbbbbbbbbbb`; ")
    assert "<details><summary>Faster: 1 faster</summary>" in old
    assert body.rpartition("\n\n")[0] in old


def test_the_text_of_others_is_never_markup_and_calls_nobody(comment_request: CommentRequest) -> None:
    run = create_run(tests=DEMO_TESTS[:1], boots=4, gain=1.2)
    HostFacts.objects.update(name=NASTY, facts={NASTY: NASTY})
    Variant.objects.update(tunables={"a.b": NASTY})
    run.plan.title = NASTY
    run.plan.save()
    calm(measured(comment_request, run, create_queued_run(), title=NASTY))


def test_a_comment_is_as_long_as_may_be(comment_request: CommentRequest) -> None:
    run = create_run(tests=DEMO_TESTS[:1], boots=4)
    HostFacts.objects.update(facts={f"fact{number}": "x" * 100 for number in range(600)})
    body = measured(comment_request, run)
    assert len(body) < GITHUB_LIMIT
    assert "Environment" not in body
    assert "How to reproduce" in body


def calm(body: str) -> None:
    """Assert that all words and tags outside of code are the service's own."""
    html = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", rendered(body), flags=re.DOTALL)
    assert set(re.findall(r"</?([a-z0-9]+)", html)) <= {
        "p", "strong", "em", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "a",
    }  # fmt: skip
    assert "@" not in html
    assert not re.search(r"onerror|javascript|evil|\x1b", html)


@given(st.text(st.sampled_from("`~|\\@<>b*_[]()!#&; \n\t-=:/\r\x1bx"), max_size=40) | st.text(max_size=40))
def test_no_text_leaves_its_place(text: str) -> None:
    body = folded("x", table(["a", "b"], [[code(text), code(text)]]) + "\n\n" + block(text)) + f"\n\nSaid: {code(text)}"
    html = rendered(body)
    outside = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", html, flags=re.DOTALL)
    assert outside.replace("\n", "").startswith("<details><summary>x</summary><table><thead><tr><th>a</th><th>b</th>")
    assert outside.count("<td>") == 2
    assert re.sub(r"<[^>]*>|\s", "", outside) == "xabSaid:"
