# SPDX-License-Identifier: BSD-2-Clause
"""States of a database, a Redis or a disk that end by themselves: starting up, loading, read-only, full.

Each server really is in that state. Pages respond, with 503 and Retry-After if they cannot work, and never with 500.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from runners.services import supervisor
from tests import clusters
from tests.installation import ROOT, Installation, Reply, installed
from tests.waiting import wait_for

RECOVERY_SECONDS = 5.0


@contextmanager
def disk(path: Path, size: str) -> Iterator[None]:
    """Mount a separate disk on a directory."""
    path.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "none", path], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


def fill(path: Path, name: str = "filler") -> Path:
    """Fill a disk to its last byte, with a file."""
    filler = path / name
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            pass
    return filler


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """PostgreSQL, Redis and temporary files have small disks."""
    folder = tmp_path_factory.mktemp("states")
    var, temporary = folder / "var", folder / "tmp"
    with (
        disk(var / "redis", "3m"),
        disk(temporary, "1m"),
        disk(folder / "postgresql", "250m"),
    ):
        layout = supervisor.Layout.of(var)
        clusters.provide(layout)
        (layout.postgresql_data).rename(var / "made")
        subprocess.run(["cp", "-a", f"{var}/made/.", folder / "postgresql"], check=True)
        (folder / "postgresql").chmod(0o700)
        supervisor._own(folder / "postgresql", "postgres")
        layout.postgresql_data.symlink_to(folder / "postgresql")
        with installed(var, TMPDIR=str(temporary)) as installation:
            yield installation


@pytest.fixture(autouse=True)
def site_works(site: Installation) -> Iterator[None]:
    wait_for(lambda: site.get("/runs/").status == 200, "the first page")
    yield
    assert "Internal Server Error" not in site.log("web")
    assert "Traceback" not in site.log("web")


def guess(site: Installation) -> Reply:
    """Sign in with a wrong password, each time with another name: the limit is ten guesses for a name."""
    return site.sign_in(f"nobody {time.monotonic_ns()}", "wrong")


def unavailable(reply: Reply, part: str) -> bool:
    """Whether a response names the unavailable part and has Retry-After."""
    assert reply.status in {200, 302, 403, 503}, reply
    if reply.status == 503:
        headers = {name.lower(): value for name, value in reply.headers.items()}
        assert int(headers["retry-after"]) > 0
        assert part in reply.text or "/health/ names it" in reply.text  # the API
        assert "Traceback" not in reply.text
    return reply.status == 503


def recovers(site: Installation) -> None:
    """Assert that from RECOVERY_SECONDS after now on each request succeeds."""
    back = time.monotonic()
    wait_for(lambda: time.monotonic() - back >= RECOVERY_SECONDS, "the time that recovery may take")
    with ThreadPoolExecutor(20) as pool:
        assert {reply.status for reply in pool.map(site.get, ["/runs/", "/api/v1/runs"] * 10)} == {200}
    assert guess(site).status == 200


def refusal(site: Installation) -> str:
    """Return PostgreSQL's response to a new connection."""
    try:
        psycopg.connect(f"host={site.layout.postgresql_sockets} user=postgres dbname=postgres").close()
    except psycopg.OperationalError as error:
        return str(error)
    return ""


def test_postgresql_starts_up(site: Installation) -> None:
    """In recovery, without hot standby, it refuses connections with 57P03 until it is promoted."""
    data = site.layout.postgresql_data
    supervisor.stop(site.layout, ["postgresql"])
    settings = data / "postgresql.auto.conf"
    settings.write_text(f"{settings.read_text()}hot_standby = off\n")
    (data / "standby.signal").touch()
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(site.start, "postgresql")
        wait_for(lambda: "database system is" in refusal(site), "PostgreSQL in recovery")
        try:
            for path in ("/", "/runs/", "/testbeds/", "/metrics", "/api/v1/runs"):
                assert unavailable(site.get(path), "database"), path
            assert "database system is" in refusal(site)
        finally:
            (data / "promote").touch()
            os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGUSR1)
            started.result()
    recovers(site)


def test_postgresql_ends_connections_while_pages_are_read(site: Installation) -> None:
    """57P01, as at a restart: during requests, and for those in the pool."""
    address = f"host={site.layout.postgresql_sockets} user=postgres dbname=postgres"
    cut = b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'perfweb'"
    with ThreadPoolExecutor(10) as pool, psycopg.connect(address, autocommit=True) as connection:
        replies = pool.map(site.get, ["/runs/", "/", "/api/v1/runs"] * 40)
        for _ in range(40):
            connection.execute(cut)
        for reply in replies:
            unavailable(reply, "database")
    recovers(site)


def test_postgresql_has_no_connection_left(site: Installation) -> None:
    """53300: other programs hold all connections except those of the superuser."""
    address = f"host={site.layout.postgresql_sockets} user=perfweb dbname=perfweb"
    held = []
    try:
        while True:
            held.append(psycopg.connect(address))
    except psycopg.OperationalError as error:
        assert "connection" in str(error)  # noqa: PT017
    superuser = f"host={site.layout.postgresql_sockets} user=postgres dbname=postgres"
    ours = [connection.info.backend_pid for connection in held]
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'perfweb' AND pid <> ALL (%s)",
            [ours],
        )
        for _ in range(100):
            try:
                held.append(psycopg.connect(address))
            except psycopg.OperationalError:
                break
        assert unavailable(site.get("/runs/"), "database")
    for one in held:
        one.close()
    recovers(site)


STORE = """
import os
from django.utils import timezone
from perfweb.faults.models import Fault
from runners.db_retry import retry_db
text = os.urandom(3 << 20).hex()
now = timezone.now()
retry_db(lambda: Fault.objects.create(task="store", item=text[:64], error=text, advice="", first=now, last=now))
print("stored", text[:64])
"""


def refuse_connections(data: Path) -> list[Path]:
    """Fill PostgreSQL's disk without the files that a connection to a database then has to write; return the fillers.

    A connection that ends meanwhile may have written one.
    """
    fillers: list[Path] = []
    while written := list(data.rglob("pg_internal.init")):
        for path in written:
            path.unlink()
        fillers.append(fill(data, f"filler{len(fillers)}"))
    return fillers


@pytest.mark.parametrize("connecting", [False, True], ids=["writing", "connecting"])
def test_disk_of_postgresql_is_full(site: Installation, connecting: bool) -> None:
    """53100, or no new connection: a result waits, /health/ names the disk, and the result is stored whole when there
    is space. A database that is away for another reason is given up at once here.
    """
    address = f"host={site.layout.postgresql_sockets} user=postgres dbname=perfweb"
    data = site.layout.postgresql_data.resolve()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
        fillers = refuse_connections(data) if connecting else [fill(data)]
        if connecting:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'perfweb'")
        writer = subprocess.Popen(
            [sys.executable, "manage.py", "shell", "-c", STORE],
            cwd=ROOT, env=site.environment | {"PERFWEB_DATABASE_PATIENCE": "0"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert writer.stdout
        assert writer.stderr
        lines: list[str] = []
        while "trying again" not in "".join(lines):
            lines.append(writer.stderr.readline())
            assert lines[-1], lines
        assert unavailable(site.get("/runs/"), "database") == connecting
        unavailable(guess(site), "database")
        wait_for(lambda: "its disk is full" in site.get("/health/").text, "/health/ that names the full disk")
        assert writer.poll() is None
        for filler in fillers:
            filler.unlink()
        printed, _ = writer.communicate(timeout=120)
        item = printed.split()[-1]
        found = connection.execute("SELECT length(error) FROM faults_fault WHERE item = %s", [item]).fetchall()
        connection.execute("DELETE FROM faults_fault")
    assert found == [(6 << 20,)]
    wait_for(lambda: "its disk is full" not in site.get("/health/").text, "/health/ after there is room")
    recovers(site)


def test_disk_of_redis_is_full(site: Installation) -> None:
    """MISCONF: requests that need a counter wait, reading continues."""
    filler = fill(site.layout.redis_data)
    with redis.Redis.from_url(f"unix://{site.layout.redis_socket}") as client:

        def refused() -> bool:
            try:
                client.set("large", "x" * 100_000)
            except redis.ResponseError as error:
                assert "MISCONF" in str(error)  # noqa: PT017
                return True
            return False

        wait_for(refused, "Redis without space")
        assert site.get("/runs/").status == 200
        assert unavailable(guess(site), "Redis")
        filler.unlink()
        wait_for(lambda: not refused(), "Redis with space")
        client.delete("large")
    recovers(site)


def test_redis_takes_no_changes(site: Installation) -> None:
    """READONLY, as of a replica."""
    with redis.Redis.from_url(f"unix://{site.layout.redis_socket}") as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        assert site.get("/runs/").status == 200
        assert unavailable(guess(site), "Redis")
        client.execute_command("REPLICAOF", "NO", "ONE")
    recovers(site)


def test_redis_loads_its_data(site: Installation, tmp_path: Path) -> None:
    """LOADING: a server that takes 20 ms to load each of its 2000 keys replaces the real one."""
    supervisor.stop(site.layout, ["redis"])
    argv = [
        "redis-server", "--port", "0", "--unixsocket", str(site.layout.redis_socket), "--dir", str(tmp_path),
        "--save", "1000 1000", "--loglevel", "warning",
    ]  # fmt: skip
    client = redis.Redis.from_url(f"unix://{site.layout.redis_socket}")

    def reports(words: str) -> bool:
        try:
            return bool(client.ping()) and not words
        except redis.ConnectionError as error:
            return bool(words) and words in str(error)

    first = subprocess.Popen(argv)
    wait_for(lambda: reports(""), "the server that makes the data")
    client.mset({f"key {number}": "x" * 100 for number in range(2000)})
    client.shutdown(save=True)
    first.wait(60)
    slow = subprocess.Popen([*argv, "--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024"])
    try:
        wait_for(lambda: reports("loading"), "the server that loads")
        assert site.get("/runs/").status == 200
        assert unavailable(guess(site), "Redis")
        assert reports("loading")
    finally:
        slow.kill()
        slow.wait()
        site.start("redis")
    recovers(site)


def upload(site: Installation) -> Reply:
    """Send a form with a file of 3 MiB, and without the token against forgery."""
    part = 'Content-Disposition: form-data; name="a"; filename="a"\r\n\r\n' + "a" * (3 << 20)
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    return site.ask("POST", "/account/sign-in/", headers, f"--x\r\n{part}\r\n--x--\r\n")


@pytest.mark.parametrize("options", ["size=1m", "ro"])
def test_disk_of_uploads_takes_nothing(site: Installation, options: str) -> None:
    """ENOSPC and EROFS while the body of a request is received."""
    temporary = site.environment["TMPDIR"]
    subprocess.run(["mount", "-o", f"remount,{options}", temporary], check=True)
    try:
        assert unavailable(upload(site), "disk")
        assert site.get("/runs/").status == 200
    finally:
        subprocess.run(["mount", "-o", "remount,rw,size=8m", temporary], check=True)
    assert upload(site).status == 403
    recovers(site)
