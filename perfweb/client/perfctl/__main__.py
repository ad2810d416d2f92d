# SPDX-License-Identifier: BSD-2-Clause
"""`perfctl`, also as `python -m perfctl`."""

from __future__ import annotations

import sys

from perfctl.commands import run_command


def main() -> int:
    """Run the command line; returns the exit status."""
    return run_command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
