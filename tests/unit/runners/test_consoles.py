# SPDX-License-Identifier: BSD-2-Clause
"""The output of a console during a boot."""

from __future__ import annotations

from pathlib import Path

from perfweb.lab.inventory import InventoryHost
from runners.consoles import MOST_BYTES, Consoles


def host(role: str, console: str) -> InventoryHost:
    return InventoryHost(role, f"host-{role}", "127.0.0.1", (), (), "", "", console)


def test_console_output_since_a_position(tmp_path: Path) -> None:
    console, late = tmp_path / "console", tmp_path / "late"
    console.write_bytes(b"before\n")
    consoles = Consoles([host("dut", str(console)), host("left", str(late)), host("right", "")])
    assert consoles.output() == {}
    with console.open("ab") as more:
        more.write(b"Kernel panic\r\n\xff\0")
    late.write_bytes(b"first words\n")
    assert consoles.output() == {"dut": "Kernel panic\n\N{REPLACEMENT CHARACTER}", "left": "first words\n"}


def test_a_file_that_was_begun_anew_and_one_that_is_long(tmp_path: Path) -> None:
    console = tmp_path / "console"
    console.write_bytes(b"long before\n")
    consoles = Consoles([host("dut", str(console))])
    console.write_bytes(b"anew\n")
    assert consoles.output() == {"dut": "anew\n"}
    console.write_bytes(b"long before\nx" + b"y" * MOST_BYTES)
    assert consoles.output() == {"dut": "y" * MOST_BYTES}


def test_one_that_cannot_be_read_costs_nothing(tmp_path: Path) -> None:
    assert Consoles([host("dut", str(tmp_path))]).output() == {}
