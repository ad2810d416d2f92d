# SPDX-License-Identifier: BSD-2-Clause
"""The checks of locks and progress, and assertions, are not in the measured build."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.stack.builds import ROOT
from tests.stack.topology import Installed, run

STACK = ROOT / "stack"
BINARIES = ["lib/libstack.so", "bin/bootstack"]

# Compiled only with -Dwitness or -Dlock_profiling, as in stack/meson.build.
WATCHERS = (
    "kern/ddb_locks.c", "kern/lock_prof.c", "kern/lock_track.c", "kern/mutex_prof.c", "kern/watchdog.c",
    "kern/witness.c", "machine/posix/calls.c", "machine/posix/symbols.c", "machine/sim/calls.c",
)  # fmt: skip
# Files that are in the measured build, too.
MARKS = ("kern/lock.c", "INVARIANTS", "WITNESS", "LOCK_PROFILING")

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
FUNCTION = re.compile(r"^([a-z]\w*)\(", re.MULTILINE)
ASSERTION = re.compile(r"\bKASSERT\((.*?)\);", re.DOTALL)
LONG = 12  # characters: shorter texts are found by chance


def literals(code: str) -> set[str]:
    """The texts in C code as the compiler joins them, without those with escapes, includes and short ones."""
    code = re.sub(r"/\*.*?\*/|^#.*?$", "", code, flags=re.DOTALL | re.MULTILINE)
    joined = re.sub(r'"\s+"', "", code)
    return {text for text in LITERAL.findall(joined) if len(text) >= LONG and "\\" not in text}


def sources() -> dict[str, str]:
    """All C files of the stack that are part of it, by their path in it."""
    folders = ("machine", "kern", "net", "netinet", "netinet6", "dev", "boot", "api")
    files = (path for folder in folders for path in (STACK / folder).rglob("*.c"))
    return {str(path.relative_to(STACK)): path.read_text(encoding="utf-8") for path in files}


def traces() -> set[str]:
    """Every text that only a build with checks has."""
    code = sources()
    asserted = {text for each in code.values() for body in ASSERTION.findall(each) for text in literals(body)}
    watching = {text for name in WATCHERS for text in literals(code[name])}
    plain = {text for name, each in code.items() if name not in WATCHERS for text in literals(ASSERTION.sub("", each))}
    return (asserted | watching | set(MARKS)) - plain - {"net.isr.dispatch"}


@pytest.mark.parametrize("name", BINARIES)
def test_a_release_has_no_text_of_them(installed: Installed, name: str) -> None:
    wanted = traces()
    assert {"lock order reversal", "debug.watchdog.seconds", "debug.mutex.prof.enable", "show alllocks"} <= wanted
    assert len(wanted) > 200
    content = (installed.prefix / name).read_bytes()
    assert b"net.isr.dispatch" in content
    assert sorted(text for text in wanted if text.encode() in content) == []


@pytest.mark.parametrize("name", BINARIES)
def test_a_release_has_no_symbol_of_them(installed: Installed, name: str) -> None:
    code = sources()
    watching = {function for each in WATCHERS for function in FUNCTION.findall(code[each])}
    plain = {function for each, text in code.items() if each not in WATCHERS for function in FUNCTION.findall(text)}
    assert {"witness_order", "lock_got", "watchdog_main", "mach_thread_calls"} <= watching
    table = run("nm", str(installed.prefix / name))
    symbols = {line.split()[-1].partition(".")[0].partition("@")[0] for line in table.splitlines()}
    assert "tcp_input" in symbols, "the symbols are there to be looked at"
    assert sorted((watching - plain) & symbols) == []


def test_the_list_is_that_of_the_build() -> None:
    build = (STACK / "meson.build").read_text(encoding="utf-8")
    named = re.findall(r"watchers \+= files\((.*?)\)", build, re.DOTALL)
    assert sorted(name for group in named for name in re.findall(r"'([^']+)'", group)) == sorted(WATCHERS)
    assert all(Path(STACK / name).exists() for name in WATCHERS)
