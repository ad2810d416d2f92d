# SPDX-License-Identifier: BSD-2-Clause
"""Logs as JSON: one object per line, with its run or request."""

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import AsyncRequestFactory, Client, RequestFactory

from perfweb.headers import LoggedPath
from perfweb.logs import JsonLines, TextLines, about, configuration
from perfweb.runs import states
from perfweb.runs.models import RunState
from runners import execute as execution
from tests.factories import create_queued_run

ROOT = Path(__file__).resolve().parents[2]
log = logging.getLogger(__name__)


class Written:
    """The output of loggers as JSON."""

    def __init__(self) -> None:
        self.stream = io.StringIO()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


@pytest.fixture
def written() -> Iterator[Written]:
    found = Written()
    handler = logging.StreamHandler(found.stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield found
    root.removeHandler(handler)
    root.setLevel(level)


def test_each_line_is_an_object(written: Written) -> None:
    log.warning('two\nlines, "quotes" and %s', "é")
    [line] = written.lines()
    assert line.keys() == {"time", "level", "logger", "message"}
    assert (line["level"], line["logger"]) == ("WARNING", __name__)
    assert line["message"] == 'two\nlines, "quotes" and é'
    assert line["time"].endswith("+00:00")


@pytest.mark.parametrize("ending", ["\n", "\r", "\r\n", "\x0b", "\x85", "\u2028"])
def test_untrusted_text_does_not_look_like_a_record(ending: str) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextLines("{levelname} {name}: {message}", style="{"))
    forged = f"x{ending}ERROR perfweb: forged \x1b[2J\u202e"
    try:
        raise RuntimeError(forged)
    except RuntimeError:
        handler.handle(log.makeRecord(log.name, logging.WARNING, "", 0, "%s", (forged,), sys.exc_info()))
    lines = stream.getvalue().splitlines()
    assert [line for line in lines if not line.startswith(" ")] == lines[:1]
    assert "RuntimeError: x" in stream.getvalue()
    assert not set(stream.getvalue()) & {"\x1b", "\u202e"}


def test_an_error_has_its_traceback(written: Written) -> None:
    try:
        raise RuntimeError("of course")
    except RuntimeError:
        log.exception("it failed")
    [line] = written.lines()
    assert "RuntimeError: of course" in line["exception"]


def test_only_messages_inside_the_context_have_its_fields(written: Written) -> None:
    with about(run=7), about(path="/runs/"):
        log.info("inside")
    log.info("outside")
    inside, outside = written.lines()
    assert (inside["run"], inside["path"]) == (7, "/runs/")
    assert not {"run", "path"} & outside.keys()


@pytest.mark.django_db
def test_messages_of_a_worker_about_a_run_have_its_number(written: Written) -> None:
    run = create_queued_run(state=RunState.CANCELLED)
    execution.execute(run.number)
    [line] = [line for line in written.lines() if line["logger"] == "runners.execute"]
    assert line["run"] == run.number
    assert "is not started" in line["message"]


@pytest.mark.django_db(transaction=True)
def test_each_state_of_a_run_is_a_line(written: Written) -> None:
    run = create_queued_run()
    with about(run=run.number):
        states.cancel(run.number, "nobody wants it")
    [line] = [line for line in written.lines() if line["logger"] == "perfweb.runs.states"]
    assert line["run"] == run.number
    assert line["message"] == f"run {run.number} is cancelled: nobody wants it"


def test_a_request_has_its_path_in_a_chain_of_functions(written: Written) -> None:
    def view(request: HttpRequest) -> HttpResponse:
        log.info("asked by %s", request.method)
        return HttpResponse()

    LoggedPath(view)(RequestFactory().get("/queue/?all=1"))
    [line] = written.lines()
    assert line["path"] == "/queue/"


async def test_a_request_has_its_path_in_a_chain_of_coroutines(written: Written) -> None:
    async def view(request: HttpRequest) -> HttpResponse:
        log.info("asked by %s", request.method)
        return HttpResponse()

    answer = LoggedPath(view)(AsyncRequestFactory().get("/queue/"))
    assert not isinstance(answer, HttpResponse)
    await answer  # type: ignore[misc]
    [line] = written.lines()
    assert line["path"] == "/queue/"


@pytest.mark.django_db
def test_messages_of_django_about_a_response_have_its_path(written: Written, client: Client) -> None:
    client.get("/nowhere/")
    [line] = [line for line in written.lines() if line["logger"] == "django.request"]
    assert line["path"] == "/nowhere/"


def test_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="make it json, or leave it empty"):
        configuration("xml")


@pytest.mark.parametrize(
    "program",
    [
        "from perfweb.celery import app; app.log.setup('INFO'); name = 'celery.worker'",
        "import uvicorn; uvicorn.Config('perfweb.asgi:application').load(); name = 'uvicorn.error'",
        "import django; django.setup(); name = 'perfweb'",
    ],
    ids=["celery", "uvicorn", "commands"],
)
def test_each_kind_of_process_writes_json(program: str, tmp_path: Path) -> None:
    settings = {"DJANGO_SETTINGS_MODULE": "perfweb.settings.development", "PERFWEB_VAR": str(tmp_path)}
    (tmp_path / "static").mkdir()
    program += "; import logging; logging.getLogger(name).warning('said'); print('over')"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=os.environ | settings | {"PERFWEB_LOG": "json"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["message"] for line in lines if line["level"] == "WARNING"] == ["said"]
