# SPDX-License-Identifier: BSD-2-Clause
"""Shared parts of all operations of the API: registration, types of parameters, and paging."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from functools import wraps
from http import HTTPStatus
from typing import Annotated, Any, Generic, TypeVar

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import http_date
from ninja import Router
from pydantic import BaseModel, BeforeValidator, Field

from perfweb.accounts.permissions import Action
from perfweb.api.identity import Bearer, Permitted
from perfweb.api.problems import ENTITY_TAG, BadInput, Problem, bad_input
from perfweb.figures.timelines import RangeError, moment
from perfweb.runs.models import Run

USUAL, MOST = 50, 200
"""Number of items of a page: the default of `limit`, and the max."""

_LARGEST = 2**63 - 1  # the max of PostgreSQL's bigint
_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?)?$"

SAMPLE = "where its results come from, if they are the samples that a new site loads; otherwise empty"
"""Description of a field of everything that is on a testbed."""

Item = TypeVar("Item")
Row = TypeVar("Row")
View = TypeVar("View", bound=Callable[..., Any])
Tag = Callable[..., str | None]
"""Computes the entity tag of a response from the request and the function's arguments (perfweb.verdicts.tags)."""

Number = Annotated[int, Field(ge=1, le=_LARGEST)]
Name = Annotated[str, Field(pattern=r"^[-A-Za-z0-9_]{1,64}$")]
Text = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\u0000-\u001f]*$")]


def _moment(text: Any) -> Any:
    """Read a date or a time for pydantic, which would also take numbers for times."""
    if not isinstance(text, str):
        return text
    try:
        return moment(text)
    except RangeError as error:
        raise ValueError(str(error)) from None


Moment = Annotated[datetime, BeforeValidator(_moment, json_schema_input_type=Annotated[str, Field(pattern=_DATE)])]
"""A date such as 2026-11-21, which means its first moment, or a time such as 2026-11-21T09:30Z. Without a zone: UTC."""


class Window(BaseModel):
    """The part of a list."""

    limit: int = Field(USUAL, ge=1, le=MOST, description=f"items of a page, {MOST} at most")


class Page(BaseModel, Generic[Item]):
    """A part of a list; new items do not shift the parts."""

    items: list[Item]
    next: str | None = Field(description="the address of the next part; null at the end")


def read(
    router: Router,
    path: str,
    response: Any,
    *,
    may_lack: bool = False,
    tag: Tag | None = None,
    auth: Bearer | None = None,
) -> Callable[[View], View]:
    """Register a function for GET and HEAD.

    Unknown parameters are refused, because a misspelt filter would select everything; repeated ones are refused unless
    they take a list. `may_lack`: the response may be 404. `tag` returns the entity tag before the response is made.
    `auth`: the response depends on the user of the token.
    """
    responses: dict[int, Any] = {HTTPStatus.OK: response, HTTPStatus.NOT_MODIFIED: None}
    responses[HTTPStatus.BAD_REQUEST] = Problem
    if may_lack:
        responses[HTTPStatus.NOT_FOUND] = Problem
    if auth:
        responses[HTTPStatus.UNAUTHORIZED] = Problem
    responses[HTTPStatus.UNPROCESSABLE_ENTITY] = Problem
    if auth:  # wrong tokens are counted
        responses[HTTPStatus.TOO_MANY_REQUESTS] = Problem
    responses[HTTPStatus.SERVICE_UNAVAILABLE] = Problem

    def register(function: View) -> View:
        known: list[str] = []
        lists: set[str] = set()

        @wraps(function)
        def strict(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            _check_parameters(request, known, lists)
            if tag and (known_tag := tag(request, **kwargs)):
                request.META[ENTITY_TAG] = known_tag
                answer = get_conditional_response(request, etag=known_tag)
                if answer and answer.status_code == HTTPStatus.NOT_MODIFIED:
                    return answer
            return _written(function(request, *args, **kwargs), kwargs.get("response"))

        strict.__signature__ = inspect.signature(function, eval_str=True)  # type: ignore[attr-defined]
        router.api_operation(["GET", "HEAD"], path, response=responses, auth=auth, **_described(function))(strict)
        (operation,) = router.path_operations[path].operations
        query: list[Any] = [model for model in operation.models if model.__ninja_param_source__ == "query"]
        known += sorted(name for model in query for name in model.__ninja_flatten_map__)
        lists.update(name for model in query for name in model.__ninja_collection_fields__)
        return function

    return register


def change(
    router: Router, path: str, response: Any, action: Action, *, status: HTTPStatus = HTTPStatus.OK
) -> Callable[[View], View]:
    """Register a function for POST, which changes something for the owner of a token; `identity.actor_of` returns the
    owner, and `audit.action` makes the change. The action is kept, because a test requires one of every POST operation.
    """
    refusals = (
        "BAD_REQUEST",
        "UNAUTHORIZED",
        "FORBIDDEN",
        "NOT_FOUND",
        "CONFLICT",
        "UNPROCESSABLE_ENTITY",
        "TOO_MANY_REQUESTS",
    )
    responses: dict[int, Any] = {status: response, **{HTTPStatus[name]: Problem for name in refusals}}
    responses[HTTPStatus.SERVICE_UNAVAILABLE] = Problem

    def register(function: View) -> View:
        @wraps(function)
        def strict(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            _check_parameters(request, (), ())
            answer = _written(function(request, *args, **kwargs), kwargs.get("response"))
            answer.status_code = status
            return answer

        strict.__signature__ = inspect.signature(function, eval_str=True)  # type: ignore[attr-defined]
        strict.action = action  # type: ignore[attr-defined]
        router.api_operation(["POST"], path, response=responses, auth=Permitted(action), **_described(function))(strict)
        return function

    return register


def _described(function: Callable[..., Any]) -> dict[str, Any]:
    """The documentation of an operation, from its function's docstring."""
    summary, _, description = (inspect.getdoc(function) or "").partition("\n")
    return {
        "operation_id": function.__name__,
        "summary": summary.rstrip("."),
        "description": " ".join(description.split()),
    }


def _written(answer: BaseModel, response: HttpResponse | None) -> HttpResponse:
    """Write a response directly: ninja would first build Python objects of it, which takes longer than the rest of a
    long list. `response` has the headers that the function has set.
    """
    response = response or HttpResponse(content_type="application/json; charset=utf-8")
    response.content = answer.model_dump_json()
    return response


def _check_parameters(request: HttpRequest, known: Sequence[str], lists: Collection[str]) -> None:
    """Refuse unknown parameters, and repeated ones that take a single value: ninja would use the last value."""
    there_are = f"there are: {', '.join(known)}" if known else "this address takes none"
    problems = {
        name: f"the address has it {len(values)} times; write it once"
        if name in known
        else f"no such parameter; {there_are}"
        for name, values in request.GET.lists()
        if name not in known or (len(values) > 1 and name not in lists)
    }
    if problems:
        raise bad_input(*(BadInput(parameter=name, reason=reason) for name, reason in sorted(problems.items())))


def cut(
    request: HttpRequest, rows: list[Row], limit: int, cursor: Callable[[Row], object]
) -> tuple[list[Row], str | None]:
    """Return the rows of a page, and the address of the next one. There must be one row more than `limit` if there is a
    next page; `cursor` returns the key of a page's last row, after which the next page begins.
    """
    if len(rows) <= limit:
        return rows, None
    query = request.GET.copy()
    query["cursor"] = str(cursor(rows[limit - 1]))
    return rows[:limit], f"{request.path}?{query.urlencode()}"


def chosen(**conditions: Any) -> dict[str, Any]:
    """Return the conditions of the given filters: one that is not used is None or an empty list."""
    return {name: value for name, value in conditions.items() if value not in (None, [])}


def dated(response: HttpResponse, run: Run) -> None:
    """Return the time of the last change of a response about a run; a finished run changes only if it is resumed."""
    if run.is_over and run.ended:
        response.headers["Last-Modified"] = http_date(math.ceil(run.ended.astimezone(UTC).timestamp()))


def finite(value: float | None) -> float | None:
    """Return the number, or None for one that JSON cannot represent (RFC 8259 section 6)."""
    return value if value is not None and math.isfinite(value) else None
