# SPDX-License-Identifier: BSD-2-Clause
"""Settings and fixtures of all tests."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.servers import served

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
        yield address
