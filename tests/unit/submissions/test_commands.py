# SPDX-License-Identifier: BSD-2-Clause
"""Requests in words: their meaning, and the errors of invalid ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.submissions.commands import (
    FLAGS,
    LONGEST,
    MOST_COMBINATIONS,
    SETTINGS,
    Request,
    RequestError,
    Verb,
    find,
    help_text,
    parse,
)
from perfweb.submissions.plans import MATRICES, read_knobs
from perfweb.submissions.services import SubmissionRequest


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        ("run tcp", Request(Verb.RUN)),
        ("tcp quick", Request(Verb.RUN)),
        ("TCP-Quick", Request(Verb.RUN)),
        ("run", Request(Verb.RUN)),
        ("", Request(Verb.HELP)),
        ("status", Request(Verb.STATUS)),
        ("Cancel", Request(Verb.CANCEL)),
        ("udp each", Request(Verb.RUN, "udp-quick", each=True)),
        ("full testbed=lab2 base=v1.0 trailer", Request(Verb.RUN, "full", testbed="lab2", base="v1.0", trailer=True)),
        (
            "run tcp net.isr.dispatch=direct,deferred",
            Request(Verb.RUN, knobs=("net.isr.dispatch=direct", "net.isr.dispatch=deferred")),
        ),
        ("a.b=1,2 unix c.d=x", Request(Verb.RUN, "unix", knobs=("a.b=1\nc.d=x", "a.b=2\nc.d=x"))),
    ],
)
def test_words_of_a_request(words: str, request_: Request) -> None:
    assert parse(words) == request_


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("run tpc", "There are no tests “tpc” (did you mean “tcp”?): there are tcp quick, udp quick, quick, "),
        ("stauts", "There are no tests “stauts” (did you mean “status”?)"),
        ("cancel it", "“cancel” takes no more words: remove “it”."),
        ("tcp tesbed=x", "“tesbed=” is not known (did you mean “testbed”?): there are testbed= and base=, and knobs,"),
        ("tcp base=", "base= lacks its value: a branch, tag or commit."),
        ("tcp a.b=1 a.b=2", "a.b is there twice; several values of a knob are written NAME=VALUE,VALUE."),
        ("tcp a.b=1,1", "a.b has the value 1 twice."),
        ("tcp a.b=", "“” is no value of a.b; allowed: "),
        ("tcp a.b=$(id)", "“$(id)” is no value of a.b; allowed: "),
        ("tcp a..b=1", "“a..b=1” is no knob: write lines such as net.isr.dispatch=direct."),
        ("tcp a.\ud7fc=1", "“a.?=1” is no knob: write lines such as net.isr.dispatch=direct."),
        ("tcp a.b=\u202e1", "“?1” is no value of a.b; allowed: "),
        ("tcp a.b=1,2 c.d=1,2,3", f"These knobs have more than {MOST_COMBINATIONS} combinations of values"),
        ("x" * (LONGEST + 1), f"A request is at most {LONGEST} characters long."),
    ],
)
def test_errors_in_words(words: str, reason: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse(words)
    assert str(caught.value).startswith(reason)


def test_where_a_request_stands() -> None:
    assert find("Looks good.\r\n/perf run tcp\r\n", "/perf") == "run tcp"
    assert find("/perf", "/perf") == ""
    assert find("perf:tcp quick", "perf:") == find("Perf: tcp quick ", "perf:") == "tcp quick"
    others = "/performance\n> /perf run\n /perf run\n```\n/perf run\n~~~\n```\n~~~sh\n/perf run\n~~~\nsay /perf help"
    assert find(others, "/perf") is None
    with pytest.raises(RequestError, match="2 lines that begin with /perf"):
        find("/perf status\n/perf cancel", "/perf")


def test_one_submission_for_each_combination() -> None:
    assert parse("udp each a.b=1,2").wanted("demo", "main", "A title") == [
        SubmissionRequest("demo", "udp-quick", knobs, each=True, base="main", title="A title")
        for knobs in ("a.b=1", "a.b=2")
    ]
    assert parse("testbed=lab2 base=v1").wanted("demo", "main")[0] == SubmissionRequest("lab2", "tcp-quick", base="v1")


def test_help_names_all_that_a_request_can_have() -> None:
    text = help_text("/perf")
    for word in (*Verb, *SETTINGS, *FLAGS, *(name.replace("-", " ") for name in MATRICES)):
        assert word in text
    assert max(map(len, text.splitlines())) <= 72
    assert parse(text.splitlines()[0].removeprefix("/perf")).verb == Verb.RUN
    assert len(parse(text.splitlines()[1].removeprefix("/perf")).knobs) == 2


words = st.sampled_from(["run", "tcp", "quick", "each", "testbed=x", "a.b=1", "a.b=", "c.d=1,2", "=", ",", "e.f=x,"])


@given(st.one_of(st.text(), st.lists(words | st.text(max_size=5)).map(" ".join)))
def test_any_words_make_a_request_or_a_sentence(text: str) -> None:
    problem = ""
    try:
        request = parse(text)
    except RequestError as error:
        problem = str(error)
    if problem:
        assert problem.isprintable()
        assert problem[-1] == "."
        assert len(problem) < 500
        return
    assert request.matrix in MATRICES
    assert 1 <= len(request.knobs) <= MOST_COMBINATIONS
    assert len({tuple(read_knobs(knobs).items()) for knobs in request.knobs}) == len(request.knobs)


@given(st.text(), st.sampled_from(["/perf", "perf:"]))
def test_any_text_has_a_request_or_none_or_too_many(text: str, prefix: str) -> None:
    try:
        found = find(text, prefix)
    except RequestError:
        return
    assert found is None or found in text
