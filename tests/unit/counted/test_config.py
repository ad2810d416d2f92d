# SPDX-License-Identifier: BSD-2-Clause
"""Options of a kernel's configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.counted import configurations
from runners.counted import config
from runners.counted.errors import CountedError

NAMES = st.from_regex(r"CONFIG_[A-Z0-9_]{1,12}", fullmatch=True)
VALUES = st.sampled_from(["y", "m", "n", "4", '"-text"', "0x10"])


@given(st.dictionaries(NAMES, VALUES))
def test_what_is_written_is_read(wanted: dict[str, str]) -> None:
    lines = [f"# {name} is not set" if value == "n" else f"{name}={value}" for name, value in wanted.items()]
    assert config.options("\n".join(lines)) == wanted


def test_the_last_line_of_an_option_counts() -> None:
    assert config.options("CONFIG_A=y\n# CONFIG_A is not set\n# CONFIG_B is not set\nCONFIG_B=y\n") == {
        "CONFIG_A": "n",
        "CONFIG_B": "y",
    }


def test_a_file_replaces_options_of_the_lane(tmp_path: Path) -> None:
    more = tmp_path / "more.config"
    more.write_text("CONFIG_NR_CPUS=2\nCONFIG_PROVE_LOCKING=y\n", encoding="utf-8")
    found = config.options(config.fragment([str(more)]))
    assert (found["CONFIG_NR_CPUS"], found["CONFIG_PROVE_LOCKING"], found["CONFIG_INET"]) == ("2", "y", "y")


def test_options_without_effect_are_named() -> None:
    assert config.missing("CONFIG_A=y\nCONFIG_B=y\nCONFIG_C=n\n", "CONFIG_A=y\n# CONFIG_B is not set\n") == {
        "CONFIG_B": "n"
    }


def test_configurations_options_and_files_are_named_in_order(tmp_path: Path) -> None:
    found = config.options(config.fragment(["debug", "CONFIG_NR_CPUS=2", "CONFIG_DEBUG_LIST=n"]))
    assert (found["CONFIG_PROVE_LOCKING"], found["CONFIG_NR_CPUS"], found["CONFIG_DEBUG_LIST"]) == ("y", "2", "n")
    with pytest.raises(CountedError, match=r"there is no file debgu; it is not the name of a configuration \(debug,"):
        config.fragment(["debgu"])


@pytest.mark.parametrize(
    "word", ["CONFIG_A=y\nCONFIG_B=y", "CONFIG_A=m", 'CONFIG_A="$(touch x)"', "../small", "-Dx=y", ""]
)
def test_a_plan_cannot_name_anything_else(word: str) -> None:
    assert not configurations.is_word(word)
    with pytest.raises(ValueError, match="is not the name of a configuration"):
        configurations.lines([word])
