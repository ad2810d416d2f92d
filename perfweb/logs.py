# SPDX-License-Identifier: BSD-2-Clause
"""Log formats of processes: lines for readers, or with PERFWEB_LOG=json one JSON object per line."""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

_about: ContextVar[Mapping[str, int | str]] = ContextVar("about", default=MappingProxyType({}))


@contextmanager
def about(**facts: int | str) -> Iterator[None]:
    """A context whose records belong to a run (`run`, its number) or a request (`path`)."""
    token = _about.set({**_about.get(), **facts})
    try:
        yield
    finally:
        _about.reset(token)


class Expected(logging.Filter):
    """Drops tracebacks that show no fault of this program: Django logs one for each response 503."""

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", None) == HTTPStatus.SERVICE_UNAVAILABLE:
            record.exc_info = record.exc_text = None
        return True


class JsonLines(logging.Formatter):
    """A record as {"time", "level", "logger", "message"}, and if present "run", "path" and "exception"."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request := getattr(record, "request", None):  # Django logs the response after the context has ended
            fields["path"] = request.path
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps({**fields, **_about.get()})


class TextLines(logging.Formatter):
    """A record as lines of text. Untrusted text in it cannot look like another record, or command a terminal: further
    lines are indented, and other control characters are escaped.
    """

    def format(self, record: logging.LogRecord) -> str:
        return "\n    ".join(map(_escaped, super().format(record).split("\n")))


def _escaped(line: str) -> str:
    return "".join(sign if sign.isprintable() or sign == "\t" else repr(sign)[1:-1] for sign in line)


def configuration(form: str) -> dict[str, Any]:
    """Return a configuration for logging.config.dictConfig. Raises ValueError for a form other than "" and "json".

    With "json" the web server's own lines have this format, too; otherwise they keep their own.
    """
    if form not in {"", "json"}:
        raise ValueError(f"PERFWEB_LOG is {form!r}: make it json, or leave it empty for lines of text")
    servers = ("uvicorn", "uvicorn.access", "uvicorn.error") if form else ()
    text = {"()": TextLines, "format": "{asctime} {levelname} {name}: {message}", "style": "{"}
    line = {"()": JsonLines} if form else text
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": line},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["expected"]}},
        "filters": {"expected": {"()": Expected}},
        "root": {"handlers": ["console"], "level": "INFO"},
        "loggers": {
            "mail.log": {"level": "WARNING"},  # aiosmtpd logs every line of a client
            **{name: {"handlers": [], "propagate": True} for name in servers},
        },
    }
