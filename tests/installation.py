# SPDX-License-Identifier: BSD-2-Clause
"""A private installation whose databases and web server tests may kill and stop."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from playbooks.module_utils import processes
from runners.services import supervisor
from runners.services.supervisor import Layout
from tests import clusters
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Reply:
    """A response of the web server."""

    status: int
    headers: dict[str, str]
    text: str


class Installation:
    """PostgreSQL, Redis and the service's processes under one directory."""

    def __init__(self, var: Path, **environment: str) -> None:
        self.layout = Layout.of(var)
        self.environment = {
            **os.environ,
            **self.layout.environment(),
            "DJANGO_SETTINGS_MODULE": "perfweb.settings.development",
            **environment,
        }

    def start(self, *names: str) -> None:
        """Start services by their names in runners/services, like its command; wait until they answer."""
        argv = [sys.executable, "-m", "runners.services", "--var", str(self.layout.var), "start", *names]
        subprocess.run(argv, cwd=ROOT, env=self.environment, check=True)

    def manage(self, *arguments: str, text: str = "") -> str:
        """Run manage.py and return its output."""
        argv = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            argv, cwd=ROOT, env=self.environment, input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def signal(self, name: str, number: int) -> None:
        """Send a signal to all processes of a service."""
        service = processes.running(self.layout.pid_file(name))
        assert service is not None
        for process in [service, *processes.descendants({service.pid})]:
            processes.signal_process(process, number)

    def kill(self, name: str) -> None:
        """End a service with SIGKILL, as when memory runs out."""
        service = processes.running(self.layout.pid_file(name))
        assert service is not None
        os.kill(service.pid, signal.SIGKILL)
        wait_for(lambda: not service.alive(), f"{name} to be gone")

    @cached_property
    def address(self) -> tuple[str, int]:
        """Return the address of the web server."""
        found = urlsplit((self.layout.run / "url").read_text(encoding="ascii").strip())
        return str(found.hostname), int(found.port or 80)

    def get(self, path: str, headers: dict[str, str] | None = None) -> Reply:
        """Request a page from the web server."""
        return self.ask("GET", path, headers)

    def sign_in(self, name: str, password: str) -> Reply:
        """Send the form for signing in."""
        cookie = self.get("/account/sign-in/").headers["Set-Cookie"].partition(";")[0]
        token = cookie.partition("=")[2]
        fields = {"username": name, "password": password, "csrfmiddlewaretoken": token}
        headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        return self.ask("POST", "/account/sign-in/", headers, urlencode(fields))

    def ask(self, method: str, path: str, headers: dict[str, str] | None = None, body: str | None = None) -> Reply:
        """Send a request to the web server and read its response."""
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            found = {name: ", ".join(answer.headers.get_all(name, [])) for name in answer.headers}
            return Reply(answer.status, found, answer.read().decode(errors="replace"))
        finally:
            connection.close()

    def log(self, name: str) -> str:
        """Return the output of a service."""
        return self.layout.log(name).read_text(encoding="utf-8", errors="replace")


@contextmanager
def installed(var: Path, **environment: str) -> Iterator[Installation]:
    """An installation with migrated databases and a web server, removed at the end; `environment` is that of all
    processes.
    """
    installation = Installation(var, **environment)
    try:
        clusters.provide(installation.layout)
        installation.start("postgresql", "redis")
        installation.manage("migrate", "--verbosity", "0")
        installation.start("web")
        yield installation
    finally:
        for name in supervisor.STARTERS:
            if processes.running(installation.layout.pid_file(name)):
                installation.signal(name, signal.SIGCONT)
        supervisor.stop(installation.layout, list(supervisor.STARTERS))
