# SPDX-License-Identifier: BSD-2-Clause
"""Runs scripts against the stack: `./dev conformance [FOLDER ...]`.

The scripts of the stack are played by this package; each has a separate stack in virtual time, with IPv4, with IPv4 in
IPv6 sockets, and with IPv6. The scripts of other folders are run by packetdrill. The result is a line for each that
fails, and with --json a list of objects:

    {"script": "NAME", "family": "ipv4", "result": "pass" | "fail", "clauses": ["RFC 9293 3.8.4", ...], "error": null}
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.stack import builds
from tests.stack.conformance import cases, play, program, runs, table

LIBRARY = "libstack_packetdrill.so"
PERSONALITIES = ("default", "linux", "freebsd", "openbsd")


def own_results(options: argparse.Namespace, tunables: Sequence[str]) -> Iterator[runs.Result]:
    """Play the selected scripts of the stack."""
    library = builds.make(options.build, LIBRARY) / LIBRARY
    chosen = [
        (case, family)
        for case in cases.read_folder(table.OWN)
        for family in case.families
        if family in options.family and (not options.only or any(part in case.name for part in options.only))
    ]
    return runs.run(library, chosen, tunables, options.ignore)


def print_scripts(only: Sequence[str]) -> None:
    """Print scripts as packetdrill reads them."""
    for case in cases.read_folder(table.OWN):
        if any(part in case.name for part in only or [""]):
            print(f"// {case.name}\n{case.text}")


def main(words: Sequence[str]) -> int:
    """Return 1 if a script fails."""
    parser = argparse.ArgumentParser(prog="./dev conformance", description="Run scripts of packets against the stack.")
    parser.add_argument("folder", nargs="*", type=Path, help="run packetdrill with a tree of scripts, not the stack's")
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="scripts with PART in their names")
    parser.add_argument("--family", action="append", choices=cases.FAMILIES, help="one of the protocols only")
    parser.add_argument("--ignore", action="append", default=[], choices=play.LOOSE, help="compare less strictly")
    parser.add_argument("--personality", choices=PERSONALITIES, default="default", help="tunables of a system")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a tunable of the stack")
    parser.add_argument("--build", choices=builds.BUILDS, default="release", help="the build of the stack")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--print", action="store_true", help="print the selected scripts as packetdrill reads them")
    parser.add_argument("--table", action="store_true", help=f"write {table.PAGE.name}: clauses and their scripts")
    options = parser.parse_args(words)
    options.family = options.family or list(cases.FAMILIES)
    for folder in options.folder:
        if not folder.is_dir():
            parser.error(f"{folder} is not a folder")
    if options.table:
        table.PAGE.write_text(table.page(), encoding="utf-8")
        return 0
    if options.print:
        print_scripts(options.only)
        return 0
    tunables = [f"net.inet.tcp.personality={options.personality}", *options.set]
    if options.folder:
        found = program.run_folders(options.folder, options.only, options.family, tunables)
    else:
        found = own_results(options, tunables)
    results = []
    for result in found:
        results.append(result)
        if result.error is not None or options.folder:
            print(
                "pass" if result.error is None else "FAIL", result.script, result.family, result.error or "", flush=True
            )
    failed = sum(result.error is not None for result in results)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8")
    if not results:
        parser.error("no script was selected; `./dev conformance --print` prints all of them")
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
