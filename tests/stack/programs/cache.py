# SPDX-License-Identifier: BSD-2-Clause
"""A client of memcached: `cache.py ADDRESS PORT` stores values on several connections and reads them on others."""

from __future__ import annotations

import socket
import sys
import threading

SIZES = (0, 1, 1000, 20_000, 900_000)
CONNECTIONS = 4


def value(connection: int, size: int) -> bytes:
    """A value that differs between connections and sizes."""
    return (b"%d:%d " % (connection, size) * (size // 4 + 1))[:size]


def store(address: tuple[str, int], connection: int) -> None:
    """Store one value of each size; read the responses after all requests."""
    with socket.create_connection(address, timeout=120) as sock, sock.makefile("rb") as responses:
        requests = [
            b"set k%d-%d 0 0 %d\r\n%b\r\n" % (connection, size, size, value(connection, size)) for size in SIZES
        ]
        sock.sendall(b"".join(requests))
        assert [responses.readline() for _ in SIZES] == [b"STORED\r\n"] * len(SIZES)


def read(address: tuple[str, int], connection: int) -> None:
    """Read all values of a connection with one request."""
    with socket.create_connection(address, timeout=120) as sock, sock.makefile("rb") as responses:
        sock.sendall(b"get" + b"".join(b" k%d-%d" % (connection, size) for size in SIZES) + b"\r\n")
        for size in SIZES:
            assert responses.readline() == b"VALUE k%d-%d 0 %d\r\n" % (connection, size, size)
            assert responses.read(size + 2) == value(connection, size) + b"\r\n"
        assert responses.readline() == b"END\r\n"


def main() -> None:
    """Both for all connections, in threads."""
    address = (sys.argv[1], int(sys.argv[2]))
    complete = []

    def exchange(connection: int) -> None:
        store(address, connection)
        read(address, connection)
        complete.append(connection)

    threads = [threading.Thread(target=exchange, args=(n,)) for n in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("exchanged", len(complete))


if __name__ == "__main__":
    main()
