# SPDX-License-Identifier: BSD-2-Clause
"""Reading JSON of untrusted origin."""

from __future__ import annotations

import json

import pytest

from perfweb.inputlimits import JSON_DEPTH
from perfweb.jsontext import JsonError, read_json


@pytest.mark.parametrize("value", [None, 1, "a", [], {"a": [1, {"b": None}]}, 10**4000])
def test_what_is_json_is_read(value: object) -> None:
    assert read_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not JSON"),
        ("NaN", "NaN is not a JSON number"),
        ("[-Infinity]", "-Infinity is not a JSON number"),
        (b"\xff\xfe\x00", "is not JSON"),
        ("9" * 5000, "is not JSON"),
        ("[" * 100_000, "nested more than"),
        ('{"a":' * (JSON_DEPTH + 1) + "1" + "}" * (JSON_DEPTH + 1), "nested more than"),
    ],
)
def test_what_is_refused(text: str | bytes, problem: str) -> None:
    with pytest.raises(JsonError, match=problem):
        read_json(text)


def test_nesting_up_to_the_limit_is_read() -> None:
    assert read_json("[" * JSON_DEPTH + "]" * JSON_DEPTH) is not None
