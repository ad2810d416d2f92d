# SPDX-License-Identifier: BSD-2-Clause
"""The bill of materials is complete and valid; the audit does not take silence for safety."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from runners import sbom
from runners.advisories import Outcome, judge, offline
from runners.sbom import Locked


@pytest.fixture(scope="module")
def components() -> dict[str, Any]:
    return {one["bom-ref"]: one for one in json.loads(sbom.document())["components"]}


def test_it_follows_the_published_schema_and_is_made_alike_twice() -> None:
    made = sbom.document()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(made) is None
    assert made == sbom.document()


def test_it_has_every_locked_distribution_with_its_hashes(components: dict[str, Any]) -> None:
    for lock in sbom.LOCKS:
        pinned = [line for line in (sbom.ROOT / lock).read_text().splitlines() if "==" in line and line[0].isalnum()]
        for line in pinned:
            name, _, version = line.rstrip(" \\").partition("==")
            assert components[f"pypi/{name}"]["version"] == version
            assert components[f"pypi/{name}"]["properties"]


def test_it_has_every_vendored_script_with_hash_and_licence(components: dict[str, Any]) -> None:
    scripts = [*sbom.ROOT.glob("static/vendor/*.js"), *sbom.ROOT.glob("tests/browser/vendor/*.js")]
    assert len(scripts) == len(sbom.VENDORED)
    for script in scripts:
        found = components[str(script.relative_to(sbom.ROOT))]
        assert found["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(script.read_bytes()).hexdigest()}]
        assert found["licenses"]


def test_it_has_the_packages_of_debian(components: dict[str, Any]) -> None:
    assert components["deb/bubblewrap"]["purl"] == "pkg:deb/debian/bubblewrap?distro=debian-12"
    assert components["deb/bubblewrap"]["scope"] == "required"
    assert components["deb/chromium"]["scope"] == "excluded"


def test_what_is_locked_has_hashes_and_allowed_licences() -> None:
    assert offline(sbom.locked()) == []


def test_a_distribution_without_a_hash_or_a_licence_is_named() -> None:
    told = offline([Locked("no-such-distribution", "1", (), "requirements.txt")])
    assert told == [
        "requirements.txt: no-such-distribution 1 has no hash: run ./dev lock",
        "requirements.txt: no-such-distribution 1: the licence “” is not allowed",
    ]


CLEAN = {"name": "a", "version": "1", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "not found"}
BAD = {"name": "c", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}


@pytest.mark.parametrize(
    ("rows", "outcome", "words"),
    [
        ([CLEAN], Outcome.CLEAN, []),
        (
            [SKIPPED],
            Outcome.NOT_ASKED,
            ["no advisory database can be reached: nothing is known about any distribution"],
        ),
        ([CLEAN, SKIPPED], Outcome.NOT_ASKED, ["the advisory database does not answer about b"]),
        ([CLEAN, SKIPPED, BAD], Outcome.FOUND, ["c 2: PYSEC-1, fixed in 3"]),
    ],
)
def test_silence_of_the_database_is_not_taken_for_safety(
    rows: list[dict[str, Any]], outcome: Outcome, words: list[str]
) -> None:
    assert judge({"dependencies": rows}) == (outcome, words)
