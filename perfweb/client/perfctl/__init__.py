# SPDX-License-Identifier: BSD-2-Clause
"""Reads a perfweb server: `Server` from Python, `perfctl` on the command line. It knows the API and nothing else."""

from perfctl.server import Refused, Server, ServerError

__all__ = ["Refused", "Server", "ServerError"]
