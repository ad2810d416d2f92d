# SPDX-License-Identifier: BSD-2-Clause
"""Limits on connections, requests, bodies and streams of events, through real sockets."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import uvicorn

from perfweb import server
from perfweb.proxies import TrustedProxies, networks
from perfweb.serving.connections import ConnectionLimits, Places

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Respond when the request is complete; /wait never, /much with 16 MB."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    if scope["path"] in {"/wait", "/runs/1/events"} and scope["query_string"] != b"once":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        await receive()
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    size = 16 * 1024 * 1024 if scope["path"] == "/much" else 2
    await send({"type": "http.response.body", "body": b"o" * size})


@asynccontextmanager
async def serving(app: Any = application) -> AsyncIterator[Callable[[bytes], Awaitable[Stream]]]:
    """A web server with the service's protocol; yield a function that connects and sends something."""
    config = uvicorn.Config(app, port=0, http=server.Protocol, log_level="error", proxy_headers=False, lifespan="off")
    running = uvicorn.Server(config)
    running.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(running._serve())
    while not running.started:
        await asyncio.sleep(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    writers = []

    async def connect(data: bytes) -> Stream:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        writer.write(data)
        return reader, writer

    try:
        yield connect
    finally:
        for writer in writers:
            writer.transport.abort()
        running.should_exit = running.force_exit = True
        await task


async def status(stream: Stream) -> bytes:
    return (await stream[0].readline())[9:12]


async def closed(stream: Stream) -> bool:
    """Wait until the server has closed a connection."""
    try:
        while await stream[0].read(65536):
            pass
    except ConnectionResetError:
        pass
    return True


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.2)
    monkeypatch.setattr(server, "WRITE_SECONDS", 0.2)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("data", [b"", b"G", HEAD[:-2], HEAD + HEAD[:-2], b"POST / HTTP/1.1\r\n"])
async def test_idle_connections_and_slow_headers_are_closed(data: bytes) -> None:
    async with serving() as connect:
        assert await closed(await connect(data))


@pytest.mark.usefixtures("impatient")
async def test_one_byte_after_another_does_not_keep_a_connection_open() -> None:
    async with serving() as connect:
        reader, writer = await connect(b"GET / HTTP/1.1\r\nX-a: ")
        ended = asyncio.create_task(closed((reader, writer)))
        while not ended.done():
            writer.write(b"a")
            await asyncio.sleep(0.02)


@pytest.mark.usefixtures("impatient")
async def test_a_client_that_does_not_read_is_cut_off() -> None:
    ended = asyncio.Event()

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        await application(scope, receive, send)
        while (await receive())["type"] != "http.disconnect":
            pass
        ended.set()

    async with serving(watched) as connect:
        _, writer = await connect(HEAD.replace(b"/ ", b"/much "))
        cast("asyncio.ReadTransport", writer.transport).pause_reading()
        await ended.wait()


@pytest.mark.usefixtures("impatient")
async def test_an_answer_may_take_longer() -> None:
    async with serving() as connect:
        stream = await connect(HEAD.replace(b"/ ", b"/wait "))
        assert await status(stream) == b"200"
        await asyncio.sleep(0.5)  # more than an idle connection may take
        assert not stream[0].at_eof()


async def test_at_the_limit_the_longest_idle_connection_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.Protocol, "most", 5)
    async with serving() as connect:
        idle = [await connect(b"") for _ in range(5)]
        assert await status(await connect(HEAD)) == b"200"
        assert await closed(idle[0])
        assert not idle[-1][0].at_eof()


def limited(**limits: Any) -> Any:
    usual = {"bodies": Places(9, 9), "requests": Places(9, 9), "streams": Places(9, 9), "body_seconds": 30.0}
    made = ConnectionLimits(application, **{**usual, **limits})
    return TrustedProxies(made, networks("127.0.0.1"))


def asking(path: str, address: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {address}\r\n\r\n".encode()


async def test_streams_have_a_limit_for_each_network_and_in_all() -> None:
    async with serving(limited(streams=Places(3, 2))) as connect:
        events = "/runs/1/events"
        first = [await connect(asking(events, f"2001:db8::{number}")) for number in range(2)]
        assert [await status(stream) for stream in first] == [b"200", b"200"]
        refused = await connect(asking(events, "2001:db8::9"))
        assert await status(refused) == b"503"
        assert b"retry-after: 5" in await refused[0].readuntil(b"\r\n\r\n")
        assert await status(await connect(asking(f"{events}?once", "2001:db8::9"))) == b"200"
        assert await status(await connect(asking(events, "198.51.100.1"))) == b"200"
        assert await status(await connect(asking(events, "198.51.100.2"))) == b"503"
        assert await status(await connect(asking("/", "198.51.100.2"))) == b"200"
        first[0][1].transport.abort()
        answer = b"503"
        while answer == b"503":  # until the server has noticed it
            answer = await status(await connect(asking(events, "198.51.100.2")))
        assert answer == b"200"


async def test_requests_at_once_have_a_limit() -> None:
    async with serving(limited(requests=Places(2, 1))) as connect:
        assert await status(await connect(asking("/wait", "198.51.100.1"))) == b"200"
        assert await status(await connect(asking("/", "198.51.100.1"))) == b"503"
        assert await status(await connect(asking("/", "198.51.100.2"))) == b"200"


async def test_bodies_that_do_not_end_have_a_time_and_a_limit() -> None:
    part = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nX-Forwarded-For: 198.51.100.1\r\n\r\na="
    async with serving(limited(bodies=Places(1, 1), body_seconds=0.3)) as connect:
        slow = await connect(part)
        assert await status(slow) == b"408"
    async with serving(limited(bodies=Places(1, 1))) as connect:
        await connect(part)
        answer = b"408"
        while answer != b"503":  # until the first one has its place
            answer = await status(await connect(part))
        assert await status(await connect(asking("/", "198.51.100.1"))) == b"200"


def test_the_file_limit_is_raised_or_reported_as_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [(1024, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: limits.append(wanted))
    assert server.raise_file_limit(1000) == 1000
    assert limits[-1] == (4096, 4096)
    assert server.raise_file_limit(5000) == 4096 - server.RESERVED_FILES
    limits.append((100, 100))
    with pytest.raises(SystemExit, match="open files are too few"):
        server.raise_file_limit(1000)
