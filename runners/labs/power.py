# SPDX-License-Identifier: BSD-2-Clause
"""Power-cycles a real machine in any state, and waits until its SSH server answers: a `boot_command`.

    python -m runners.labs.power ipmi    --host HOST --bmc ADDRESS --user USER --password-file FILE
    python -m runners.labs.power redfish --host HOST --bmc URL     --user USER --password-file FILE
    python -m runners.labs.power command --host HOST WORD ...

`ipmi` needs ipmitool on this machine. `redfish` uses the service at URL (https with a checked certificate) by DMTF's
DSP0266. `command` runs any program that switches the machine, such as that of a power strip.

It exits with status 0 when HOST stopped answering and answers again. Its output is kept as the log of the boot. It
cannot change a kernel's command line, so it refuses a plan with such words. Only `command` accepts them: the program
gets them as its last argument.
"""

from __future__ import annotations

import argparse
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import urllib3

from perfweb.boundedread import BoundedPoolManager, read_bounded
from perfweb.jsontext import read_json

SECONDS = urllib3.Timeout(connect=10, read=30)
SWITCH_SECONDS = 120.0
POLL_SECONDS = 0.5
GREETING_SECONDS = 3.0
ANSWER_BYTES, ANSWER_SECONDS = 1 << 20, 60.0
"""Limits of a response of a BMC, which may be compromised or broken."""
RESETS = ("ForceRestart", "PowerCycle")
"""Redfish reset types that do not depend on the operating system, the preferred one first."""
Json = dict[str, Any]


class PowerError(Exception):
    """The machine was not switched, or did not come up; the message has what to do."""


def answers(host: str, port: int) -> bool:
    """Returns whether an SSH server sends its greeting there (RFC 4253, 4.2)."""
    try:
        with socket.create_connection((host, port), timeout=GREETING_SECONDS) as connection:
            connection.settimeout(GREETING_SECONDS)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def boot(switch: Callable[[], str], host: str, port: int, *, down: float, up: float) -> str:
    """Calls `switch`; returns its output when the host went down within `down` seconds and answers within `up`.

    The host is watched during `switch`, because it may be up again when that returns. Raises PowerError.
    """
    with ThreadPoolExecutor(1) as pool:
        switched = pool.submit(switch)
        deadline = None
        while answers(host, port):
            if switched.done():
                switched.result()  # otherwise the message has the reason
                deadline = deadline or time.monotonic() + down
                if time.monotonic() > deadline:
                    raise PowerError(f"{host} went on answering for {down:g} s: is this the BMC, or outlet, of {host}?")
            time.sleep(POLL_SECONDS)
        printed = switched.result()
    deadline = time.monotonic() + up
    while not answers(host, port):
        if time.monotonic() > deadline:
            raise PowerError(
                f"{host} was switched off and on, but no SSH server answers at port {port} within {up:g} s: look at "
                "its console, or give it more time with --up"
            )
        time.sleep(POLL_SECONDS)
    return printed


def run(argv: Sequence[str]) -> str:
    """Returns the output of a program that exits with 0. Raises PowerError."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", timeout=SWITCH_SECONDS, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise PowerError(f"{argv[0]} is not installed on this machine: install it, or correct the path") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PowerError(f"{argv[0]}: {error}") from None
    if done.returncode != 0:
        raise PowerError(f"{argv[0]} ended with status {done.returncode}:\n{done.stdout.strip()}")
    return done.stdout


class Ipmi:
    """A BMC controlled by ipmitool, which reads the password from a file, so that no process list shows it."""

    def __init__(self, bmc: str, user: str, password_file: Path, port: int, cipher: str) -> None:
        self.base = ["ipmitool", "-I", "lanplus", "-H", bmc, "-p", str(port), "-U", user, "-f", str(password_file)]
        self.base += ["-C", cipher] if cipher else []

    def switch(self) -> str:
        """Power-cycles the machine; switches it on if it is off, because a cycle does nothing then (IPMI 2.0, 28.3)."""
        on = "is on" in run([*self.base, "chassis", "power", "status"])
        return run([*self.base, "chassis", "power", "cycle" if on else "on"])


class Redfish:
    """A Redfish service (DSP0266 1.15): the resource tree from /redfish/v1/Systems on, with basic authentication."""

    def __init__(self, url: str, user: str, password_file: Path, authorities: Path | None, system: str) -> None:
        if not url.startswith("https://"):
            raise PowerError(f"{url}: the address of a BMC must be https://, because its password is sent")
        self.url, self.system = url.rstrip("/"), system
        trust = ssl.create_default_context(cafile=str(authorities) if authorities else None)
        password = _password(password_file)
        headers = urllib3.make_headers(basic_auth=f"{user}:{password}") | {"Accept": "application/json"}
        self.pool = BoundedPoolManager(ssl_context=trust, headers=headers, retries=False, timeout=SECONDS)

    def switch(self) -> str:
        """Resets the machine, or switches it on if it is off, by the action ComputerSystem.Reset (DSP0268)."""
        system = self._request("GET", self._system())
        target, offered = _reset(system)
        if not target:
            raise PowerError(f"{self.url} offers no reset of {system.get('Id')}: give {self.url}'s user that privilege")
        wanted = ("On",) if system.get("PowerState") == "Off" else RESETS
        how = next((reset for reset in wanted if offered is None or reset in offered), None)
        if how is None:
            listed = ", ".join(offered or ())
            raise PowerError(f"{self.url} offers the resets {listed}, and none of {', '.join(wanted)}")
        self._request("POST", target, {"ResetType": how})
        return f"{self.url}: {how} of {system.get('Id')}, which was {system.get('PowerState', 'in an unknown state')}\n"

    def _system(self) -> str:
        """Returns the path of the selected system."""
        paths = _system_paths(self._request("GET", "/redfish/v1/Systems"))
        names = {path.rstrip("/").rpartition("/")[2]: path for path in paths}
        if self.system in names:
            return names[self.system]
        if self.system or len(names) != 1:
            raise PowerError(f"{self.url} has the systems {', '.join(names) or '(none)'}: name one with --system")
        return paths[0]

    def _request(self, method: str, path: str, body: Json | None = None) -> Json:
        """Returns the response, empty for an action that has none. Raises PowerError."""
        if not path.startswith("/") or path.startswith("//"):
            raise PowerError(f"{self.url} leads to {path}, which is somewhere else: the password does not go there")
        try:
            answer = self.pool.request(method, f"{self.url}{path}", json=body, redirect=False, preload_content=False)
            content = read_bounded(answer, ANSWER_BYTES, ANSWER_SECONDS)
            found = read_json(content) if content else {}
        except urllib3.exceptions.SSLError as error:
            raise PowerError(f"{self.url}: {error}: name the certificate to trust with --authorities") from None
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            raise PowerError(f"{self.url}{path}: {error}") from None
        if answer.status >= 300:
            raise PowerError(f"{method} {self.url}{path} was answered with {answer.status}: {_complaint(found)}")
        return _object(found)


def _object(value: object) -> Json:
    """Returns an object of JSON; an empty one for another value."""
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    """Returns a list of JSON; an empty one for another value."""
    return value if isinstance(value, list) else []


def _system_paths(answer: Json) -> list[str]:
    """Returns the paths of a collection of systems."""
    members = _list(answer.get("Members"))
    return [path for member in members if isinstance(path := _object(member).get("@odata.id"), str)]


def _reset(system: Json) -> tuple[str, list[str] | None]:
    """Returns the path of a system's reset, "" if it has none, and its reset types, None if it lists none."""
    action = _object(_object(system.get("Actions")).get("#ComputerSystem.Reset"))
    target, listed = action.get("target"), action.get("ResetType@Redfish.AllowableValues")
    return target if isinstance(target, str) else "", None if listed is None else list(map(str, _list(listed)))


def _password(path: Path) -> str:
    """Returns the first line of a file, as ipmitool reads it."""
    try:
        return path.read_text(encoding="utf-8").split("\n", 1)[0]
    except (OSError, ValueError) as error:
        raise PowerError(f"no password in {path}: {error}") from None


def _complaint(answer: object) -> str:
    """Returns the message of a Redfish error (DSP0266, 8.6)."""
    error = _object(_object(answer).get("error"))
    details = [str(_object(info).get("Message", "")) for info in _list(error.get("@Message.ExtendedInfo"))]
    return " ".join(filter(None, details)) or str(error.get("message", "no reason was given"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="runners.labs.power", description="Switches a machine off and on.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("ipmi", "redfish", "command"):
        of_kind = kinds.add_parser(kind)
        of_kind.add_argument("--host", required=True, help="where the machine's SSH server answers")
        of_kind.add_argument("--ssh-port", type=int, default=22, help="and at which port (%(default)s)")
        of_kind.add_argument("--down", type=float, default=60, help="seconds until it stops answering (%(default)s)")
        of_kind.add_argument("--up", type=float, default=600, help="seconds until it answers again (%(default)s)")
        if kind != "command":
            of_kind.add_argument("--bmc", required=True, help="address, or URL, of the BMC")
            of_kind.add_argument("--user", required=True, help="user that can switch the machine")
            of_kind.add_argument("--password-file", type=Path, required=True, help="a file with the password alone")
        of_kind.add_argument("words", nargs="+" if kind == "command" else "*", help="the command; else nothing")
    ipmi, redfish = kinds.choices["ipmi"], kinds.choices["redfish"]
    ipmi.add_argument("--bmc-port", type=int, default=623, help="of IPMI (%(default)s)")
    ipmi.add_argument("--cipher", default="", help="number of a cipher suite, for a BMC that does not say what it has")
    redfish.add_argument("--authorities", type=Path, help="file with the certificate to trust; else this machine's")
    redfish.add_argument("--system", default="", help="which one, if the BMC has several")
    return parser


def _switch(options: argparse.Namespace) -> Callable[[], str]:
    if options.kind == "command":
        return lambda: run(options.words)
    if options.words:
        raise PowerError(
            f"{options.kind} cannot change a kernel's command line to {' '.join(options.words)!r}: use `command` with "
            "a program that does, or no boot.command_line in the plan"
        )
    if options.kind == "ipmi":
        _password(options.password_file)  # ipmitool would prompt on the terminal
        return Ipmi(options.bmc, options.user, options.password_file, options.bmc_port, options.cipher).switch
    return Redfish(options.bmc, options.user, options.password_file, options.authorities, options.system).switch


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; see the top of this file."""
    options = _parser().parse_args(arguments)
    try:
        print(boot(_switch(options), options.host, options.ssh_port, down=options.down, up=options.up), end="")
    except (PowerError, OSError) as error:
        print(f"power: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
