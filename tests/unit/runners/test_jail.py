# SPDX-License-Identifier: BSD-2-Clause
"""100 000 calls of modules, most of them hostile, to the guard and to a jail of files: nothing outside is reached.

Calls that the guard accepts are used as the modules use them, on a tree that represents the host's and has symbolic
links to a directory outside. That directory has the same content, inodes and times afterwards, and no value that was
read has its content. All of it takes less than a minute on a slow CPU, so it is part of every run of the tests.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playbooks.guard import Call, Policy, Refused, judge
from playbooks.module_utils import beneath, linux, parameters, remembered
from playbooks.module_utils.linux import SettingError, Sysctl
from playbooks.module_utils.remembered import Change, Memory, write_durably
from tests.hostilevalues import Mutator, valid

EXAMPLES, CALLS = 2000, 50
"""Seeds, and calls of each."""
CANARY = "what lies outside"


@dataclass(frozen=True)
class Jail:
    """The place of a host's files in the tests, and of the files outside."""

    top: Path
    outside: Path
    policy: Policy

    def untouched(self) -> dict[str, Any]:
        """The files outside, and the names beside the jail's own."""
        found: dict[str, Any] = {"beside": sorted(path.name for path in self.top.iterdir())}
        for path in sorted(self.outside.rglob("*")):
            about = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (content, about.st_ino, about.st_mtime_ns, about.st_ctime_ns, about.st_mode)
        return found


@pytest.fixture(scope="module")
def jail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jail]:
    top = tmp_path_factory.mktemp("jail").resolve()
    outside, runs, builds = top / "outside", top / "runs", top / "runs" / "builds"
    system, devices = top / "proc", top / "class"
    for directory in (outside / "rx", builds / "k3y", runs / "run-dut" / "boot1", system / "net/ipv4/conf/data0",
                      devices / "data0/queues/rx-0", devices / "data1/queues/rx-0"):  # fmt: skip
        directory.mkdir(parents=True)
    for name in ("secret", "rps_cpus", "rx/rps_cpus", "evil.knobs", "dut.knobs"):
        (outside / name).write_text(f"{CANARY}\n")
    for name in ("ipv4/tcp_sack", "ipv4/conf/data0/rp_filter"):
        (system / "net" / name).write_text("1\n")
    for device in ("data0", "data1"):
        (devices / device / "mtu").write_text("1500\n")
        (devices / device / "queues/rx-0/rps_cpus").write_text("1\n")
        (devices / device / "queues/rx-1").symlink_to(outside / "rx")
    for place in (runs, runs / "run-dut", system / "net" / "ipv4"):
        (place / "link").symlink_to(outside)
        (place / "evil").symlink_to(outside / "secret")
    for ending in ("knobs", "net", "before", "data_path"):
        (runs / f"evil.{ending}").symlink_to(outside / "secret")
    (runs / "run-link").symlink_to(outside)
    policy = Policy(str(runs), str(builds), ["data0", "data1"], [1879048192, 2147483647], "/opt/meson", "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linux, "SYSCTLS", system)
        patch.setattr(linux, "DEVICES", devices)
        # A synced write takes a disk's time, and there are thousands.
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield Jail(top, outside, policy)


def use(jail: Jail, call: Call) -> Iterator[str]:
    """Use the files of a call as its module does; return what was read."""
    values = call.parameters
    parameters.require_no_links(values)
    if call.module == "linux_knobs":
        yield from set_knobs(values)
    if "memory" in values or "record" in values:
        path = Path(values.get("memory") or values["record"])
        yield json.dumps(remembered.load(path))
        write_durably(path, json.dumps([["sysctl", "net.ipv4.tcp_sack", "", "1"]]))
        remembered.forget(path)
    if "directory" in values:
        directory = beneath.absolute(values["directory"])
        with beneath.directory("/", directory, make=True):
            for name, text in values.get("files", {}).items():
                beneath.write_text("/", f"{directory}/{name}", text, make=True)
    if call.module == "run_directory":
        with beneath.directory("/", beneath.absolute(f"{values['root']}/{values['name']}"), make=True):
            pass


def set_knobs(values: dict[str, Any]) -> Iterator[str]:
    """As the module linux_knobs: the old values are read and stored, then each is set."""
    for name, bare in linux.own(values.get("knobs", {}), values.get("roles", [])).items():
        for setting in linux.settings_of(bare, values.get("links", [])):
            if isinstance(setting, linux.Offload | linux.Qdisc):  # set by ethtool(8) and tc(8), which use no path
                continue
            yield setting.read()
            if not isinstance(setting, linux.Mtu):  # set by ip(8)
                setting.write(values["knobs"][name])


seen: Counter[str] = Counter()


@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**64))
def test_no_call_reaches_a_file_outside(seed: int, jail: Jail) -> None:
    before = jail.untouched()
    tops = [jail.policy.lab_root, jail.policy.builds_root, str(linux.SYSCTLS), str(linux.DEVICES), "/usr"]
    mutator = Mutator(seed, valid(jail.policy.lab_root, jail.policy.builds_root), tops, jail.outside)
    for _ in range(CALLS):
        module, values = mutator.call()
        try:
            call = judge(Call(module, values, {}), jail.policy)
        except Refused:
            seen["refused"] += 1
            continue
        seen["allowed"] += 1
        read = []
        try:
            read += list(use(jail, call))
        except (OSError, ValueError, SettingError):
            seen["refused when used"] += 1
        assert not any(CANARY in text for text in read), (module, values)
    assert jail.untouched() == before


def test_calls_of_both_kinds_were_tried() -> None:
    """The mutations are neither all refused nor all harmless."""
    print(dict(seen))
    assert seen["refused"] + seen["allowed"] >= EXAMPLES * CALLS
    assert min(seen["allowed"], seen["refused"]) > EXAMPLES * CALLS / 10
    assert seen["refused when used"] > 100


@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**64))
def test_what_is_remembered_is_checked_when_it_is_read_back(seed: int, jail: Jail) -> None:
    before = jail.untouched()
    choose = random.Random(seed)
    path = Path(jail.policy.lab_root, "kept.knobs")
    mutator = Mutator(seed, {"rows": {"rows": []}}, [jail.policy.lab_root], jail.outside)
    row: list[Any] = ["sysctl", "net.ipv4.tcp_sack", "", "1"]
    row[choose.randrange(4)] = choose.choice([mutator.sysctl(), mutator.path(), mutator.text(), mutator.value("1")])
    path.write_text(json.dumps([row] if choose.random() < 0.9 else row))
    try:
        for change in Memory(path).changes:
            if isinstance(change.setting, Sysctl):
                assert CANARY not in change.setting.read()
                change.setting.write(change.before)
    except (OSError, ValueError, SettingError):
        pass
    assert jail.untouched() == before


def test_what_cannot_be_read_back_is_not_kept() -> None:
    with pytest.raises(SettingError, match="does not take"):
        Change(Sysctl("net.ipv4.tcp_sack"), "1\n/etc")
