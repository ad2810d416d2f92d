# SPDX-License-Identifier: BSD-2-Clause
"""The command line: exit status 1 means that a load costs more, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfweb.counted.comparison import LoadComparison
from perfweb.counted.costs import Cost
from runners.counted.__main__ import FAILED, main, parser, report
from runners.counted.command import Result
from runners.counted.page import About


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--json", "nowhere/x.json", "x.patch"], "--json: there is no directory "),
        (["--html", "nowhere/x.html", "x.patch"], "--html: there is no directory "),
        (["--json", ".", "x.patch"], "--json: . is a directory: name a file"),
        (["--html", ".", "x.patch"], "--html: . is a directory: name a file"),
        (["--html", "/dev/full", "x.patch"], "x.patch cannot be read: No such file or directory"),
        (["--html", "/dev/full", "x.patch"], "/dev/full cannot be written: No space left on device"),
        (
            ["--only", "tcp.rx", "Makefile"],
            "no load has a name that begins with “counted.tcp.rx” (did you mean counted.tcp.rr",
        ),
        (["x.patch"], "x.patch cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_compared_is_an_error(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Makefile").touch()
    monkeypatch.setenv("PERFWEB_VAR", str(tmp_path / "var"))
    assert main(["--base", str(tmp_path), *words]) == FAILED
    assert message in capsys.readouterr().err


def test_a_configuration_that_is_not_text_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PERFWEB_VAR", str(tmp_path / "var"))
    for name in ("Kconfig", "Makefile"):
        (tmp_path / name).touch()
    patch, extra = tmp_path / "x.patch", tmp_path / "latin1.config"
    patch.write_text("--- a/Makefile\n+++ b/Makefile\n@@ -0,0 +1 @@\n+all:\n")
    extra.write_bytes(b"# \xe4\n")
    assert main(["--base", str(tmp_path), "--config", str(extra), str(patch)]) == FAILED
    assert "latin1.config is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["nan", "inf", "-1", "0", "soon"])
def test_an_impossible_limit_is_refused(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--base", "x", "--limit", limit, "x.patch"])
    assert ended.value.code == FAILED
    assert "--limit" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_file_that_cannot_be_written_does_not_cost_the_verdict(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = parser().parse_args(["--base", "linux", option, "/dev/full", "x.patch"])
    load = LoadComparison("counted.udp.rr/local/ipv4", Cost(100), Cost(120), 0.25, (), 0.0)
    assert report(options, About(["x.patch"], "linux", 3), Result([load], [])) == FAILED
    printed = capsys.readouterr()
    assert "counted.udp.rr/local/ipv4" in printed.out
    assert "/dev/full cannot be written: No space left on device" in printed.err
