# SPDX-License-Identifier: BSD-2-Clause
"""The private services of one installation: databases and the product's own processes.

    python -m runners.services --var var start postgresql redis
    python -m runners.services --var var start web worker messenger beat
    python -m runners.services --var var watch web worker messenger beat
    python -m runners.services --var var stop

PostgreSQL and Redis are Debian's programs with data, sockets and pid files under `var/`; the machine's own clusters are
not used. They listen on UNIX sockets only. Started as root they run as Debian's users for them. All verbs are
idempotent: starting a running service or stopping a stopped one is no error.
"""

from __future__ import annotations

import argparse
import http.client
import os
import pwd
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from playbooks.module_utils import processes
from runners.paths import socket_directory

ROOT = Path(__file__).resolve().parents[2]
POSTGRESQL_BIN = Path("/usr/lib/postgresql/15/bin")
DATABASE = "perfweb"
ROLE = "perfweb"
LONGEST_SOCKET_NAME = len("postgresql/.s.PGSQL.5432")
START_SECONDS = 120.0
ANSWER_SECONDS = 30.0
LAST_PORT = 65535
DATABASES = ("postgresql", "redis")
GRACE_SECONDS = {
    "postgresql": 10,
    "redis": 10,
    "web": 4,
    "worker": 30,
    "messenger": 20,
    "mail": 10,
    "mailbox": 10,
    "beat": 4,
}
"""Max seconds in which each stops; a worker in the middle of a run restores the lab first."""


class ServiceError(RuntimeError):
    """A service could not be started; the message has what to do."""


@dataclass(frozen=True)
class Layout:
    """The paths of an installation, for one value of `--var`."""

    var: Path
    run: Path

    @classmethod
    def of(cls, var: Path) -> Layout:
        """Makes the directories of an installation."""
        var = var.absolute()
        var.mkdir(parents=True, exist_ok=True)
        (var / "log").mkdir(exist_ok=True)
        return cls(var=var, run=socket_directory(var / "run", LONGEST_SOCKET_NAME))

    def pid_file(self, name: str) -> Path:
        """The pid file of a service."""
        return self.run / f"{name}.pid"

    def log(self, name: str) -> Path:
        """The log of a service."""
        return self.var / "log" / f"{name}.log"

    @property
    def postgresql_data(self) -> Path:
        """PGDATA of the private cluster."""
        return self.var / "postgresql"

    @property
    def postgresql_sockets(self) -> Path:
        """Value of PGHOST."""
        return self.run / "postgresql"

    @property
    def redis_data(self) -> Path:
        """The directory of Redis's append-only file."""
        return self.var / "redis"

    @property
    def redis_socket(self) -> Path:
        """The socket of Redis."""
        return self.run / "redis" / "redis.sock"

    @property
    def secret_key_file(self) -> Path:
        """Django's SECRET_KEY."""
        return self.var / "secret_key"

    def environment(self) -> dict[str, str]:
        """The variables through which perfweb's settings find these services."""
        return {
            "PERFWEB_VAR": str(self.var),
            "PERFWEB_PGHOST": str(self.postgresql_sockets),
            "PERFWEB_PGUSER": ROLE,
            "PERFWEB_PGDATABASE": DATABASE,
            "PERFWEB_REDIS_SOCKET": str(self.redis_socket),
            "PERFWEB_SECRET_KEY_FILE": str(self.secret_key_file),
            "PERFWEB_LAB_INVENTORY": str(self.var / "lab" / "inventory.yml"),
        }


def write_environment(layout: Layout) -> None:
    """Writes `run/env` for shells and, the first time, the secret key."""
    if not layout.secret_key_file.exists():
        descriptor = os.open(layout.secret_key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(50) + "\n")
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in layout.environment().items()]
    (layout.run / "env").write_text("".join(lines), encoding="utf-8")


def _searchable(path: Path) -> bool:
    """Returns whether every user can reach a path through its parents."""
    return all(parent.stat().st_mode & 0o001 for parent in path.parents)


def _own(directory: Path, user: str) -> None:
    """Makes a directory that only `user` can enter; as root it belongs to that user."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    if os.geteuid() == 0:
        entry = pwd.getpwnam(user)
        os.chown(directory, entry.pw_uid, entry.pw_gid)


def _as_user(user: str, directory: Path) -> list[str]:
    """Returns the prefix that makes root's command run as `user`; empty for an ordinary user.

    PostgreSQL refuses to run as root. If the installation is in a directory that others cannot enter, the process keeps
    the one capability to pass through it.
    """
    if os.geteuid() != 0:
        return []
    capabilities = [] if _searchable(directory) else ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs", *capabilities, "--"]


def _run(argv: Sequence[str], what: str) -> str:
    """Runs a command to its end; its output becomes the error's text if it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd="/")
    if done.returncode != 0:
        raise ServiceError(f"{what} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _tail(log: Path, lines: int = 15) -> str:
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return "\n".join(text.splitlines()[-lines:])


def _start(
    layout: Layout, name: str, argv: Sequence[str], ready: Callable[[int], bool], cwd: Path | None = None
) -> None:
    """Starts a service unless it runs, and waits until `ready` confirms that the process with its id answers.

    After a kill, a database may find its old children still ending. So a process that ends during the wait is started
    again until the time is up.
    """
    pid_file = layout.pid_file(name)
    deadline = time.monotonic() + START_SECONDS
    process = processes.running(pid_file)
    while time.monotonic() < deadline:
        if process is None or not process.alive():
            processes.stop(pid_file)
            try:
                process = processes.spawn(
                    argv,
                    pid_file=pid_file,
                    log=layout.log(name),
                    cwd=cwd or Path("/"),
                    environment={**os.environ, **layout.environment()},
                )
            except RuntimeError:
                process = None
        elif ready(process.pid):
            return
        time.sleep(0.05)
    processes.stop(pid_file)
    raise ServiceError(
        f"{name} did not start within {START_SECONDS:.0f} s; the end of {layout.log(name)}:\n{_tail(layout.log(name))}"
    )


def _postgresql_admin(layout: Layout, sql: str) -> str:
    host = str(layout.postgresql_sockets)
    psql = [str(POSTGRESQL_BIN / "psql"), "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", host, "-U", "postgres"]
    return _run([*psql, "-d", "postgres", "-c", sql], "psql").strip()


def _initialise_postgresql(layout: Layout) -> None:
    """Makes the cluster; only the operating-system user who made it may connect."""
    data = layout.postgresql_data
    if (data / "PG_VERSION").exists():
        return
    shutil.rmtree(data, ignore_errors=True)
    _own(data, "postgres")
    initdb = [str(POSTGRESQL_BIN / "initdb"), "--pgdata", str(data), "--username=postgres", "--auth=peer"]
    options = ["--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions", "--no-sync"]
    _run([*_as_user("postgres", data), *initdb, *options], "initdb")
    me = pwd.getpwuid(os.geteuid()).pw_name
    (data / "pg_hba.conf").write_text("local all all peer map=owner\n", encoding="utf-8")
    (data / "pg_ident.conf").write_text(f"owner {me} postgres\nowner {me} {ROLE}\n", encoding="utf-8")


VOLATILE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}
"""Makes a database whose settings survive a crash of its processes, not one of the machine (PostgreSQL 15, ch. 30).

Without autovacuum the plans of queries do not depend on when a busy machine analysed the tables. Tests empty their
tables at the end, and statistics of empty tables make queries of the next test take minutes.
"""


def make_volatile(layout: Layout) -> None:
    """Makes the cluster never wait for a disk, from its next start on; for tests only."""
    _initialise_postgresql(layout)
    lines = [f"{name} = {value}\n" for name, value in VOLATILE.items()]
    (layout.postgresql_data / "postgresql.auto.conf").write_text("".join(lines), encoding="ascii")


def start_postgresql(layout: Layout) -> None:
    """Starts the cluster, with the role and the database in it."""
    if not (POSTGRESQL_BIN / "postgres").exists():
        raise ServiceError(f"no PostgreSQL 15 in {POSTGRESQL_BIN}: run ./dev setup")
    _initialise_postgresql(layout)
    sockets = layout.postgresql_sockets
    _own(sockets, "postgres")
    settings = {"listen_addresses": "", "unix_socket_directories": str(sockets), "unix_socket_permissions": "0700"}
    server = [str(POSTGRESQL_BIN / "postgres"), "-D", str(layout.postgresql_data)]
    server += [f"--{name}={value}" for name, value in settings.items()]
    lock_file = layout.postgresql_data / "postmaster.pid"

    def ready(pid: int) -> bool:
        # The server writes its pid into the first line and its status into the eighth.
        lines = lock_file.read_text(encoding="utf-8").splitlines() if lock_file.exists() else []
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"

    _start(layout, "postgresql", [*_as_user("postgres", layout.postgresql_data), *server], ready)
    if not _postgresql_admin(layout, "SELECT 1 FROM pg_roles WHERE rolname = 'perfweb'"):
        _postgresql_admin(layout, "CREATE ROLE perfweb LOGIN CREATEDB")
    if not _postgresql_admin(layout, "SELECT 1 FROM pg_database WHERE datname = 'perfweb'"):
        _postgresql_admin(layout, "CREATE DATABASE perfweb OWNER perfweb")


def start_redis(layout: Layout) -> None:
    """Starts Redis with an append-only file, so that queued runs survive a restart."""
    _own(layout.redis_data, "redis")
    _own(layout.redis_socket.parent, "redis")
    options = {
        "port": "0",
        "unixsocket": str(layout.redis_socket),
        "unixsocketperm": "700",
        "dir": str(layout.redis_data),
        "appendonly": "yes",
        "save": "",
        "daemonize": "no",
    }
    server = ["redis-server"]
    for name, value in options.items():
        server += [f"--{name}", value]
    ask = ["redis-cli", "-s", str(layout.redis_socket), "info", "server"]

    def ready(pid: int) -> bool:
        return f"process_id:{pid}\n" in subprocess.run(ask, capture_output=True, text=True, check=False).stdout

    _start(layout, "redis", [*_as_user("redis", layout.redis_data), *server], ready)


def wanted_port() -> int:
    """Return the port of PERFWEB_PORT. Raises ServiceError for what is no port."""
    text = os.environ.get("PERFWEB_PORT") or "8000"
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= LAST_PORT):
        raise ServiceError(f"PERFWEB_PORT is {text!r}: write a port from 1 to {LAST_PORT}, such as 8000")
    return int(text)


def free_port(first: int) -> int:
    """Return the first port from `first` on at which no process listens at 127.0.0.1. Raises ServiceError."""
    last = min(first + 99, LAST_PORT)
    for port in range(first, last + 1):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except PermissionError:
                raise ServiceError(f"only root can listen at port {port}: give another one with PERFWEB_PORT") from None
            except OSError:
                continue
            return port
    raise ServiceError(f"the ports {first} to {last} are all taken: give another one with PERFWEB_PORT")


def listens(pid: int, port: int) -> bool:
    """Returns whether this process listens at a port of 127.0.0.1 (proc(5), /proc/net/tcp: state 0A); another one
    may.
    """
    sockets = set()
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[1] == f"0100007F:{port:04X}" and fields[3] == "0A":
            sockets.add(f"socket:[{fields[9]}]")
    found = set()
    with suppress(OSError):  # the process has ended, or closes descriptors meanwhile
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            found.add(os.readlink(descriptor))
    return not sockets.isdisjoint(found)


def answers(port: int) -> bool:
    """Return whether the site answers with its first page; a server can listen before it can do that."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def start_web(layout: Layout) -> None:
    """Starts the web server and writes its address into `run/url`."""
    address = layout.run / "url"
    if processes.running(layout.pid_file("web")) and address.exists():
        port = int(address.read_text(encoding="ascii").strip().rstrip("/").rpartition(":")[2])
    else:
        wanted = wanted_port()
        port = free_port(wanted)
        if port != wanted:
            print(f"port {wanted} is taken, the web server listens on {port}")
    # Before the server starts, because its settings need it.
    address.write_text(f"http://127.0.0.1:{port}/\n", encoding="ascii")
    argv = [sys.executable, "-m", "perfweb.server", "--host", "127.0.0.1", "--port", str(port)]
    _start(layout, "web", argv, lambda pid: listens(pid, port) and answers(port), cwd=ROOT)


def _worker(*options: str) -> list[str]:
    """A Celery worker.

    This service revokes no tasks: without mingle a worker does not wait a second at its start for the revoked tasks of
    others, and without gossip it does not listen to them.
    """
    argv = [sys.executable, "-m", "celery", "-A", "perfweb", "worker", "--without-mingle", "--without-gossip"]
    return [*argv, *options]


def start_worker(layout: Layout) -> None:
    """Starts the Celery worker, with one process for each concurrent run: one by default, because the machine has
    one lab.
    """
    runs = os.environ.get("PERFWEB_RUNS_AT_ONCE") or "1"
    _start(layout, "worker", _worker("--concurrency", runs, "--loglevel", "INFO"), lambda _: True, cwd=ROOT)


def start_messenger(layout: Layout) -> None:
    """Starts the worker for messages from and to other services, which must not wait for the end of a run."""
    argv = _worker("--queues", "messages", "--hostname", "messages@%h", "--concurrency", "1", "--loglevel", "WARNING")
    _start(layout, "messenger", argv, lambda _: True, cwd=ROOT)


def start_mail(layout: Layout) -> None:
    """Starts the intake of mail, if an address for it is configured."""
    if os.environ.get("PERFWEB_MAIL_ADDRESS"):
        listening = layout.run / "lmtp.sock"
        argv = [sys.executable, "manage.py", "mail_intake", "--listen", str(listening)]
        _start(layout, "mail", argv, lambda _: listening.exists(), cwd=ROOT)


def start_mailbox(layout: Layout) -> None:
    """Starts fetching mail, if a mailbox is configured."""
    if os.environ.get("PERFWEB_IMAP_HOST"):
        _start(layout, "mailbox", [sys.executable, "manage.py", "mail_fetch"], lambda _: True, cwd=ROOT)


def start_beat(layout: Layout) -> None:
    """Starts Celery's clock, which looks for runs whose worker has died."""
    schedule = str(layout.var / "celerybeat-schedule")
    argv = [sys.executable, "-m", "celery", "-A", "perfweb", "beat", "--schedule", schedule, "--pidfile=", "-l", "INFO"]
    _start(layout, "beat", argv, lambda _: True, cwd=ROOT)


STARTERS: dict[str, Callable[[Layout], None]] = {
    "postgresql": start_postgresql,
    "redis": start_redis,
    "web": start_web,
    "worker": start_worker,
    "messenger": start_messenger,
    "mail": start_mail,
    "mailbox": start_mailbox,
    "beat": start_beat,
}


def stop(layout: Layout, names: Sequence[str]) -> None:
    """Stops services: those that use the databases at the same time, then the databases."""

    def end(name: str) -> None:
        # SIGINT is PostgreSQL's fast shutdown: it does not wait for clients.
        number = signal.SIGINT if name == "postgresql" else signal.SIGTERM
        processes.stop(layout.pid_file(name), grace=GRACE_SECONDS[name], number=number)

    with ThreadPoolExecutor() as pool:
        for databases in (False, True):
            list(pool.map(end, [name for name in names if (name in DATABASES) == databases]))


def watch(layout: Layout, names: Sequence[str]) -> None:
    """Waits until one of the services ends, which is an error; Ctrl-C ends the wait."""
    watched = {name: processes.running(layout.pid_file(name)) for name in names}
    while True:
        for name, process in watched.items():
            if process is None or not process.alive():
                log = layout.log(name)
                raise ServiceError(f"{name} has ended; the end of {log}:\n{_tail(log)}")
        time.sleep(1)


def _perform(layout: Layout, verb: str, names: Sequence[str], volatile: bool = False) -> None:
    """Executes one verb of the command line."""
    if verb == "start":
        write_environment(layout)
        if volatile:
            make_volatile(layout)
        for name in (known for known in STARTERS if known in names):
            STARTERS[name](layout)
    elif verb == "stop":
        stop(layout, names)
    elif verb == "watch":
        watch(layout, names)
    else:
        for name in names:
            print(f"{name}: {'running' if processes.running(layout.pid_file(name)) else 'stopped'}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; see the top of this file."""
    parser = argparse.ArgumentParser(prog="runners.services", description="Start and stop the private services.")
    parser.add_argument("--var", type=Path, default=ROOT / "var", help="directory that holds everything")
    parser.add_argument("--volatile", action="store_true", help="start a database for tests: it never waits for a disk")
    parser.add_argument("verb", choices=("start", "stop", "status", "watch"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(STARTERS)}; default: all")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in STARTERS]
    if unknown:
        parser.error(f"unknown service {unknown[0]!r}: choose from {', '.join(STARTERS)}")
    try:
        _perform(Layout.of(options.var), options.verb, options.names or list(STARTERS), options.volatile)
    except (ServiceError, OSError) as error:
        print(f"services: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
