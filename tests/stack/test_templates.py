# SPDX-License-Identifier: BSD-2-Clause
"""A locking strategy and a congestion control are added by one file and one line of meson.build each."""

from __future__ import annotations

import difflib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.builds import MESON, ROOT
from tests.stack.topology import PATIENCE, run

TREE = ROOT / "stack"
LISTS = {"tcp_lock": "tcp_locks", "tcp_cc": "tcp_ccs"}  # prefix of the file: list in meson.build
PROGRAMS = ("stack", "bootstack", "tcpload")  # targets of meson
CONF = """
if.mem0.inet="10.97.0.1/24"
if.mem0.wire="mirror"
net.inet.tcp.input="my-lock"
net.inet.tcp.cc.algorithm="my-cc"
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the stack with both templates added, and a debug build of it in build/."""
    tree = tmp_path_factory.mktemp("templates") / "stack"
    shutil.copytree(TREE, tree)
    for prefix, name in (("tcp_lock", "my-lock"), ("tcp_cc", "my-cc")):
        add(tree, prefix, name)
    run(MESON, "setup", str(tree / "build"), str(tree), "--buildtype=debug", "-Dinvariants=true", "-Dwitness=true")
    run(MESON, "compile", "-C", str(tree / "build"), "-j2", *PROGRAMS, timeout=1800)
    yield tree
    shutil.rmtree(tree)


def add(tree: Path, prefix: str, name: str) -> None:
    """Add a copy of a template: its file, and its line in the list."""
    word = name.replace("-", "_")
    template = (tree / "tests" / "templates" / f"{prefix}_template.c").read_text(encoding="utf-8")
    (tree / "netinet" / f"{prefix}_{word}.c").write_text(template.replace("template", word), encoding="utf-8")
    build = tree / "meson.build"
    head, start, tail = build.read_text(encoding="utf-8").partition(f"{LISTS[prefix]} = [\n")
    items, end, rest = tail.partition("]\n")
    assert start
    assert end
    build.write_text(f"{head}{start}{items}  '{name}',\n{end}{rest}", encoding="utf-8")


def boot(tree: Path, conf: str) -> subprocess.CompletedProcess[str]:
    """Send small messages from the stack to itself by the mirror of an interface in memory, for a second."""
    path = tree / "loader.conf"
    path.write_text(conf, encoding="ascii")
    load = [str(tree / "build" / "tcpload"), "alone", "rr", "-t", "1", "10.97.0.7", "5999"]
    return subprocess.run(
        [str(tree / "build" / "bootstack"), "-c", str(path), "--", *load],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


def test_each_touches_one_file_and_one_line(tree: Path) -> None:
    def files(root: Path) -> dict[str, bytes]:
        paths = (path for path in root.rglob("*") if path.is_file() and "build" not in path.relative_to(root).parts)
        return {str(path.relative_to(root)): path.read_bytes() for path in paths if path.name != "loader.conf"}

    before, after = files(TREE), files(tree)
    assert set(after) - set(before) == {"netinet/tcp_lock_my_lock.c", "netinet/tcp_cc_my_cc.c"}
    assert [name for name in before if before[name] != after[name]] == ["meson.build"]
    old, new = (each["meson.build"].decode().splitlines() for each in (before, after))
    changed = [line for line in difflib.ndiff(old, new) if line[0] in "+-"]
    assert sorted(changed) == ["+   'my-cc',", "+   'my-lock',"]


def test_both_boot_and_carry_traffic(tree: Path) -> None:
    done = boot(tree, CONF)
    assert done.returncode == 0, done.stdout + done.stderr
    output = done.stdout + done.stderr
    assert 'net.inet.tcp.input="my-lock"' in output
    assert 'net.inet.tcp.cc.algorithm="my-cc"' in output


@pytest.mark.parametrize(("name", "value"), [("net.inet.tcp.input", "my-lock"), ("net.inet.tcp.cc.algorithm", "my-cc")])
def test_a_wrong_value_is_answered_with_the_new_one(tree: Path, name: str, value: str) -> None:
    done = boot(tree, f'{name}="nonsense"\n')
    assert done.returncode != 0
    assert value in done.stdout + done.stderr
