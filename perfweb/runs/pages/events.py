# SPDX-License-Identifier: BSD-2-Clause
"""Progress of a run as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

The id of an event is its id in the run's stream. A browser that lost the connection sends it back as Last-Event-ID and
gets all later events.
"""

import json
import re
from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponseBadRequest, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_safe

from perfweb.parameters import flag_in
from perfweb.runs import progress
from perfweb.runs.broadcast import Broadcast, Position, position_of
from perfweb.runs.models import Run

RETRY_MILLISECONDS = 3000
POLL_MILLISECONDS = 15000
_STREAM_ID = re.compile(r"\d{1,20}-\d{1,20}", re.ASCII)


@require_safe
async def events(request: HttpRequest, number: int) -> HttpResponseBase:
    """GET /runs/<number>/events: all events after Last-Event-ID, then new ones until the run is over.

    With `?once` it ends after the first ones, for pages that poll because the server has too many streams
    (perfweb/serving/connections.py): an EventSource reconnects by itself.
    """
    last_id = request.headers.get("Last-Event-ID", progress.FIRST)
    if _STREAM_ID.fullmatch(last_id) is None:
        return HttpResponseBadRequest("Last-Event-ID must be the id of an event, like 1700000000000-0\n", "text/plain")
    state = await _state(number)
    if state is None:
        raise Http404(f"There is no run {number}.")
    once = flag_in(request, "once")
    response = StreamingHttpResponse(
        _stream(number, state, position_of(last_id), once=once), content_type="text/event-stream"
    )
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response


async def _state(number: int) -> str | None:
    """Query the state of a run in a thread of the loop, because the thread of the first viewer ends with its
    request.
    """
    return await sync_to_async(_state_now, thread_sensitive=False)(number)


def _state_now(number: int) -> str | None:
    """Return the state of a run, and close the connection, because a stream may last hours and PostgreSQL has few."""
    try:
        return Run.objects.filter(number=number).values_list("state", flat=True).first()
    finally:
        connection.close()


async def _stream(number: int, state: str | None, position: Position, *, once: bool) -> AsyncIterator[str]:
    """End with the event `over`, after which a client must not reconnect."""
    yield f"retry: {POLL_MILLISECONDS if once else RETRY_MILLISECONDS}\n\n"
    async with Broadcast.joined(number, state, _state) as broadcast:
        while not broadcast.ended and not (once and broadcast.complete):
            seen = broadcast.changes  # before the read, so that events during the sending are not missed
            position, text = broadcast.after(position)
            yield text or ": still here\n\n"
            await broadcast.change(seen)
        position, text = broadcast.after(position)
        if text:
            yield text
        if broadcast.over:
            yield f"event: over\ndata: {json.dumps({'state': broadcast.state})}\n\n"
        elif broadcast.ended:
            yield ": progress is not available now\n\n"
