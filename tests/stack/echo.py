# SPDX-License-Identifier: BSD-2-Clause
"""An echo server on one event loop: `echo.py PORT UNIX_PATH`.

TCP clients come through the stack and a UNIX socket through the kernel; SIGTERM arrives on the loop's own wake-up
descriptor. So one epoll set holds descriptors of both kinds.
"""

from __future__ import annotations

import asyncio
import signal
import sys


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send received bytes back, to the end."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


async def serve(port: int, path: str) -> None:
    """Serve until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with await asyncio.start_server(echo, "0.0.0.0", port), await asyncio.start_unix_server(echo, path):  # noqa: S104
        print("listening", flush=True)
        await stop.wait()
    print("stopped", flush=True)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2]))
