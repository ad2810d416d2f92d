# SPDX-License-Identifier: BSD-2-Clause
"""Settings and fixtures of all tests."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http import HTTPStatus

import pytest
import urllib3
from hypothesis import HealthCheck, settings

# A busy machine must not fail a test: by default Hypothesis allows 200 ms for an example, and a limited time for
# finding some.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write", action="store_true", help="write docs/reference/security-crawl.md from the crawl")
    parser.addoption("--requests", type=int, default=2000, help="malformed requests that tests/unit/crawl sends")
    parser.addoption("--seed", type=int, default=20261127, help="of the malformed requests that tests/unit/crawl sends")
    parser.addoption("--thorough", action="store_true", help="also run the tests marked `thorough`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects tests marked `thorough`, which pytest counts in its closing line, unless --thorough is given."""
    if config.getoption("--thorough"):
        return
    deselected = [item for item in items if item.get_closest_marker("thorough")]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]


def pytest_collection_finish() -> None:
    """Excludes modules and tests from garbage collection, which would scan them all again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escapes lone surrogates in captured output, because workers of pytest-xdist send reports as UTF-8."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.fixture
def asgi_server(transactional_db: None) -> Iterator[str]:
    """The address of uvicorn with the test's database, on a free port."""
    from django.db import connection

    with served(connection.settings_dict["NAME"]) as address:
        wait_until_ready(address)
        yield address


def wait_until_ready(address: str) -> None:
    """Wait until a web server has a connection to its database: on a busy machine the first pages may be 503."""
    deadline = time.monotonic() + 120
    while (status := urllib3.request("GET", f"{address}/runs/", timeout=60, retries=False).status) != HTTPStatus.OK:
        assert status == HTTPStatus.SERVICE_UNAVAILABLE
        assert time.monotonic() < deadline, "no page in 120 s"
        time.sleep(0.1)


@contextmanager
def served(database: str, **environment: str) -> Iterator[str]:
    """The address of uvicorn with a database, on a free port; `environment` has variables for it."""
    with socket.create_server(("127.0.0.1", 0)) as listener, served_at(listener, database, **environment):
        yield address_of(listener)


def address_of(listener: socket.socket) -> str:
    """The address of a web server that listens there."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def served_at(listener: socket.socket, database: str, **environment: str) -> Iterator[None]:
    """A process of uvicorn that accepts connections from a socket, which may outlive it."""
    from django.conf import settings as site

    command = [sys.executable, "-m", "perfweb.server", "--log-level", "warning", "--fd", str(listener.fileno())]
    known = {"DJANGO_SETTINGS_MODULE": "perfweb.settings.test", "PERFWEB_PGDATABASE": database}
    server = subprocess.Popen(
        command, cwd=site.BASE_DIR, env={**os.environ, **known, **environment}, pass_fds=[listener.fileno()]
    )
    try:
        yield
    finally:
        server.terminate()
        try:
            server.wait(timeout=5)
        except subprocess.TimeoutExpired:  # a client still held a stream of events
            server.kill()
            server.wait()
