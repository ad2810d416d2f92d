# SPDX-License-Identifier: BSD-2-Clause
"""Runs a playbook against a testbed and returns the result.

The playbooks are the only access to the hosts. The input is extra variables. The output is what the plays pass to
`set_stats`, and the reports of running modules (playbooks/report). playbooks/README.md lists both for every playbook.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import ansible_runner.interface
import yaml

from playbooks.module_utils import processes
from runners.ansible.server import AnsibleServer
from runners.paths import CONTROL_NAME_LENGTH, socket_directory

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = ROOT / "playbooks"
POLL_SECONDS = 0.5
"""Seconds between two checks of cancellation and the time limit."""
GRACE_SECONDS = 10.0
"""Seconds in which ansible-playbook can end its connections before it is killed."""

# The command dies with the process that plays, and writes its process id for cancellation.
LEASH = ["setpriv", "--pdeathsig", "TERM", "--", "sh", "-c", 'echo $$ >"$0"; exec "$@"']


@dataclass(frozen=True)
class Event:
    """An event on a host: `what` is started, ok, skipped, failed or unreachable."""

    what: str
    host: str
    task: str
    seconds: float


@dataclass(frozen=True)
class Listener:
    """Receives events of a running play, in the thread that plays; an exception of a listener ends the play.

    `event` gets the events on hosts, `handed` what a task passes to `set_stats`, and `report` what a running module
    reports. `journal` is a file that gets each report at once as a line, and is kept.
    """

    event: Callable[[Event], None] | None = None
    handed: Callable[[dict[str, Any]], None] | None = None
    report: Callable[[dict[str, Any]], None] | None = None
    journal: Path | None = None


NO_LISTENER = Listener()


@dataclass(frozen=True)
class Failure:
    """A failed task, with the host's message."""

    host: str
    task: str
    message: str
    output: str = ""

    def __str__(self) -> str:
        return f"{self.host}: {self.task}: {self.message}"


@dataclass
class PlayResult:
    """The result of a play that ran to its end."""

    name: str
    ok: bool = False
    data: dict[str, Any] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    log: str = ""
    seconds: float = 0.0

    def require_ok(self) -> PlayResult:
        """Returns itself, or raises PlayFailedError."""
        if not self.ok:
            raise PlayFailedError(self)
        return self


class PlayError(Exception):
    """A play did not complete."""

    def __init__(self, result: PlayResult, message: str) -> None:
        super().__init__(message)
        self.result = result


class PlayFailedError(PlayError):
    """A task failed, or a host was unreachable."""

    def __init__(self, result: PlayResult) -> None:
        reasons = (
            "; ".join(map(str, result.failures)) or result.log.strip()[-2000:] or "ansible-playbook printed nothing"
        )
        super().__init__(result, f"play {result.name} failed: {reasons}")


class PlayCancelledError(PlayError):
    """The play was cancelled; none of its processes runs on the hosts any more."""


class PlayTimeoutError(PlayError):
    """The play took too long; none of its processes runs on the hosts any more."""


class _Play:
    """One running play: collects its events, and ends it on request."""

    def __init__(
        self,
        result: PlayResult,
        directory: Path,
        *,
        patience: float,
        listener: Listener,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self.result = result
        self.pid_file = directory / "pid"
        self.journal = _Journal(listener.journal or directory / "reports")
        self.patience = patience
        self.deadline = time.monotonic() + patience
        self.listener = listener
        self.cancelled = cancelled
        self.error: type[PlayError] | None = None
        self.raised: Exception | None = None
        self.killing_since = 0.0

    def handle_event(self, event: dict[str, Any]) -> bool:
        """Handles an event of ansible-runner; returns False, because no event file is wanted."""
        kind, data = event.get("event", ""), event.get("event_data", {})
        if kind == "playbook_on_stats":
            self.result.data.update(data.get("artifact_data", {}))
        what = {
            "runner_on_start": "started",
            "runner_on_ok": "ok",
            "runner_on_skipped": "skipped",
            "runner_on_failed": "failed",
            "runner_on_unreachable": "unreachable",
        }.get(kind)
        if what in {"failed", "unreachable"}:
            self.result.failures.append(_failure(data))
        if what:
            duration = float(data.get("duration", 0))
            self.call(self.listener.event, Event(what, data.get("host", ""), data.get("task", ""), duration))
        if what == "ok" and "ansible_stats" in data.get("res", {}):
            self.call(self.listener.handed, data["res"]["ansible_stats"]["data"])
        return False

    def forward(self) -> None:
        """Forwards new reports; each restarts the time-out."""
        try:
            for report in self.journal.new():
                self.deadline = time.monotonic() + self.patience
                self.call(self.listener.report, report)
        except Exception as error:  # for example a damaged line
            self.raised = self.raised or error

    def call(self, listener: Callable[[T], None] | None, what: T) -> None:
        """Calls a listener.

        Its exception must not reach ansible-runner, which would abandon the play; it waits for the end.
        """
        if listener is None or self.raised is not None:
            return
        try:
            listener(what)
        except Exception as error:
            self.raised = error

    def must_be_killed(self) -> bool:
        """Returns whether ansible-runner shall end the play, which calls this all the time; sends SIGTERM first.

        At SIGTERM ansible-playbook ends its SSH connections, and the modules on the hosts end their processes when the
        connection closes. SIGKILL, which ansible-runner sends, would leave both running.
        """
        self.forward()
        if not self.killing_since and self.must_end():
            self.killing_since = time.monotonic()
            self.terminate()
        return bool(self.killing_since) and time.monotonic() > self.killing_since + GRACE_SECONDS

    def must_end(self) -> bool:
        """Returns whether the play shall end; `error` or `raised` is the reason."""
        if self.cancelled is not None and self.cancelled():
            self.error = PlayCancelledError
        elif time.monotonic() > self.deadline:
            self.error = PlayTimeoutError
        return self.error is not None or self.raised is not None

    def terminate(self) -> None:
        """Sends SIGTERM to ansible-playbook."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            process = processes.identify(int(self.pid_file.read_text(encoding="ascii")))
            if process is not None:
                processes.signal_process(process, 15)


class _Journal:
    """A file to which lines of JSON are appended, read from its end at the time of creation."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = path.stat().st_size if path.exists() else 0

    def new(self) -> Iterator[dict[str, Any]]:
        """Returns the complete lines that were appended since the last call."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.offset)
            for line in file:
                if line.endswith(b"\n"):
                    self.offset += len(line)
                    yield json.loads(line)


def _failure(data: Mapping[str, Any]) -> Failure:
    answer = data.get("res", {})
    message = str(answer.get("msg", "")).strip() or "no message"
    if "results" in answer and message == "One or more items failed":
        message = "; ".join(str(item.get("msg")) for item in answer["results"] if item.get("failed"))
    names = ("stdout", "stderr", "module_stdout", "module_stderr", "log", "build_log", "exception")
    output = "\n".join(str(answer[name]) for name in names if answer.get(name))
    return Failure(str(data.get("host", "")), str(data.get("task", "")), message, output)


def _var() -> Path:
    return Path(os.environ.get("PERFWEB_VAR", ROOT / "var"))


def _environment() -> dict[str, str]:
    """The environment of ansible-playbook: this configuration, these programs, nothing of the home directory."""
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"),
        "ANSIBLE_HOME": str(_var() / "ansible"),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(socket_directory(_var() / "ssh", CONTROL_NAME_LENGTH)),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_DEPRECATION_WARNINGS": "0",
    }


def _verbatim(values: Mapping[str, object]) -> str:
    """Writes a file of variables in which Ansible evaluates no templates, because they could run anything on the
    controller.

    The tag has to be on the whole file; on a single text it would make a number of "1" and a boolean of "false".
    """
    plain = json.loads(json.dumps(dict(values), default=str))
    return "--- !unsafe\n" + yaml.safe_dump(plain)


@contextlib.contextmanager
def _private_directory() -> Iterator[Path]:
    """Makes a directory for one play; removes those of dead processes first."""
    plays = _var() / "plays"
    plays.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in plays.iterdir():
        if (old / "owner").exists() and processes.running(old / "owner") is None:
            shutil.rmtree(old, ignore_errors=True)
    directory = plays / uuid.uuid4().hex
    (directory / "env").mkdir(parents=True)
    me = processes.identify(os.getpid())
    if me is not None:
        processes.write_pid_file(directory / "owner", me)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _server(environment: Mapping[str, str]) -> AnsibleServer:
    """Returns a server for plays with these settings, the last one if its settings are the same."""
    settings = {name: value for name, value in environment.items() if name.startswith("ANSIBLE_") or name == "PATH"}
    key = frozenset(settings.items()), os.getpid()
    if not _server_with(*key).alive():
        _server_with.cache_clear()
    return _server_with(*key)


@functools.lru_cache(maxsize=1)
def _server_with(settings: frozenset[tuple[str, str]], _controller: int) -> AnsibleServer:
    return AnsibleServer(os.environ | dict(settings))


def play(
    name: str,
    *,
    inventory: Path,
    extra_vars: Mapping[str, object],
    timeout: float,
    listener: Listener = NO_LISTENER,
    cancelled: Callable[[], bool] | None = None,
) -> PlayResult:
    """Plays `playbooks/NAME.yml` and waits for its end.

    Returns the result also when tasks failed: then `ok` is False and `failures` has the messages; `require_ok()` turns
    that into an exception. Raises PlayCancelledError after `cancelled()` returned True, PlayTimeoutError after
    `timeout` seconds without a report, FileNotFoundError for a missing playbook or inventory, OSError without space for
    the play's own files, and the exceptions of the listener.
    """
    playbook = PLAYBOOKS / f"{name}.yml"
    for path, what in ((playbook, "playbook"), (inventory, "inventory: raise the lab first, or correct the path")):
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there ({what})")
    result = PlayResult(name)
    begin = time.monotonic()
    with _private_directory() as directory:
        (directory / "env" / "extravars").write_text(_verbatim(extra_vars), encoding="utf-8")
        under_way = _Play(result, directory, patience=timeout, listener=listener, cancelled=cancelled)
        runner = ansible_runner.interface.init_runner(
            private_data_dir=str(directory),
            project_dir=str(PLAYBOOKS),
            playbook=playbook.name,
            inventory=str(inventory.absolute()),
            envvars={**_environment(), "PERFWEB_REPORTS": str(under_way.journal.path)},
            fact_cache_type="none",
            settings={"pexpect_timeout": POLL_SECONDS},
            quiet=True,
            event_handler=under_way.handle_event,
            cancel_callback=under_way.must_be_killed,
        )
        command = _server(runner.config.env).command(runner.config.command)
        runner.config.command = [*LEASH, str(under_way.pid_file), *command]
        try:
            runner.run()
        except OSError:  # which abandons the play
            under_way.terminate()
            raise
        under_way.forward()
        result.log = runner.stdout.read()
    result.seconds = time.monotonic() - begin
    if under_way.raised is not None:
        raise under_way.raised
    if under_way.error is not None:
        verb = "was cancelled" if under_way.error is PlayCancelledError else f"took longer than {timeout:g} s"
        raise under_way.error(result, f"play {name} {verb}")
    result.ok = runner.rc == 0
    return result
