# SPDX-License-Identifier: BSD-2-Clause
"""A server that accepts connections and never answers."""

import contextlib
import socket
import threading
from types import TracebackType


class SilentServer:
    """Listens on loopback in a `with` block."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.clients: list[socket.socket] = []
        self.thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    @property
    def connections(self) -> int:
        return len(self.clients)

    def clients_are_gone(self) -> bool:
        """Wait until all clients have closed their connections."""
        for client in self.clients:
            client.settimeout(30)
            while client.recv(65536):
                pass
        return bool(self.clients)

    def __enter__(self) -> "SilentServer":
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        for client in self.clients:
            client.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.clients.append(self.listener.accept()[0])
