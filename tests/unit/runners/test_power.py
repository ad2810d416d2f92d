# SPDX-License-Identifier: BSD-2-Clause
"""Switching machines: by ipmitool and a simulated BMC (ipmi_sim), by a Redfish service, and by a command."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from runners.labs import power

PASSWORD = "three-words"
SYSTEMS = "/redfish/v1/Systems"
RESET = f"{SYSTEMS}/1/Actions/ComputerSystem.Reset"


class Machine:
    """An imitation of an SSH server; after `off` it sends no greeting once, like a machine that boots."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.offs = 0
        self.lies_dead = False
        threading.Thread(target=self._serve, daemon=True).start()

    def off(self) -> None:
        self.offs += 1

    def _serve(self) -> None:
        refused = 0
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                if refused < self.offs:
                    refused += 1
                elif not self.lies_dead:
                    connection.sendall(b"SSH-2.0-machine\r\n")


@pytest.fixture
def machine() -> Iterator[Machine]:
    made = Machine()
    yield made
    made.listener.close()


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n")
    return path


def switch(machine: Machine, kind: str, *words: object) -> int:
    return power.main([kind, "--host", "127.0.0.1", "--ssh-port", str(machine.port), *map(str, words)])


class Bmc(ThreadingHTTPServer):
    """A service as in DSP0266, with a few systems."""

    def __init__(self, certificate: Path, key: Path, machine: Machine) -> None:
        super().__init__(("127.0.0.1", 0), Resources)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url, self.machine = f"https://127.0.0.1:{self.server_port}", machine
        self.systems, self.state, self.target = ["1"], "On", RESET
        self.offers = ["On", "ForceOff", "ForceRestart", "GracefulRestart"]
        self.requests: list[tuple[str, Any]] = []
        self.replies: dict[str, bytes] = {}
        self.sent = 0

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that does not trust the certificate closes the connection."""


class Resources(BaseHTTPRequestHandler):
    server: Bmc

    def log_message(self, *_: object) -> None:
        """The log is not needed."""

    def answer(self, status: int, body: object = None) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def reply(self, content: bytes) -> None:
        """Bytes instead of a response; without end if there are none."""
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):  # the client closes the connection
            self.wfile.write(content)
            while not content and self.server.sent < 64 * power.ANSWER_BYTES:
                self.server.sent += self.wfile.write(b" " * 65536)

    def admitted(self) -> bool:
        given = base64.b64encode(f"operator:{PASSWORD}".encode()).decode()
        if self.headers["Authorization"] == f"Basic {given}":
            return True
        info = [{"MessageId": "Base.1.8.NoValidSession", "Message": "There is no valid session established."}]
        self.answer(401, {"error": {"code": "Base.1.8.GeneralError", "message": "?", "@Message.ExtendedInfo": info}})
        return False

    def do_GET(self) -> None:
        bmc = self.server
        bmc.requests.append((self.path, None))
        if not self.admitted():
            return
        if self.path in bmc.replies:
            self.reply(bmc.replies[self.path])
        elif self.path == SYSTEMS:
            self.answer(200, {"Members": [{"@odata.id": f"{SYSTEMS}/{name}"} for name in bmc.systems]})
        else:
            reset = {"target": bmc.target, "ResetType@Redfish.AllowableValues": bmc.offers}
            actions = {"#ComputerSystem.Reset": reset}
            self.answer(200, {"Id": self.path[-1], "PowerState": bmc.state, "Actions": actions})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, body))
        if self.admitted():
            self.server.machine.off()
            self.answer(204)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("certificate")
    made, key = folder / "certificate", folder / "key"
    words = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(key), "-out", str(made)]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", "req", "-x509", "-days", "2", *words, *names], check=True, capture_output=True)
    return made, key


@pytest.fixture
def bmc(certificate: tuple[Path, Path], machine: Machine) -> Iterator[Bmc]:
    with Bmc(*certificate, machine) as served:
        threading.Thread(target=served.serve_forever, args=(0.01,)).start()
        yield served
        served.shutdown()


@pytest.fixture
def by_redfish(bmc: Bmc, certificate: tuple[Path, Path], password: Path) -> list[object]:
    return ["--bmc", bmc.url, "--user", "operator", "--password-file", password, "--authorities", certificate[0]]


@pytest.mark.parametrize(
    ("state", "offers", "how"),
    [
        ("On", ["ForceRestart", "On"], "ForceRestart"),
        ("On", ["On", "GracefulRestart", "PowerCycle"], "PowerCycle"),
        ("Off", ["ForceRestart", "On"], "On"),
    ],
)
def test_redfish_resets_the_system_without_asking_it(
    bmc: Bmc, machine: Machine, by_redfish: list[object], state: str, offers: list[str], how: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    bmc.state, bmc.offers = state, offers
    assert switch(machine, "redfish", *by_redfish) == 0
    assert bmc.requests[-1] == (RESET, {"ResetType": how})
    assert machine.offs == 1
    assert capsys.readouterr().out == f"{bmc.url}: {how} of 1, which was {state}\n"


def test_redfish_names_what_it_has_and_takes_what_is_named(
    bmc: Bmc, machine: Machine, by_redfish: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    bmc.systems = ["1", "2"]
    assert switch(machine, "redfish", *by_redfish) == 1
    assert "has the systems 1, 2: name one with --system" in capsys.readouterr().err
    assert switch(machine, "redfish", *by_redfish, "--system", "2") == 0
    assert (f"{SYSTEMS}/2", None) in bmc.requests


def test_redfish_that_refuses_is_quoted_and_what_leads_elsewhere_gets_no_password(
    bmc: Bmc, machine: Machine, by_redfish: list[object], password: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bmc.offers = ["GracefulRestart"]
    assert switch(machine, "redfish", *by_redfish) == 1
    assert "offers the resets GracefulRestart, and none of ForceRestart, PowerCycle" in capsys.readouterr().err
    bmc.offers, bmc.target = ["ForceRestart"], "//elsewhere.example/reset"
    assert switch(machine, "redfish", *by_redfish) == 1
    assert "the password does not go there" in capsys.readouterr().err
    password.write_text("another")
    assert switch(machine, "redfish", *by_redfish) == 1
    assert "answered with 401: There is no valid session established." in capsys.readouterr().err
    assert machine.offs == 0


def test_redfish_is_queried_by_https_with_a_certificate_that_is_trusted(
    bmc: Bmc, machine: Machine, by_redfish: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert switch(machine, "redfish", *by_redfish[:-2]) == 1
    assert "name the certificate to trust with --authorities" in capsys.readouterr().err
    by_redfish[1] = bmc.url.replace("https", "http")
    assert switch(machine, "redfish", *by_redfish) == 1
    assert "must be https://" in capsys.readouterr().err
    assert bmc.requests == []


def test_an_answer_without_end_is_not_read_to_its_end(
    bmc: Bmc, machine: Machine, by_redfish: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    bmc.replies[SYSTEMS] = b""
    assert switch(machine, "redfish", *by_redfish) == 1
    assert "the answer is larger than 1048576 bytes" in capsys.readouterr().err
    assert bmc.sent < 32 * power.ANSWER_BYTES


@pytest.mark.parametrize(
    ("path", "text"),
    [
        *((SYSTEMS, text) for text in ("5", "[1]", '{"Members": 5}', '{"Members": [1, null]}', "[" * 5000, "{")),
        (SYSTEMS, '{"Members": [{"@odata.id": {"a": 1}}]}'),
        (f"{SYSTEMS}/1", '{"Actions": []}'),
        (f"{SYSTEMS}/1", '{"Actions": {"#ComputerSystem.Reset": "x"}}'),
        (f"{SYSTEMS}/1", '{"Actions": {"#ComputerSystem.Reset": {"target": 7}}}'),
        (
            f"{SYSTEMS}/1",
            '{"Actions": {"#ComputerSystem.Reset": {"target": "/x", "ResetType@Redfish.AllowableValues": 5}}}',
        ),
    ],
)
def test_an_answer_of_another_shape_is_an_error_with_a_reason(
    bmc: Bmc, machine: Machine, by_redfish: list[object], path: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bmc.replies[path] = text.encode()
    assert switch(machine, "redfish", *by_redfish) == 1
    assert capsys.readouterr().err.startswith(f"power: {bmc.url}")
    assert machine.offs == 0


BMC = """\
name "bmc"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{folder}/control"
  user 2 true "operator" "{password}" admin 10 none md2 md5 straight
"""
CONTROLLERS = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
mc_enable 0x20
"""


@contextmanager
def ipmi_sim(folder: Path) -> Iterator[int]:
    """A BMC at a UDP port, whose machine is a file `power` with 0 or 1; `commands` lists what it received."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "lan.conf").write_text(BMC.format(port=port, folder=folder, password=PASSWORD))
    (folder / "sim.emu").write_text(CONTROLLERS)
    (folder / "power").write_text("power:1\n")
    control = folder / "control"
    control.write_text(
        f'#!/bin/sh\ncd {folder}\ncase "$*" in\n"get power") cat power ;;\n'
        '"set power "*) echo "power:$3" >power; echo "$@" >>commands ;;\nesac\n'
    )
    control.chmod(0o755)
    argv = ["ipmi_sim", "-c", "lan.conf", "-f", "sim.emu", "-s", str(folder / "state"), "-n"]
    simulated = subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield port
    finally:
        simulated.kill()
        simulated.wait()


def test_ipmi_cycles_a_machine_that_is_on_and_switches_one_on_that_is_off(
    machine: Machine, password: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_ipmi = ["--bmc", "127.0.0.1", "--user", "operator", "--password-file", password, "--cipher", "3"]
    commands = tmp_path / "commands"
    with ipmi_sim(tmp_path) as port:
        by_ipmi += ["--bmc-port", port]
        (tmp_path / "power").write_text("power:0\n")
        machine.off()
        assert switch(machine, "ipmi", *by_ipmi) == 0
        assert commands.read_text() == "set power 1\n"
        assert "Up/On" in capsys.readouterr().out
        machine.lies_dead = True  # the BMC is queried, and not the machine
        assert switch(machine, "ipmi", *by_ipmi, "--up", 0) == 1
        why = "127.0.0.1 was switched off and on, but no SSH server answers"
        assert why in capsys.readouterr().err
        assert commands.read_text().startswith("set power 1\nset power 0\n")


def test_a_command_gets_the_words_of_a_plan_and_is_quoted_when_it_fails(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outlet = tmp_path / "outlet"
    outlet.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n[ "$1" != 13 ] || exit 3\n')
    outlet.chmod(0o755)
    machine.off()
    assert switch(machine, "command", "--", outlet, "12", "--cycle", "mitigations=off nokaslr") == 0
    assert capsys.readouterr().out == "12\n--cycle\nmitigations=off nokaslr\n"
    assert switch(machine, "command", outlet, "13") == 1
    assert f"{outlet} ended with status 3:\n13\n" in capsys.readouterr().err
    assert switch(machine, "command", "--down", 0, outlet, "14") == 1
    assert "went on answering for 0 s: is this the BMC, or outlet," in capsys.readouterr().err
    assert switch(machine, "command", tmp_path / "none") == 1
    assert "none is not installed on this machine" in capsys.readouterr().err


def test_the_error_for_a_command_line_that_cannot_change_states_it(
    machine: Machine, password: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_ipmi = ["--bmc", "127.0.0.1", "--user", "operator", "--password-file", password]
    assert switch(machine, "ipmi", *by_ipmi, "mitigations=off") == 1
    assert "cannot change a kernel's command line to 'mitigations=off'" in capsys.readouterr().err
    password.unlink()
    assert switch(machine, "ipmi", *by_ipmi) == 1
    assert f"no password in {password}" in capsys.readouterr().err
