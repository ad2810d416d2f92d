# SPDX-License-Identifier: BSD-2-Clause
"""A server process that has imported Ansible once and forks for each play.

Otherwise ansible-playbook would need more than a second of each play to import itself and to pack the modules, on the
machine that measures, too. A controller has one server process that imports Ansible. Each play is a fork of it, and
packed modules (`packing`) are reused, also by later servers. In place of ansible-playbook a client, `request_play`,
starts: it sends its arguments, environment and standard files, forwards SIGTERM, and exits with the play's status.

Each process dies with its parent (PR_SET_PDEATHSIG, prctl(2)): controller, server, waiter, play. A worker sees changes
of the playbooks' modules, as of its own, only after a restart.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import secrets
import select
import signal
import socket
import struct
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

PR_SET_PDEATHSIG = 1
LONGEST_REQUEST = 200_000
"""Max bytes of arguments and environment, which is that of a datagram of a UNIX socket."""
GRACE_SECONDS = 10.0
"""Seconds in which a play whose client has gone can end its connections."""
MODULES = [
    *("cli.playbook", "executor.module_common", "plugins.action.assert", "plugins.action.normal"),
    *("plugins.action.set_stats", "plugins.callback.default", "plugins.connection.ssh", "plugins.filter.core"),
    *("plugins.filter.mathstuff", "plugins.filter.urls", "plugins.inventory.yaml", "plugins.shell.sh"),
    *("plugins.strategy.linear", "plugins.test.core", "plugins.test.files", "plugins.test.mathstuff"),
    *("plugins.test.uri", "plugins.vars.host_group_vars"),
]
"""Modules of Ansible that each of these plays imports."""


class AnsibleServer:
    """A server process, which ends with this object or with the thread that made it.

    `environment` has the settings that Ansible reads at import; a play cannot change them.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.name = f"perfweb-ansible-{secrets.token_hex(8)}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(f"\0{self.name}")
            listener.listen()
            words = [sys.executable, "-P", os.path.abspath(__file__), "serve", str(listener.fileno())]
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "--", *words],
                env=environment,
                pass_fds=[listener.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        weakref.finalize(self, _end, self.process)

    def alive(self) -> bool:
        """Returns whether it accepts a play."""
        return self.process.poll() is None

    def command(self, argv: Sequence[str]) -> list[str]:
        """Returns the command that does the same as the command `argv` of ansible-playbook, but starts faster."""
        return [sys.executable, "-I", "-S", os.path.abspath(__file__), "play", self.name, *argv]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()


def request_play(name: str, argv: Sequence[str]) -> int:
    """Makes the server of that name play `argv`; returns the exit status."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(f"\0{name}")

        def pass_on(_number: int, _frame: FrameType | None) -> None:
            server.send(b"t")

        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        signal.signal(signal.SIGTERM, pass_on)
        order = {"argv": argv, "cwd": os.getcwd(), "environment": dict(os.environ)}
        socket.send_fds(server, [json.dumps(order).encode()], [0, 1, 2])
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        answer = server.recv(1)
    return answer[0] if answer else 1


def serve(listener: socket.socket) -> NoReturn:
    """Imports Ansible and executes requested plays, until SIGTERM."""
    for name in MODULES:
        importlib.import_module(f"ansible.{name}")
    sys.path.append(os.path.abspath(f"{__file__}/../../.."))
    packing, constants = importlib.import_module("runners.ansible.packing"), sys.modules["ansible.constants"]
    packing.install()
    store = packing.Store(Path(constants.ANSIBLE_HOME), Path(constants.DEFAULT_LOCAL_TMP))
    _load_plugins()
    gc.freeze()  # or each collection in a play would visit all this, and copy its pages
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for the waiters
    while True:
        asker, _ = listener.accept()
        if _user(asker) == os.geteuid():
            _fork(lambda asker=asker: _wait_on(asker, listener, store.keep))  # type: ignore[misc]
        asker.close()


def _load_plugins() -> None:
    """Parses in advance what a play would parse before its first task: metadata of Ansible, and descriptions of
    plugins.
    """
    from ansible.plugins import loader

    loader.init_plugin_loader()
    # Each play repeats this without effect, because its settings are those of the server.
    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured")
    importlib.import_module("ansible_collections.ansible.builtin")
    for kind in ("become", "connection", "inventory", "shell", "vars"):
        list(getattr(loader, f"{kind}_loader").all(class_only=True))


def _user(peer: socket.socket) -> int:
    """Returns the client's credentials, because an abstract address (unix(7)) has no permissions."""
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def _fork(child: Callable[[], NoReturn]) -> int:
    """Forks a child that dies with this process; returns its process id."""
    import ctypes

    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # the parent died before prctl
            os._exit(1)
        child()
    return pid


def _wait_on(asker: socket.socket, listener: socket.socket, afterwards: Callable[[], None]) -> NoReturn:
    """Runs one play: starts it, ends it when the client requests that or disconnects, and returns its status.

    `afterwards` is called when the client has the status.
    """
    import atexit

    from ansible.config.manager import cleanup_tmp_file

    atexit.unregister(cleanup_tmp_file)  # the directory belongs to the server, with its packed modules
    listener.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    request, files, _flags, _address = socket.recv_fds(asker, LONGEST_REQUEST, 3)
    if len(files) != 3:
        os._exit(1)
    order = json.loads(request)
    play = _fork(lambda: _play(asker, files, **order))
    for file in files:
        os.close(file)
    ended = os.pidfd_open(play)
    while ended not in select.select([ended, asker.fileno()], [], [])[0]:
        os.kill(play, signal.SIGTERM)
        if not asker.recv(1):
            if not select.select([ended], [], [], GRACE_SECONDS)[0]:
                os.killpg(play, signal.SIGKILL)
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(play, 0)[1])
    asker.send(bytes([status if status >= 0 else 128 - status]))
    afterwards()
    os._exit(0)


def _play(
    asker: socket.socket, files: Sequence[int], *, argv: Sequence[str], cwd: str, environment: Mapping[str, str]
) -> NoReturn:
    """Becomes ansible-playbook with the client's arguments, environment and standard files."""
    from ansible.cli.playbook import PlaybookCLI

    asker.close()
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    PlaybookCLI.cli_executor(list(argv))
    raise AssertionError("cli_executor() ends the process")


if __name__ == "__main__":
    if sys.argv[1] == "play":
        sys.exit(request_play(sys.argv[2], sys.argv[3:]))
    serve(socket.socket(fileno=int(sys.argv[2])))
