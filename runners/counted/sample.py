# SPDX-License-Identifier: BSD-2-Clause
"""Boots an installed kernel once, and prints what its loads cost as JSON: a sample of the service.

    python3 -m runners.counted.sample PREFIX --seed N

It runs in a sandbox (lane.py). Exit status: 0, or 1 with the end of the console and the decisive line as the last one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from perfweb.counted import costs
from runners.counted import make
from runners.counted.boot import Machine, boot
from runners.counted.counts import Symbols
from runners.counted.errors import BootError, CountedError

LIMIT = 100.0
"""Max seconds of a boot, so that a hang is reported within two minutes."""
CONSOLE_CHARACTERS = 200_000
"""Max length of the end of a console that is printed for a kernel that fails."""


def main(argv: Sequence[str]) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="boots a kernel and prints what its loads cost")
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--only", default="")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        return _sample(options, Path(folder) / "boot")


def _sample(options: argparse.Namespace, folder: Path) -> int:
    prefix: Path = options.prefix
    machine = Machine(prefix / make.PLUGIN, prefix / make.ROOT, options.limit, options.only)
    symbols = Symbols((prefix / make.SYMBOLS).read_text(encoding="ascii", errors="replace").splitlines())
    try:
        booted = boot(machine, prefix / make.TARGET, symbols, options.seed, folder)
    except BootError as error:
        console = folder / "console"
        if console.exists():
            text = console.read_text(encoding="utf-8", errors="replace").replace("\r", "")
            print(text[-CONSOLE_CHARACTERS:], file=sys.stderr)
        print(str(error).partition("\nconsole: ")[0].replace("\n", " "), file=sys.stderr)
        return 1
    except CountedError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({load: costs.written(found) for load, found in booted.costs.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
