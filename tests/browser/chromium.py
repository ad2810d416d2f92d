# SPDX-License-Identifier: BSD-2-Clause
"""Debian's Chromium and how to start it."""

CHROMIUM = "/usr/bin/chromium"

# No sandbox because tests may run as root; the other options keep Chromium from contacting its maker.
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
