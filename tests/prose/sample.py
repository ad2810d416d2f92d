# SPDX-License-Identifier: BSD-2-Clause
"""`python -m tests.prose.sample --seed N --count 40 PATH ...`: prints texts drawn at random, with file and line.

It draws comments, docstrings and paragraphs.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from tests.prose.texts import Text, files, texts


def draw(paths: list[Path], seed: int, count: int) -> list[tuple[Path, Text]]:
    """Up to count texts of at least four words; the same ones for the same seed and tree."""
    found = [
        (file, text)
        for path in paths
        for file in files(path)
        for text in texts(file)
        if text.kind in {"comment", "docstring", "paragraph"} and len(text.text.split()) >= 4
    ]
    return random.Random(seed).sample(found, min(count, len(found)))


def main(arguments: list[str]) -> int:
    """Print a sample."""
    parser = argparse.ArgumentParser(prog="python -m tests.prose.sample", description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    options = parser.parse_args(arguments)
    for file, text in draw(options.paths, options.seed, options.count):
        print(f"{file}:{text.line}: {' '.join(text.text.split())}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
