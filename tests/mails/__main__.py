# SPDX-License-Identifier: BSD-2-Clause
"""Compares what the service and git read of a corpus of mails, and prints counts."""

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import django

SETTINGS = "perfweb.settings.test"


def main() -> int:
    """Prints the differences and their number; returns 1 if there is one."""
    parser = argparse.ArgumentParser(prog="tests.mails", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trees", action="store_true", help="also compare the trees of all mails with git am")
    parser.add_argument(
        "--b4", type=int, default=0, metavar="EACH", help="also compare with b4 am, every so many mails"
    )
    given = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
    django.setup()
    from tests.mails import comparison
    from tests.mails.corpus import build

    with tempfile.TemporaryDirectory() as folder:
        corpus = build(Path(folder), given.seed)
        kinds = Counter(case.name.partition(" ")[0].partition(":")[0] for case in corpus.cases)
        print(f"{len(corpus.cases)} mails and {len(corpus.series)} series:", dict(kinds.most_common(3)))
        wrong = _report("author, subject, message, diff", comparison.compare(corpus))
        if given.trees:
            wrong += _report("tree", comparison.compare_trees(corpus))
        if given.b4:
            wrong += _report("the same of b4 am", comparison.compare_b4(corpus, given.b4), "b4")
    return min(wrong, 1)


def _report(what: str, findings: "Iterable[comparison.Finding]", program: str = "git") -> int:  # type: ignore[name-defined]  # noqa: F821
    counts = Counter[str]()
    for finding in findings:
        if finding.differing:
            print(f"  {finding.case.name}: {', '.join(finding.differing)}")
        counts[
            "refused" if finding.refused else "apart" if finding.apart else "differ" if finding.differing
            else "meant" if finding.case.why else "same"
        ] += 1  # fmt: skip
    print(f"{what}: {counts['same']} as {program}, {counts['meant']} as the mail means where git reads another thing, "
          f"{counts['apart']} where git and {program} differ, {counts['refused']} without a result of {program}, "
          f"{counts['differ']} differ")  # fmt: skip
    return counts["differ"]


if __name__ == "__main__":
    raise SystemExit(main())
