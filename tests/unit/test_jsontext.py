# SPDX-License-Identifier: BSD-2-Clause
"""Reading JSON of untrusted origin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfweb.inputlimits import JSON_DEPTH, PATCH_BYTES, REQUEST_JSON_ESCAPES, REQUEST_JSON_PARTS
from perfweb.jsontext import JsonError, read_json, read_request


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
        (b'"' + b"\xed\xa0\x80" * 1000 + b'"', "is not JSON: 'utf-8' codec"),
        ("{}".encode("utf-16"), "is not JSON"),
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


@pytest.mark.parametrize("part", [b"1,", b"[],", b"{},", b'"" ', b'"a" '])
def test_a_request_of_too_many_parts_is_refused_before_it_is_parsed(part: bytes) -> None:
    with pytest.raises(JsonError, match=f"has more than {REQUEST_JSON_PARTS} texts.*: send less"):
        read_request(b"[" + part * REQUEST_JSON_PARTS + b"1]")
    assert read_request(b"[" + b"1," * (REQUEST_JSON_PARTS - 3) + b"1]")


def test_a_request_of_too_many_escapes_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(JsonError, match="500002 backslashes; 500000 at most are read: send less"):
        read_request(b'"' + b"\\\\" * (REQUEST_JSON_ESCAPES // 2 + 1) + b'"')
    assert read_request(b'"' + b"\\n" * REQUEST_JSON_ESCAPES + b'"')


@pytest.mark.parametrize("text", ["1, " * REQUEST_JSON_PARTS, '"' * REQUEST_JSON_PARTS, "{[" * REQUEST_JSON_PARTS])
def test_what_stands_in_a_text_is_no_part(text: str) -> None:
    """As a patch that adds a table of numbers."""
    assert read_request(json.dumps({"patch": text}).encode()) == {"patch": text}


@pytest.mark.parametrize("body", [b'"', b'"a', b'"\\', b'["a", "\\"', b'"' + b'\\"' * 1000])
def test_a_text_that_is_cut_off_is_one_part(body: bytes) -> None:
    with pytest.raises(JsonError, match="is not JSON"):
        read_request(body)


def test_the_largest_patch_of_source_code_is_read() -> None:
    """The densest file of the stack, repeated up to the max size of a patch."""
    sources = (Path(__file__).parents[2] / "stack").rglob("*.c")
    densest = max((json.dumps(path.read_text(encoding="utf-8")) for path in sources), key=_density)
    text = json.loads(densest) * (PATCH_BYTES // len(json.loads(densest)) + 1)
    assert read_request(json.dumps({"patch": text[:PATCH_BYTES]}).encode())


def _density(text: str) -> float:
    return text.count("\\") / len(text)
