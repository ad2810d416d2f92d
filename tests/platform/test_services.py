# SPDX-License-Identifier: BSD-2-Clause
"""The private databases: started twice, after a crash, in an unusual place; other databases are not touched."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from playbooks.module_utils import processes
from runners.paths import SOCKET_PATH_LIMIT, UnsafeDirectoryError, require_private, socket_directory
from runners.services import supervisor
from runners.services.supervisor import Layout


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    """An installation of its own, with the databases running."""
    made = Layout.of(tmp_path_factory.mktemp("installation") / "var")
    supervisor.write_environment(made)
    supervisor.start_postgresql(made)
    supervisor.start_redis(made)
    yield made
    supervisor.stop(made, list(supervisor.STARTERS))


def connect(layout: Layout) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(host=str(layout.postgresql_sockets), user="perfweb", dbname="perfweb")


def test_the_databases_answer_on_their_sockets_and_nowhere_else(layout: Layout) -> None:
    with connect(layout) as connection:
        row = connection.execute("SELECT current_user, current_setting('listen_addresses')").fetchone()
    assert row == ("perfweb", "")
    client = redis.Redis(unix_socket_path=str(layout.redis_socket))
    assert client.ping()
    assert client.config_get("port") == {"port": "0"}


def test_the_service_is_no_superuser_of_its_database(layout: Layout) -> None:
    with connect(layout) as connection:
        assert connection.execute("SELECT usesuper FROM pg_user WHERE usename = 'perfweb'").fetchone() == (False,)


def test_nobody_else_reaches_the_databases(layout: Layout) -> None:
    for directory in (layout.postgresql_sockets, layout.redis_socket.parent, layout.postgresql_data):
        assert directory.stat().st_mode & 0o077 == 0
    assert layout.secret_key_file.stat().st_mode & 0o777 == 0o600
    assert len(layout.secret_key_file.read_text().strip()) >= 50


def test_starting_twice_changes_nothing(layout: Layout) -> None:
    before = [processes.running(layout.pid_file(name)) for name in supervisor.DATABASES]
    key = layout.secret_key_file.read_text()
    assert supervisor.main(["--var", str(layout.var), "start", *supervisor.DATABASES]) == 0
    assert [processes.running(layout.pid_file(name)) for name in supervisor.DATABASES] == before
    assert layout.secret_key_file.read_text() == key


def test_a_database_that_was_killed_comes_back_with_its_data(layout: Layout) -> None:
    with connect(layout) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (value int)")
        connection.execute("INSERT INTO kept VALUES (2005)")
    server = processes.running(layout.pid_file("postgresql"))
    assert server is not None
    processes.signal_process(server, signal.SIGKILL)
    assert processes.wait_until_gone(server, 5)
    supervisor.start_postgresql(layout)
    with connect(layout) as connection:
        assert connection.execute("SELECT value FROM kept").fetchone() == (2005,)


def test_stopping_twice_is_no_error_and_leaves_no_process(layout: Layout) -> None:
    running = [processes.running(layout.pid_file(name)) for name in supervisor.DATABASES]
    assert all(running)
    for _ in range(2):
        assert supervisor.main(["--var", str(layout.var), "stop"]) == 0
    assert not any(process and process.alive() for process in running)
    supervisor.start_postgresql(layout)
    supervisor.start_redis(layout)


def test_a_stale_pid_file_of_another_process_is_left_alone(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path / "var")
    me = processes.identify(os.getpid())
    assert me is not None
    processes.write_pid_file(layout.pid_file("redis"), dataclasses.replace(me, started=me.started - 1))
    supervisor.start_redis(layout)
    try:
        assert redis.Redis(unix_socket_path=str(layout.redis_socket)).ping()
    finally:
        supervisor.stop(layout, ["redis"])


def test_a_service_that_cannot_start_reports_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "START_SECONDS", 1.0)
    layout = Layout.of(tmp_path / "var")
    layout.redis_socket.mkdir(parents=True)
    with pytest.raises(supervisor.ServiceError, match="redis did not start within 1 s") as caught:
        supervisor.start_redis(layout)
    assert "Failed opening Unix socket" in str(caught.value)
    assert processes.running(layout.pid_file("redis")) is None


def test_a_server_without_a_record_is_not_treated_as_our_own(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "START_SECONDS", 1.0)
    kept = layout.pid_file("postgresql").rename(tmp_path / "kept")
    try:
        with pytest.raises(supervisor.ServiceError, match=r"lock file .* already exists"):
            supervisor.start_postgresql(layout)
    finally:
        kept.rename(layout.pid_file("postgresql"))
    supervisor.start_postgresql(layout)


def test_the_environment_can_be_read_by_a_shell(layout: Layout) -> None:
    program = f'. {layout.run}/env && printf %s "$PERFWEB_PGHOST"'
    shown = subprocess.run(["sh", "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown == str(layout.postgresql_sockets)


FOUND = """
from perfweb.settings import base
print(base.DATABASES, base.REDIS_URL, base.CELERY_BROKER_URL, base.LAB_INVENTORY, base.SITE_URL)
"""


def test_programs_find_the_services_without_their_environment(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path / ("x" * 120) / "var")  # sockets need a shorter path
    try:
        (layout.run / "url").write_text("http://127.0.0.1:8001/\n")
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PERFWEB_")}
        settings = clean | {"PERFWEB_VAR": str(layout.var)}
        found, expected = (
            subprocess.run([sys.executable, "-c", FOUND], env=known, capture_output=True, text=True, check=True).stdout
            for known in (settings, settings | layout.environment())
        )
        assert found == expected
        assert found.endswith(" http://127.0.0.1:8001\n")
    finally:
        shutil.rmtree(layout.run)


def test_a_taken_port_leads_to_the_next_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port: int = taken.getsockname()[1]
        assert port < supervisor.free_port(port) < port + 100


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1", "\uff18\uff10", "8000 "])
def test_what_is_no_port_is_refused_with_an_example(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], port: str
) -> None:
    monkeypatch.setenv("PERFWEB_PORT", port)
    assert supervisor.main(["--var", str(tmp_path / "var"), "start", "web"]) == 1
    assert f"services: PERFWEB_PORT is {port!r}: write a port from 1 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("200 OK", True), ("503 Service Unavailable", False), ("400 Bad Request", False), ("", False)],
)
def test_a_site_is_served_when_its_first_page_is(answer: str, expected: bool) -> None:
    """A server that listens, and refuses or does not know the request, is not serving yet."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def respond() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n".encode() if answer else b"")

        thread = threading.Thread(target=respond)
        thread.start()
        assert supervisor.answers(listening.getsockname()[1]) is expected
        thread.join()


def test_an_unknown_service_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        supervisor.main(["--var", str(tmp_path), "start", "mysql"])
    assert "unknown service 'mysql'" in capsys.readouterr().err


def test_a_long_path_gets_a_short_directory_that_is_always_the_same(tmp_path: Path) -> None:
    wanted = tmp_path / ("x" * 120) / "run"
    short = socket_directory(wanted, 30)
    try:
        assert len(str(short)) + 1 + 30 <= SOCKET_PATH_LIMIT
        assert wanted.resolve() == short
        assert socket_directory(wanted, 30) == short
    finally:
        short.rmdir()


def test_a_link_to_another_temporary_directory_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = tmp_path / ("x" * 120) / "run"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / name))
        assert socket_directory(wanted, 1).parent == tmp_path / name
        assert wanted.resolve().parent == tmp_path / name


def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(UnsafeDirectoryError, match="remove it"):
        require_private(tmp_path)


def test_a_server_is_ready_only_if_it_is_the_one_that_listens() -> None:
    """Another server may take the port between its choice and the start."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert supervisor.listens(os.getpid(), port)
        assert not supervisor.listens(os.getppid(), port)
    assert not supervisor.listens(os.getpid(), port)
    assert not supervisor.listens(2**22, port)


def test_the_test_database_never_waits_for_a_disk_however_it_is_started(tmp_path: Path) -> None:
    made = Layout.of(tmp_path / "var")
    supervisor.make_volatile(made)
    supervisor.start_postgresql(made)
    try:
        with connect(made) as connection:
            for name in supervisor.VOLATILE:
                assert connection.execute("SELECT current_setting(%s)", [name]).fetchone() == ("off",)
    finally:
        supervisor.stop(made, ["postgresql"])


def test_a_database_waits_for_disks_unless_it_is_one_for_tests(layout: Layout) -> None:
    with connect(layout) as connection:
        for name in supervisor.VOLATILE:
            assert connection.execute("SELECT current_setting(%s)", [name]).fetchone() == ("on",)


def test_services_end_at_the_same_time_and_before_the_databases(tmp_path: Path) -> None:
    """The later one ends when the earlier one has its signal, whichever is stopped first."""
    made = Layout.of(tmp_path / "var")
    for name, own, other in (("web", "first", "second"), ("beat", "second", "first")):
        spawn(made, name, f"touch {own}; until [ -e {other} ]; do sleep 0.05; done; touch ended-{name}")
    spawn(made, "redis", "[ -e ended-web ] && [ -e ended-beat ] && touch after")
    supervisor.stop(made, list(supervisor.STARTERS))
    assert (tmp_path / "after").exists()


def spawn(layout: Layout, name: str, last: str) -> None:
    """Start a service that does the last commands when it is stopped, in the folder above its data."""
    folder = layout.var.parent
    script = f"trap '{last}; exit' TERM; touch ready-{name}; while :; do sleep 0.05; done"
    processes.spawn(
        ["sh", "-c", script], pid_file=layout.pid_file(name), log=layout.log(name), cwd=folder, environment=os.environ
    )
    while not (folder / f"ready-{name}").exists():
        time.sleep(0.05)
