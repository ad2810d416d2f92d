# SPDX-License-Identifier: BSD-2-Clause
"""The bill of materials is complete and valid; the audit does not treat an unreachable database as a pass."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from runners.dependencies import sbom
from runners.dependencies.advisories import Outcome, judge, offline, yanked
from runners.dependencies.sbom import Locked


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
    found = offline([Locked("no-such-distribution", "1", (), "requirements.txt")])
    assert found == [
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
            Outcome.UNREACHABLE,
            ["no advisory database can be reached: nothing is known about any distribution"],
        ),
        ([CLEAN, SKIPPED], Outcome.UNREACHABLE, ["the advisory database does not answer about b"]),
        ([CLEAN, SKIPPED, BAD], Outcome.FOUND, ["c 2: PYSEC-1, fixed in 3"]),
    ],
)
def test_no_response_of_the_database_is_not_treated_as_safe(
    rows: list[dict[str, Any]], outcome: Outcome, words: list[str]
) -> None:
    assert judge({"dependencies": rows}) == (outcome, words)


UNKNOWN = "the package index does not answer: whether a distribution was yanked is not known"


class Index(BaseHTTPRequestHandler):
    """A package index (PEP 691) with two versions of everything, of which 1.0 was yanked."""

    def do_GET(self) -> None:
        name = self.path.rstrip("/").rpartition("/")[2]
        files = [
            {
                "filename": f"{name}-{version}-py3-none-any.whl", "url": f"{name}-{version}-py3-none-any.whl",
                "hashes": {"sha256": "0" * 64}, "yanked": why,
            }
            for version, why in (("1.0", "it lost data (twice)"), ("1.1", False))
        ]  # fmt: skip
        body = json.dumps({"meta": {"api-version": "1.0"}, "name": name, "files": files}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()


@pytest.mark.parametrize(
    ("version", "outcome", "words"),
    [
        ("1.0", Outcome.FOUND, ["planted==1.0 was yanked: it lost data (twice); run ./dev lock"]),
        ("1.1", Outcome.CLEAN, []),
        ("1.2", Outcome.UNREACHABLE, [UNKNOWN]),
    ],
)
def test_a_yanked_distribution_is_named(
    index: str, tmp_path: Path, version: str, outcome: Outcome, words: list[str]
) -> None:
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"planted=={version} --hash=sha256:{'0' * 64}\n")
    assert yanked(str(lock), "--no-cache", "--index-url", index) == (outcome, words)


def test_an_unreachable_index_is_not_treated_as_safe(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"planted==1.0 --hash=sha256:{'0' * 64}\n")
    found = yanked(str(lock), "--no-cache", "--index-url", "http://127.0.0.1:9/simple")
    assert found == (Outcome.UNREACHABLE, [UNKNOWN])
