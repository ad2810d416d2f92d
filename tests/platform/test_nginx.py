# SPDX-License-Identifier: BSD-2-Clause
"""docker/nginx.conf in Debian's nginx, between a client and the real web server."""

from __future__ import annotations

import http.client
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfweb.accounts.models import Entry
from perfweb.runs import progress
from perfweb.runs.models import RunState
from perfweb.settings.base import LARGEST_UPLOAD
from runners.services.supervisor import free_port
from tests.factories import create_queued_run
from tests.servers import served

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = (ROOT / "docker" / "nginx.conf").read_text(encoding="utf-8")
NGINX = "/usr/sbin/nginx"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", "tls.key", "-out", "tls.crt"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


class Proxy:
    """nginx with this configuration on free ports."""

    def __init__(self, folder: Path, certificate: Path, upstream: str) -> None:
        self.port, plain = free_port(18443), free_port(18080)
        self.certificate = certificate / "tls.crt"
        text = CONFIGURATION
        for old, new in {
            "/etc/perfweb/": f"{certificate}/",
            "/var/log/nginx/perfweb.log": f"{folder}/access.log",
            "server_name perf.example.org": "server_name localhost",
            "127.0.0.1:8000": upstream,
            "listen 443 ": f"listen 127.0.0.1:{self.port} ",
            "listen 80;": f"listen 127.0.0.1:{plain};",
        }.items():
            assert old in text
            text = text.replace(old, new)
        text = re.sub(r"(?m)^\s*listen \[::\].*\n", "", text)
        self.file = folder / "nginx.conf"
        places = "".join(
            f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        self.file.write_text(text.replace("http {", f"http {{ {places}", 1), encoding="utf-8")
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = f"daemon off; master_process off; pid {self.folder}/pid; error_log {self.folder}/error.log;"
        self.process = subprocess.Popen([NGINX, "-p", self.folder, "-c", self.file, "-g", options])
        deadline = time.monotonic() + 30
        while socket.socket().connect_ex(("127.0.0.1", self.port)):
            assert time.monotonic() < deadline, (self.folder / "error.log").read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(timeout=10)

    def connect(self) -> socket.socket:
        """A TLS connection of a client that trusts this certificate alone."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), 60), server_hostname="localhost")

    def ask(self, path: str, method: str = "GET", body: bytes = b"", **headers: str) -> http.client.HTTPResponse:
        lines = {"Host": "localhost", "Connection": "close", **headers}
        if body:
            lines["Content-Length"] = str(len(body))
        connection = self.connect()
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        connection.sendall(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        answer = http.client.HTTPResponse(connection, method=method)
        answer.begin()
        return answer


@pytest.fixture
def proxy(
    transactional_db: None, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Proxy]:
    from django.db import connection

    monkeypatch.setenv("PERFWEB_TRUSTED_PROXIES", "127.0.0.1")
    with served(connection.settings_dict["NAME"]) as address:
        made = Proxy(tmp_path, certificate, address.removeprefix("http://"))
        try:
            made.start()
            yield made
        finally:
            made.stop()


def test_the_configuration_as_it_is_shipped_is_one(certificate: Path, tmp_path: Path) -> None:
    file = tmp_path / "nginx.conf"
    file.write_text(
        CONFIGURATION.replace("/etc/perfweb/", f"{certificate}/").replace("/var/log/nginx/", f"{tmp_path}/")
    )
    test = [
        NGINX,
        "-t",
        "-p",
        str(tmp_path),
        "-c",
        str(file),
        "-g",
        f"pid {tmp_path}/pid; error_log {tmp_path}/error.log;",
    ]
    done = subprocess.run(test, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert shutil.which("nginx", path="/usr/sbin")


def test_pages_and_static_files_with_each_security_header_once(proxy: Proxy) -> None:
    for path in ("/runs/", "/static/base.css", "/nothing/here", "/api/v1/runs"):
        answer = proxy.ask(path)
        assert answer.status == (404 if "nothing" in path else 200), path
        assert answer.read()
        names = [name.lower() for name, _ in answer.getheaders()]
        for name in ("content-security-policy", "x-content-type-options", "x-frame-options", "referrer-policy"):
            if path != "/static/base.css" or name in names:
                assert names.count(name) == 1, (path, name)


def test_a_forged_address_goes_no_further(proxy: Proxy) -> None:
    forged = {"X-Forwarded-For": "198.51.100.7", "Forwarded": "for=198.51.100.8", "X-Real-IP": "198.51.100.9"}
    page = proxy.ask("/account/sign-in/")
    cookie = page.headers["Set-Cookie"].partition(";")[0]
    form = f"username=nobody&password=wrong&csrfmiddlewaretoken={cookie.partition('=')[2]}".encode()
    sent = {"Cookie": cookie, "Referer": "https://localhost/", "Content-Type": "application/x-www-form-urlencoded"}
    assert proxy.ask("/account/sign-in/", "POST", form, **sent, **forged).status == 200
    assert Entry.objects.get().address == "127.0.0.1"


def test_events_come_at_once(proxy: Proxy) -> None:
    run = create_queued_run(state=RunState.RUNNING)
    progress.begin(run.number)
    answer = proxy.ask(f"/runs/{run.number}/events")
    assert answer.status == 200
    assert answer.readline() == b"retry: 3000\n"
    for share in (0.25, 0.5):
        progress.publish(run.number, "eta", seconds=3, fraction=share)
        line = b""
        while not line.startswith(b"data:"):
            line = answer.readline()
            assert line, "the stream ended"
        assert f'"fraction": {share}'.encode() in line
    answer.close()


def test_uploads_have_the_limit_of_the_service(proxy: Proxy) -> None:
    unit = {"k": 1024, "m": 1024**2}
    found = re.search(r"client_max_body_size (\d+)([km]);", CONFIGURATION)
    assert found
    assert int(found[1]) * unit[found[2]] == LARGEST_UPLOAD
    answer = proxy.ask("/account/sign-in/", "POST", b"a" * LARGEST_UPLOAD)
    assert answer.status == 403, answer.read()
    with proxy.connect() as connection:
        connection.sendall(
            f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {LARGEST_UPLOAD + 1}\r\n\r\n".encode()
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    "beginning",
    [b"GET / HTTP/1.1\r\nX-a: ", b"POST /account/sign-in/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\na="],
)
def test_slow_headers_and_bodies_are_cut_off(proxy: Proxy, beginning: bytes) -> None:
    with proxy.connect() as connection:
        connection.sendall(beginning)
        try:
            answer = connection.recv(1000)
        except ConnectionResetError:
            answer = b""
        assert not answer or answer.startswith(b"HTTP/1.1 408")


def test_a_service_that_is_down_is_503_with_a_time(certificate: Path, tmp_path: Path) -> None:
    proxy = Proxy(tmp_path, certificate, f"127.0.0.1:{free_port(18900)}")
    try:
        proxy.start()
        answer = proxy.ask("/")
        assert answer.status == 503
        assert answer.headers["Retry-After"] == "5"
        assert b"does not answer now" in answer.read()
    finally:
        proxy.stop()
