# SPDX-License-Identifier: BSD-2-Clause
"""Every reader accepts every line end and encoding of common text files."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from perfweb.imports.records import Record
from tests.unit.imports.reading import DATA, TOOLS, file, problems, read

TEXTS = {
    "netperf": (DATA / "netperf" / "TCP_RR-v2.txt").read_text(encoding="utf-8"),
    "iperf3": (TOOLS / "iperf3.10.txt").read_text(encoding="utf-8"),
    "ministat": "101.5\n102 # ünü\n\n103\n",
    "csv": 'test,value\ntcp.rr/host-host/ipv4,101.5\n"tcp.rr/host-host/ipv4",102\n',
}
ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r", "nel": "\x85"}
ENCODINGS = {
    "utf-8": lambda text: text.encode(),
    "utf-8 with a mark": lambda text: codecs.BOM_UTF8 + text.encode(),
    "utf-16 le": lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
    "utf-16 be": lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
}


def content(found: list[Record]) -> list[tuple[int, str, object]]:
    return [(record.line, record.test, record.values) for record in found]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("form", TEXTS)
def test_line_ends_and_encodings_change_nothing(tmp_path: Path, form: str, end: str, encoding: str) -> None:
    options = {"test": "tcp.rr/host-host/ipv4"} if form == "ministat" else {}
    usual = read(form, file(tmp_path, TEXTS[form], "usual.txt"), **options)
    other = ENCODINGS[encoding](TEXTS[form].replace("\n", ENDS[end]))
    assert content(read(form, file(tmp_path, other, "other.txt"), **options)) == content(usual)
    assert usual


def test_text_of_another_encoding_is_reported_with_its_line(tmp_path: Path) -> None:
    assert problems("ministat", file(tmp_path, b"1\r2\r\xff3\r"), test="t")[0] == (
        "given.txt:3: is not UTF-8: it has the byte 0xff"
    )
    assert "3: has a NUL character" in problems("ministat", file(tmp_path, b"1\r\n2\r\n\x003"), test="t")[0]
    cut = codecs.BOM_UTF16_LE + "1\n2\n3".encode("utf-16-le")[:-1]
    assert "is not UTF-16" in problems("ministat", file(tmp_path, cut), test="t")[0]


@pytest.mark.parametrize("override", [{}, {"unit": "Mbit/s"}])
def test_mixed_units_are_refused_even_with_an_override(tmp_path: Path, override: dict[str, str]) -> None:
    table = "test,value,unit\na/b,1,Mbit/s\na/c,5,ms\na/b,1000,Kbit/s\n"
    found = problems("csv", file(tmp_path, table), **override)
    assert found[0].startswith("given.txt:4: is in 'Kbit/s', and a/b was in 'Mbit/s' before")


def test_mixed_units_of_several_tables_are_refused_even_with_an_override(tmp_path: Path) -> None:
    first = file(tmp_path, "test,value,unit,variant\na/b,1,ms,x\n", "first.csv")
    second = file(tmp_path, "test,value,unit,variant\na/b,1000,us,y\n", "second.csv")
    assert problems("csv", first, second, unit="ms")[0].startswith("second.csv:2: is in 'us', and a/b was in 'ms'")


@pytest.mark.parametrize("blank", ["\u00a0", "\u202f", "\u2009", "\u3000", "\x0b", "\x1f", "'", "_", ","])
def test_a_number_in_groups_is_not_its_first_group(tmp_path: Path, blank: str) -> None:
    found = problems("ministat", file(tmp_path, f"12{blank}345\n"), test="t")
    assert found[0].startswith("given.txt:1: column 1 is not a number: ")
