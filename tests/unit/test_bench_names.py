# SPDX-License-Identifier: BSD-2-Clause
"""`./dev bench NAME` has the benches that `./dev` lists."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.bench.__main__ import BENCHES, main

ROOT = Path(__file__).resolve().parents[2]


def test_dev_lists_every_bench() -> None:
    listed = re.findall(r"(?m)^\./dev bench (\w+)", (ROOT / "dev").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(BENCHES)


@pytest.mark.parametrize("name", BENCHES)
def test_each_bench_is_a_module_that_can_be_run(name: str) -> None:
    found = importlib.util.find_spec(BENCHES[name].module)
    assert found is not None
    assert 'if __name__ == "__main__":' in Path(str(found.origin)).read_text(encoding="utf-8")


@pytest.mark.parametrize("words", [[], ["nothing"]])
def test_a_name_that_is_none_lists_all(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    listed = capsys.readouterr().err
    assert all(f"\n  {name}" in listed for name in BENCHES)


def test_arguments_are_those_of_the_bench(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--needs", "lab", "--boots", "3", "--help"])
    assert capsys.readouterr().out == "lab\n"
