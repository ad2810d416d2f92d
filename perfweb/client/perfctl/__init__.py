# SPDX-License-Identifier: BSD-2-Clause
"""Client of a perfweb server: `Server` from Python, `perfctl` on the command line. It uses only the API."""

from perfctl.server import Refused, Server, ServerError

__version__ = "1.0"
__all__ = ["Refused", "Server", "ServerError"]
