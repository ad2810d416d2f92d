# SPDX-License-Identifier: BSD-2-Clause
"""The page of a comparison: one file with the verdicts, in which untrusted text is only text."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from perfweb.builds.patches import read_series
from perfweb.counted.comparison import FunctionDifference, LoadComparison
from perfweb.counted.costs import Cost
from perfweb.counted.diagnostics import Diagnostic
from runners.counted import page
from runners.counted.__main__ import FAILED, main
from runners.counted.command import Result
from runners.counted.errors import BootError, BuildError, CountedError

ABOUT = page.About(["0001-x.patch"], "linux v6.1", 3)
HOSTILE = "<script>alert(1)</script>"
EXAMPLE = Path(page.__file__).with_name("example.patch")


class Read(HTMLParser):
    """The elements, the addresses, and the visible text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps an element, and the addresses that it loads or links."""
        self.elements.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href"}]

    def handle_data(self, data: str) -> None:
        """Keeps the text outside of the style sheets."""
        if self.elements[-1:] != ["style"]:
            self.words += data.split()

    @property
    def text(self) -> str:
        """The visible text, with single spaces."""
        return " ".join(self.words)


def load(name: str, *functions: FunctionDifference, unexplained: float = 0.0) -> LoadComparison:
    return LoadComparison(name, Cost(100), Cost(120), 0.25, functions, unexplained)


def test_each_verdict_is_on_the_page_with_its_functions() -> None:
    loads = [
        load("counted.tcp.rr/local/ipv4", FunctionDifference("tcp_v4_rcv", Cost(20, 2, 0))),
        load("counted.tcp.stream/local/ipv4", FunctionDifference("tcp_ack", Cost(-3, 0, 0))),
        load("counted.udp.rr/local/ipv4", unexplained=7.5),
    ]
    read = Read(page.of_result(ABOUT, Result(loads, [])))
    for text in (
        "0001-x.patch counted", "linux v6.1", "3 boots of each kernel", "1 more, 1 fewer, 1 equal", "▲ more", "▼ fewer",
        "= equal", "tcp_v4_rcv +20.0000 +2.0000 =", "tcp_ack -3.0000 = =",
        "counted.udp.rr/local/ipv4: +7.50 for each round trip", "Counted, not measured",
    ):  # fmt: skip
        assert text in read.text, text


def test_the_page_is_one_file_without_scripts() -> None:
    read = Read(page.of_result(ABOUT, Result([load("counted.udp.rr/local/ipv4")], [])))
    assert "script" not in read.elements
    assert read.addresses == []
    assert "No difference is attributed to a function." in read.text


def test_text_of_patches_compilers_and_consoles_is_escaped() -> None:
    about = page.About([f"{HOSTILE}.patch"], HOSTILE, 3)
    warning = Diagnostic("x.c", 1, "warning", HOSTILE, (f"x.c:1: warning: {HOSTILE}",))
    result = Result([load("counted.udp.rr/local/ipv4", FunctionDifference(HOSTILE, Cost(1)))], [warning])
    for made in (page.of_result(about, result), page.of_failure(about, BootError(f"panic: {HOSTILE}"))):
        read = Read(made)
        assert "script" not in read.elements
        assert HOSTILE in read.text


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (BuildError("net/x.c:3: error: unknown"), "✗ does not build net/x.c:3: error: unknown"),
        (BootError("panic: Kernel panic"), "✗ does not run panic: Kernel panic"),
        (CountedError("x.patch does not apply"), "✗ cannot be compared x.patch does not apply"),
    ],
)
def test_a_failure_is_a_verdict_with_its_words(error: CountedError, verdict: str) -> None:
    assert verdict in Read(page.of_failure(ABOUT, error)).text


def test_the_command_writes_the_page_of_a_patch_that_does_not_apply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PERFWEB_VAR", str(tmp_path / "var"))
    for name in ("Kconfig", "Makefile"):
        (tmp_path / name).touch()
    assert main(["--base", str(tmp_path), "--html", str(tmp_path / "x.html"), str(EXAMPLE)]) == FAILED
    assert "net/ipv4/tcp_ipv4.c is not in the base" in capsys.readouterr().err
    read = Read((tmp_path / "x.html").read_text(encoding="utf-8"))
    assert "✗ cannot be compared" in read.text
    assert "net/ipv4/tcp_ipv4.c is not in the base" in read.text


def test_the_shipped_example_is_a_patch_with_a_subject() -> None:
    (patch,) = read_series(EXAMPLE.read_bytes()).patches
    assert patch.subject == "tcp: count received segments in a shared counter"
