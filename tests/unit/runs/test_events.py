# SPDX-License-Identifier: BSD-2-Clause
"""Live progress through a real Redis, and as server-sent events."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest
import redis
from asgiref.sync import sync_to_async
from django.db import connections
from django.http import StreamingHttpResponse
from django.test import AsyncClient
from pytest_django import Settings

from perfweb import redisclient
from perfweb.runs import progress
from perfweb.runs.broadcast import Broadcast
from perfweb.runs.models import Run, RunState
from tests.factories import create_queued_run

NUMBER = 2_000_000_001


@pytest.fixture(autouse=True)
def _clean_stream(settings: Settings) -> Iterator[None]:
    client = redis.Redis.from_url(settings.REDIS_URL)
    client.delete(f"run:{NUMBER}")
    yield
    client.delete(f"run:{NUMBER}")


def test_events_come_back_in_order_and_from_where_one_was() -> None:
    for share in (0.0, 0.5, 1.0):
        progress.publish(NUMBER, "eta", seconds=3, fraction=share)
    events = progress.progress_since(NUMBER)
    assert [event.values["fraction"] for event in events] == [0.0, 0.5, 1.0]
    assert progress.progress_since(NUMBER, events[0].id) == events[1:]
    assert progress.progress_since(NUMBER, events[-1].id) == []


def test_without_redis_nothing_fails(settings: Settings) -> None:
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    redisclient.client.cache_clear()
    try:
        progress.publish(NUMBER, "eta", seconds=3)
        assert progress.progress_since(NUMBER) == []
    finally:
        redisclient.client.cache_clear()


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    """Close the connections of the thread in which the views use the database, so that it can be removed."""
    yield AsyncClient()
    await sync_to_async(connections.close_all)()


async def read(client: AsyncClient, number: int, last_id: str = "") -> str:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    response = await client.get(f"/runs/{number}/events", headers=headers)
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/event-stream"
    parts = cast("AsyncIterator[bytes]", cast("StreamingHttpResponse", response).streaming_content)
    return b"".join([part async for part in parts]).decode()


async def finished_run() -> Run:
    run = await Run.objects.acreate(
        number=NUMBER, plan=(await _template()).plan, testbed=(await _template()).testbed, state=RunState.DONE
    )
    progress.publish(NUMBER, "state", state="running", reason="")
    progress.publish(NUMBER, "state", state="done", reason="")
    return run


async def _template() -> Run:
    return await sync_to_async(create_queued_run)()


@pytest.mark.django_db(transaction=True)
async def test_stream_of_a_finished_run_ends_by_itself(client: AsyncClient) -> None:
    await finished_run()
    text = await read(client, NUMBER)
    assert text.startswith("retry: 3000\n\n")
    assert text.count("event: state\n") == 2
    assert text.endswith('event: over\ndata: {"state": "done"}\n\n')


@pytest.mark.django_db(transaction=True)
async def test_last_event_id_is_honoured(client: AsyncClient) -> None:
    await finished_run()
    first, last = progress.progress_since(NUMBER)
    text = await read(client, NUMBER, first.id)
    assert first.id not in text
    assert f"id: {last.id}\n" in text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("number", "last_id", "status"), [(4711, "", 404), (4711, "x; y", 400)])
async def test_bad_requests(client: AsyncClient, number: int, last_id: str, status: int) -> None:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    assert (await client.get(f"/runs/{number}/events", headers=headers)).status_code == status


@pytest.mark.django_db(transaction=True)
async def test_without_redis_the_stream_sends_an_error_and_ends(client: AsyncClient, settings: Settings) -> None:
    await finished_run()
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    assert "progress is not available now" in await read(client, NUMBER)


@pytest.mark.django_db(transaction=True)
async def test_a_poll_ends_at_once_with_what_there_is(client: AsyncClient) -> None:
    run = await finished_run()
    await Run.objects.filter(pk=run.pk).aupdate(state=RunState.RUNNING)
    response = await client.get(f"/runs/{NUMBER}/events?once")
    parts = cast("AsyncIterator[bytes]", cast("StreamingHttpResponse", response).streaming_content)
    text = b"".join([part async for part in parts]).decode()
    assert text.startswith("retry: 15000\n\n")
    assert text.count("event: state\n") == 2
    assert "event: over" not in text


@pytest.mark.django_db(transaction=True)
async def test_stream_of_a_deleted_run_ends(client: AsyncClient) -> None:
    run = await finished_run()
    await Run.objects.filter(pk=run.pk).aupdate(state=RunState.RUNNING)
    response = await client.get(f"/runs/{NUMBER}/events")
    parts = aiter(cast("AsyncIterator[bytes]", cast("StreamingHttpResponse", response).streaming_content))
    first = await anext(parts)
    await Run.objects.filter(pk=run.pk).adelete()
    text = b"".join([first, *[part async for part in parts]]).decode()
    assert text.endswith('event: over\ndata: {"state": null}\n\n')


def test_viewers_in_two_event_loops_have_a_reader_each() -> None:
    """A future of one loop never wakes a task of another."""
    joined = threading.Barrier(2)

    async def state_of(_number: int) -> str:
        await asyncio.to_thread(joined.wait)
        return "done"

    async def view() -> bool:
        async with Broadcast.joined(NUMBER, "running", state_of) as broadcast:
            while not broadcast.ended:
                await broadcast.change(broadcast.changes)
            return broadcast.over

    with ThreadPoolExecutor(2) as pool:
        views = [pool.submit(asyncio.run, view()) for _ in range(2)]
        assert [one.result(timeout=120) for one in views] == [True, True]


VIEWERS = 200


async def first_events(address: str, number: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a stream and read up to the end of its first event."""
    host, port = address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET /runs/{number}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert b" 200 " in await reader.readline()
    await reader.readuntil(b"data: ")
    return reader, writer


def readers() -> int:
    """The number of Redis connections that wait for events."""
    return sum(one["cmd"] == "xread" for one in redisclient.client().client_list())


@pytest.mark.django_db(transaction=True)
def test_all_viewers_of_a_run_share_one_reader(asgi_server: str) -> None:
    number = create_queued_run(state=RunState.RUNNING).number
    progress.begin(number)
    progress.publish(number, "eta", seconds=60, fraction=0.25)

    async def view() -> None:
        streams = [await first_events(asgi_server, number) for _ in range(VIEWERS)]
        assert await asyncio.to_thread(readers) == 1
        await asyncio.to_thread(progress.publish, number, "eta", seconds=30, fraction=0.5)
        for reader, _ in streams:
            assert b'"fraction": 0.5' in await reader.readuntil(b'"fraction": 0.5')
        for _, writer in streams:
            writer.transport.abort()
        while await asyncio.to_thread(readers):  # until the server has noticed that they are gone
            await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(view(), 120))
