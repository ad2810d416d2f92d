# SPDX-License-Identifier: BSD-2-Clause
"""Page times with idle connections and viewers of a run; the time from database recovery to the first page.

    python -m tests.bench.connections --var var/connections [--idle 2000] [--viewers 1000] [--pages 200]

It starts a private installation. Idle connections that the server closes are reopened, as an attacker would do.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import selectors
import socket
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import redis

from tests.installation import Installation, installed

PATHS = ("/", "/runs/", "/testbeds/", "/api/v1/runs")
CREATE_RUN = """
from perfweb.runs.models import RunState
from tests.factories import create_queued_run
print(create_queued_run(state=RunState.RUNNING).number)
"""


class Clients:
    """A process whose connections are held open, and reopened when the server closes one."""

    def __init__(self, address: tuple[str, int], wanted: int, first_bytes: bytes) -> None:
        self._pipe, there = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=hold, args=(there, address, wanted, first_bytes), daemon=True)
        self._process.start()
        self.count()

    def count(self) -> dict[str, int]:
        """Numbers of connections: `open`, `closed` by the server, with a response (`answered`), and status codes."""
        self._pipe.send("count")
        found: dict[str, int] = self._pipe.recv()
        return found

    def end(self) -> None:
        """Close all."""
        self._process.kill()
        self._process.join()


def hold(pipe: Connection, address: tuple[str, int], wanted: int, first_bytes: bytes) -> None:
    """Hold connections for ever, and answer each query with the counts."""
    clients = selectors.DefaultSelector()
    counts: Counter[str] = Counter()
    answered: set[socket.socket] = set()

    def connect() -> None:
        client = socket.create_connection(address, timeout=60)
        client.sendall(first_bytes)
        client.setblocking(False)
        clients.register(client, selectors.EVENT_READ)

    for _ in range(wanted):
        connect()
    while True:
        for key, _ in clients.select(0.1):
            client = cast("socket.socket", key.fileobj)
            try:
                data = client.recv(65536)
            except OSError:
                data = b""
            if not data:
                counts["closed"] += 1
                clients.unregister(client)
                answered.discard(client)
                client.close()
                connect()
            elif client not in answered:
                answered.add(client)
                counts[f"status {data[9:12].decode(errors='replace')}"] += 1
        if pipe.poll():
            pipe.recv()
            pipe.send({"open": len(clients.get_map()), "answered": len(answered), **counts})


def percentile(values: list[float], share: float) -> float:
    """The value that `share` of the values do not exceed."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def time_pages(site: Installation, count: int, words: str) -> None:
    """Request `count` pages one after the other and print their times in milliseconds."""
    seconds: list[float] = []
    statuses: dict[int, int] = {}
    for number in range(count):
        begin = time.perf_counter()
        status = site.get(PATHS[number % len(PATHS)]).status
        seconds.append(time.perf_counter() - begin)
        statuses[status] = statuses.get(status, 0) + 1
    p50, p95 = statistics.median(seconds) * 1000, percentile(seconds, 0.95) * 1000
    print(
        f"{words:46} p50 {p50:6.0f} ms   p95 {p95:6.0f} ms   max {max(seconds) * 1000:6.0f} ms   {statuses}", flush=True
    )


def redis_clients(site: Installation) -> int:
    """Return the number of Redis connections, without that of this query."""
    with redis.Redis(unix_socket_path=str(site.layout.redis_socket)) as client:
        return int(client.info("clients")["connected_clients"]) - 1


def publish(site: Installation, run: str, ended: threading.Event) -> None:
    """Publish two events a second, the max rate of a run."""
    with redis.Redis(unix_socket_path=str(site.layout.redis_socket)) as client:
        while not ended.wait(0.5):
            client.xadd(f"run:{run}", {"name": "eta", "values": json.dumps({"seconds": 60, "fraction": 0.5})})


def recovery(site: Installation, words: str, away: Callable[[], None]) -> None:
    """Stop and restart PostgreSQL; print the time from its first response to the first page."""
    for _ in range(40):
        threading.Thread(target=site.get, args=("/runs/",)).start()
    time.sleep(3)
    away()
    back = time.perf_counter()
    errors: dict[int, int] = {}
    while (status := site.get("/runs/").status) != 200:
        errors[status] = errors.get(status, 0) + 1
    print(
        f"{words:46} {time.perf_counter() - back:6.2f} s from database back to first page, before it {errors}",
        flush=True,
    )


def killed_for(site: Installation, seconds: float) -> None:
    """Kill PostgreSQL, request pages all the time, and start it again."""
    site.kill("postgresql")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        site.get("/runs/")
    site.start("postgresql")


def main() -> None:
    """Command line; see the top of this file."""
    parser = argparse.ArgumentParser(prog="tests.bench.connections", description=__doc__)
    parser.add_argument("--var", type=Path, required=True)
    parser.add_argument("--idle", type=int, default=2000)
    parser.add_argument("--viewers", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=200)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with installed(options.var) as site:
        run = site.manage("shell", "--no-imports", "-c", CREATE_RUN).strip()
        for path in PATHS:
            site.get(path)
        time_pages(site, options.pages, "nothing else")
        print(f"Redis connections: {redis_clients(site)}")
        ended = threading.Event()
        threading.Thread(target=publish, args=(site, run, ended), daemon=True).start()
        idle = Clients(site.address, options.idle, b"")
        time_pages(site, options.pages, f"{options.idle} idle connections")
        request = f"GET /runs/{run}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
        viewers = Clients(site.address, options.viewers, request.encode())
        deadline = time.monotonic() + 120
        while viewers.count()["answered"] < options.viewers and time.monotonic() < deadline:
            time.sleep(0.2)
        time_pages(site, options.pages, f"{options.idle} idle connections, {options.viewers} viewers of a run")
        print(f"viewers: {viewers.count()}\nidle connections: {idle.count()}")
        print(f"Redis connections: {redis_clients(site)}")
        ended.set()
        viewers.end()
        idle.end()
        recovery(site, "PostgreSQL killed and started", lambda: killed_for(site, 0))
        recovery(site, "PostgreSQL killed, away for a minute", lambda: killed_for(site, 60))


if __name__ == "__main__":
    main()
