# SPDX-License-Identifier: BSD-2-Clause
"""Progress of a run as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

The id of an event is its id in the run's stream; a browser that lost the connection sends it back as Last-Event-ID and
misses nothing.
"""

import json
import re
from collections.abc import AsyncIterator

import redis
from asgiref.sync import sync_to_async
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponseBadRequest, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_safe

from perfweb.runs import progress
from perfweb.runs.models import FINAL_STATES, Run

KEEP_ALIVE_SECONDS = 10.0
RETRY_MILLISECONDS = 3000
_STREAM_ID = re.compile(r"\d{1,20}-\d{1,20}", re.ASCII)


@require_safe
async def events(request: HttpRequest, number: int) -> HttpResponseBase:
    """GET /runs/<number>/events: all events after Last-Event-ID, then new ones until the run is over."""
    last_id = request.headers.get("Last-Event-ID", progress.FIRST)
    if _STREAM_ID.fullmatch(last_id) is None:
        return HttpResponseBadRequest("Last-Event-ID must be the id of an event, like 1700000000000-0\n", "text/plain")
    state = await _state(number)
    if state is None:
        raise Http404(f"There is no run {number}.")
    response = StreamingHttpResponse(_stream(number, state, last_id), content_type="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response


@sync_to_async
def _state(number: int) -> str | None:
    """The state of a run; the connection is closed, for a stream may last hours and PostgreSQL has few."""
    try:
        return Run.objects.filter(number=number).values_list("state", flat=True).first()
    finally:
        connection.close()


async def _stream(number: int, state: str | None, last_id: str) -> AsyncIterator[str]:
    """Ends with the event `over`, after which a client need not come again.

    A run may have gone on after an end that is in the stream (it was resumed), so only what the database says counts.
    """
    yield f"retry: {RETRY_MILLISECONDS}\n\n"
    try:
        async for event in progress.follow(number, last_id, 0.1 if state in FINAL_STATES else KEEP_ALIVE_SECONDS):
            if event is None:
                yield ": still here\n\n"
            else:
                yield f"id: {event.id}\nevent: {event.name}\ndata: {json.dumps(event.values)}\n\n"
            if event is None or event.values.get("state") in FINAL_STATES:
                state = await _state(number)
                if state in FINAL_STATES and (event is None or event.values["state"] == state):
                    yield f"event: over\ndata: {json.dumps({'state': state})}\n\n"
                    return
    except (redis.RedisError, OSError):
        yield ": progress is not available now\n\n"
