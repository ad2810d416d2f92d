# SPDX-License-Identifier: BSD-2-Clause
"""The set-up: nothing to do the second time, no registry named, packages' daemons kept from starting."""

from __future__ import annotations

import fcntl
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALL = ROOT / "runners" / "install.sh"
LOCKS = ("requirements.txt", "requirements-dev.txt", "requirements-uv.txt")


def bash(program: str) -> str:
    """Runs a piece of shell with the functions of the script, but not its main program."""
    functions = INSTALL.read_text(encoding="utf-8").rpartition("\nscratch=$(mktemp -d)")[0]
    functions = re.sub(r"^readonly (POLICY)", r"\1", functions, flags=re.MULTILINE)
    return subprocess.run(
        ["bash", "-c", f"{functions}\n{program}"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout


def test_a_machine_that_is_set_up_is_left_alone() -> None:
    done = subprocess.run([INSTALL, "test"], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_an_unknown_part_is_refused() -> None:
    done = subprocess.run([INSTALL, "everything"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "unknown part 'everything': use lab, vm, kernel, linux-source, test, web or wheels" in done.stderr


@pytest.mark.parametrize("name", LOCKS)
def test_the_locks_have_hashes_and_name_no_host(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index-url" not in text
    pinned = re.findall(r"^[a-zA-Z0-9._-]+(?:\[[^\]]*\])?==\S+ \\$", text, re.MULTILINE)
    entries = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(pinned) == len(entries) > 0


def test_both_lock_files_agree() -> None:
    def versions(name: str) -> dict[str, str]:
        found = re.findall(r"^([a-zA-Z0-9._-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        return dict(found)

    service, tests = versions("requirements.txt"), versions("requirements-dev.txt")
    assert {name: tests[name] for name in service.keys() & tests.keys()} == {
        name: service[name] for name in service.keys() & tests.keys()
    }


def test_it_waits_while_another_apt_has_the_lists(tmp_path: Path) -> None:
    apt, calls = tmp_path / "apt-get", tmp_path / "calls"
    calls.touch()
    lists = (
        f"-o Dir::State::Lists={tmp_path}/lists -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/dev/null"
    )
    apt.write_text(f'#!/bin/sh\necho called >>{calls}\nexec /usr/bin/apt-get {lists} "$@"\n')
    apt.chmod(0o755)
    (tmp_path / "lists").mkdir()
    with (tmp_path / "lists" / "lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        program = f'scratch={tmp_path}; as_root() {{ PATH={tmp_path}:$PATH "$@"; }}; update_lists && echo updated'
        with ThreadPoolExecutor(1) as pool:
            update = pool.submit(bash, program)
            while not update.done() and calls.read_text().count("called") < 2:
                time.sleep(0.05)
            assert not update.done()
            fcntl.lockf(lock, fcntl.LOCK_UN)
            assert update.result(60) == "updated\n"


DEB822 = """\
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/k.gpg

Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main
"""
ONE_LINE = """\
# comment
deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib
deb http://mirror.example/security bookworm-security main
"""


@pytest.mark.parametrize(
    ("suffix", "content", "number", "expected"),
    [
        ("sources", DEB822, 1, DEB822.partition("\n\n")[0].replace("main contrib", "non-free") + "\n"),
        ("list", ONE_LINE, 2, "deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm non-free\n"),
    ],
)
def test_the_non_free_component_is_taken_from_the_machines_own_entry(
    tmp_path: Path, suffix: str, content: str, number: int, expected: str
) -> None:
    source = tmp_path / f"debian.{suffix}"
    source.write_text(content)
    program = f"""
        scratch={tmp_path}
        apt-get() {{ echo "bookworm main {source}:{number}"; }}
        update_lists() {{ :; }}
        as_root() {{ cp "$4" "$scratch/installed"; }}
        add_non_free
    """
    assert f"perfweb-non-free.{suffix}" in bash(program)
    assert (tmp_path / "installed").read_text() == expected


def test_the_sources_of_linux_are_a_repository_of_all_files(tmp_path: Path) -> None:
    """Also those of Debian's package, whose .gitignore ignores all files, and those that an older script unpacked."""
    tree = tmp_path / "var" / "linux"
    (tree / "net").mkdir(parents=True)
    (tree / ".gitignore").write_text("*\n")
    (tree / "net" / "tcp.c").write_text("int tcp;\n")
    program = f"""
        scratch={tmp_path}
        unpack_tree() {{ echo unpacked; mkdir -p var; cp -r {tree} var/; }}
        cd {tmp_path}; unpack_source; unpack_source
        mkdir new; cd new; unpack_source
        rm var/linux/.git/refs/heads/main; unpack_source
    """
    committing = "committing the sources of Linux to a repository: var/linux\n"
    assert bash(program) == f"{committing}unpacked\n{committing}{committing}"
    for made in (tree, tmp_path / "new" / "var" / "linux"):
        (made / "net" / "tcp.c").write_text("int udp;\n")
        listed, changes = (
            subprocess.run(["git", *words], cwd=made, capture_output=True, text=True).stdout
            for words in (["ls-tree", "-r", "--name-only", "main"], ["diff"])
        )
        assert listed.split() == [".gitignore", "net/tcp.c"]
        assert "+int udp;" in changes


def test_the_machines_own_policy_comes_back_also_after_a_killed_run(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("the machine's own\n")
    program = f"""
        scratch={tmp_path}
        as_root() {{ "$@"; }}
        forbid_daemons; tail -1 "$POLICY"
        forbid_daemons; allow_daemons; allow_daemons; cat "$POLICY"
    """
    functions = program.replace("scratch=", f"POLICY={policy}; POLICY_KEPT={policy}.kept; scratch=", 1)
    assert bash(functions) == "exit 101\nthe machine's own\n"
    assert not Path(f"{policy}.kept").exists()
