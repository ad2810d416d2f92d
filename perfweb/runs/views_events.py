# SPDX-License-Identifier: BSD-2-Clause
"""Progress of a run as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

The id of an event is its id in the run's stream; a browser that lost the connection sends it back as Last-Event-ID and
misses nothing.
"""

import json
import re
from collections.abc import AsyncIterator

import redis
from django.http import Http404, HttpRequest, HttpResponseBadRequest, HttpResponseBase, StreamingHttpResponse

from perfweb.runs import progress
from perfweb.runs.models import Run, RunState

KEEP_ALIVE_SECONDS = 10.0
RETRY_MILLISECONDS = 3000
_STREAM_ID = re.compile(r"\d{1,20}-\d{1,20}", re.ASCII)
_FINAL = {RunState.DONE.value, RunState.FAILED.value, RunState.CANCELLED.value, RunState.INTERRUPTED.value}


async def events(request: HttpRequest, number: int) -> HttpResponseBase:
    """GET /runs/<number>/events: all events after Last-Event-ID, then new ones until the run is over."""
    last_id = request.headers.get("Last-Event-ID", progress.FIRST)
    if _STREAM_ID.fullmatch(last_id) is None:
        return HttpResponseBadRequest("Last-Event-ID must be the id of an event, like 1700000000000-0\n", "text/plain")
    run = await Run.objects.filter(number=number).afirst()
    if run is None:
        raise Http404(f"There is no run {number}.")
    response = StreamingHttpResponse(_stream(run, last_id), content_type="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response


async def _stream(run: Run, last_id: str) -> AsyncIterator[str]:
    """Ends with the event `over`, after which a client need not come again."""
    yield f"retry: {RETRY_MILLISECONDS}\n\n"
    try:
        async for event in progress.follow(run.number, last_id, KEEP_ALIVE_SECONDS if not run.is_over else 0.1):
            if event is not None:
                yield f"id: {event.id}\nevent: {event.name}\ndata: {json.dumps(event.values)}\n\n"
            if event is None:
                yield ": still here\n\n"
                await run.arefresh_from_db(fields=["state"])
            # A run may have gone on after an end that is in the stream, so only what the database says counts.
            elif event.name == "state" and event.values.get("state") in _FINAL:
                await run.arefresh_from_db(fields=["state"])
            if run.is_over and (event is None or event.values.get("state") == run.state):
                yield f"event: over\ndata: {json.dumps({'state': run.state})}\n\n"
                return
    except (redis.RedisError, OSError):
        yield ": progress is not available now\n\n"
