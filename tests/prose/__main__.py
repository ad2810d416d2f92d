# SPDX-License-Identifier: BSD-2-Clause
"""`python -m tests.prose [PATH ...]`: fails if prose has words to replace; lists sentences to split."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.prose.check import FOLDERS, ROOT, SENTENCE_WORDS, TESTS, check
from tests.prose.texts import KINDS


def main(arguments: list[str]) -> int:
    """Check the given paths, or the default folders; the exit status."""
    wrong, long = check([Path(argument).resolve() for argument in arguments] or [ROOT / folder for folder in FOLDERS])
    if not arguments:
        tests = check([ROOT / folder for folder in TESTS], KINDS - {"message"})
        wrong, long = wrong + tests[0], long + tests[1]
    for finding in (*long, *wrong):
        print(finding)
    print(f"prose: {len(wrong)} words to replace, {len(long)} sentences of more than {SENTENCE_WORDS} words")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
