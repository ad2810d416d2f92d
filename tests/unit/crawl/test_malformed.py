# SPDX-License-Identifier: BSD-2-Clause
"""No malformed request is answered with status 500, and every refusal has a reason.

`./dev test tests/unit/crawl --requests 50000` sends more than the default of two thousand; the statuses of the
responses are printed as a table.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from http import HTTPStatus

import pytest
from django.db import transaction

from perfweb.api.problems import CONTENT_TYPE
from tests.unit.accounts.conftest import forget_limits
from tests.unit.accounts.site import Site
from tests.unit.crawl.addresses import ADDRESSES
from tests.unit.crawl.asking import Answer, Application, Received, Request
from tests.unit.crawl.learning import Names
from tests.unit.crawl.mutations import Mutations, permitted

pytestmark = pytest.mark.django_db

STREAMS = {"/runs/{number}/events"}
"""A stream that closes its connection, and with it the transaction of the test: test_over_http.py requests it."""
MAY_BE_AWAY = {"/health/"}
"""Responds with 503 without a worker, as in a test."""
REFUSED = {"/forges/{name}/webhook"}
"""Refuses a POST without a signature; `deliveries` sends signed ones. A valid POST to all others reaches the
database.
"""
SHOWN = 40
FORGOTTEN_AFTER = 100
"""Requests after which the rate limits are reset: more would get 429."""


@pytest.mark.timeout(0)  # it takes as long as --requests needs
def test_no_malformed_request_fails(
    site: Site,
    one_connection: None,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    most = request.config.getoption("--requests")
    application, names = Application(), Names()
    mutations = Mutations(site, names.known, request.config.getoption("--seed"))
    statuses: Counter[int] = Counter()
    wrong: dict[str, str] = {}
    refused: set[str] = set()
    requested = [address for address in ADDRESSES if address.name not in STREAMS]
    with monkeypatch.context() as patch:
        names.record(patch)
        for address, method in itertools.product(requested, ("GET", "POST")):
            with transaction.atomic():
                answer = application.ask(mutations.good(address, method, permitted(address)))
                transaction.set_rollback(True)
            names.learn(address, answer.body)
            if method == "POST" and answer.status >= 400 and answer.status != HTTPStatus.METHOD_NOT_ALLOWED:
                refused.add(address.name)
    assert refused == REFUSED
    try:
        for address, method, spot in mutations.endless(requested):
            person, malformed = mutations.request(address, method, spot)
            with transaction.atomic():
                answer = application.ask(malformed)
                transaction.set_rollback(True)
            statuses[answer.status] += 1
            for problem in problems(address.name, malformed, answer):
                wrong.setdefault(f"{problem} {address.name}", f"{person}: {malformed}")
            if statuses.total() % FORGOTTEN_AFTER == 0:
                forget_limits()
            if statuses.total() == most:
                break
    finally:  # Ctrl-C ends a long run, whose results count
        table = "\n".join(f"{status}\t{count}" for status, count in sorted(statuses.items()))
        with capsys.disabled():
            print(f"\n{statuses.total()} malformed requests, {len(wrong)} problems\n{table}")
    assert not wrong, "\n".join(f"{what}\n    {how}" for what, how in list(wrong.items())[:SHOWN])


def problems(name: str, request: Request, answer: Answer) -> list[str]:
    """Return the error of a response."""
    found = []
    if answer.status >= 500 and not (answer.status == 503 and name in MAY_BE_AWAY):
        found.append(f"{answer.status}: {answer.failure}")
    if not answer.status and request.received is not Received.CUT_OFF:
        found.append("no answer")
    if answer.status >= 400:
        if request.method != "HEAD" and not answer.body.strip():
            found.append(f"{answer.status} without a reason")
        if name.startswith("/api/v1") and answer.headers.get("content-type") != CONTENT_TYPE:
            found.append(f"{answer.status} is no problem in JSON")
        elif name.startswith("/api/v1") and answer.body and not json.loads(answer.body)["detail"]:
            found.append(f"{answer.status} without a detail")
    return found
