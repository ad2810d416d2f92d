# SPDX-License-Identifier: BSD-2-Clause
"""The software bill of materials: what is installed and shipped, in CycloneDX 1.6 as JSON (https://cyclonedx.org/docs/1.6/json/).

It is made only from files of the tree and the licences that the installed distributions state, so the same tree gives
the same document. It lists the locked Python distributions with their hashes, the Debian packages that
runners/install.sh names, and the vendored files. `./dev sbom` prints it.
"""

from __future__ import annotations

import hashlib
import re
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[2]
LOCKS = {"requirements.txt": ComponentScope.REQUIRED, "requirements-dev.txt": ComponentScope.EXCLUDED}
"""Locked distributions: those that the service runs with, and those that only its development needs."""

VENDORED = {
    "static/vendor/plotly-cartesian.min.js": ("plotly.js", "MIT"),
    "tests/browser/vendor/axe.min.js": ("axe-core", "MPL-2.0"),
}
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ \\]+)(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_PACKAGES = re.compile(r"^readonly (\w+)_PACKAGES=\(([^)]*)\)", re.MULTILINE)
_TEST_ONLY = {"TEST", "VM"}


@dataclass(frozen=True)
class Locked:
    """A locked distribution: name and version, SHA-256 of the files that may be installed, and the lock file."""

    name: str
    version: str
    hashes: tuple[str, ...]
    lock: str


def locked(root: Path = ROOT) -> list[Locked]:
    """Return the locked distributions by name; those of the service come before those of development."""
    found: dict[str, Locked] = {}
    for lock in LOCKS:
        for name, version, rest in _PIN.findall((root / lock).read_text(encoding="utf-8")):
            found.setdefault(name, Locked(name, version, tuple(sorted(_HASH.findall(rest))), lock))
    return sorted(found.values(), key=lambda one: one.name)


def licence_of(name: str) -> str:
    """Return the licence that an installed distribution states: an SPDX expression if there is one; empty if none."""
    try:
        fields = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    classified = [
        one.rpartition(" :: ")[2] for one in fields.get_all("Classifier") or () if one.startswith("License :: ")
    ]
    (expression, *_), (stated, *_) = (fields.get_all(name) or [""] for name in ("License-Expression", "License"))
    return expression or " OR ".join(classified) or stated.strip().partition("\n")[0]


def _python() -> Iterator[Component]:
    for one in locked():
        yield Component(
            name=one.name,
            version=one.version,
            type=ComponentType.LIBRARY,
            scope=LOCKS[one.lock],
            purl=PackageURL("pypi", name=one.name, version=one.version),
            bom_ref=f"pypi/{one.name}",
            licenses=_licences(licence_of(one.name)),
            properties=[Property(name="perfweb:sha256", value=digest) for digest in one.hashes],
        )


def _licences(text: str) -> list[License]:
    return [LicenseFactory().make_from_string(text)] if text else []


def _debian() -> Iterator[Component]:
    needed: dict[str, bool] = {}
    for kind, names in _PACKAGES.findall((ROOT / "runners/install.sh").read_text(encoding="utf-8")):
        for name in names.split():
            needed[name] = needed.get(name, False) or kind not in _TEST_ONLY
    for name, required in sorted(needed.items()):
        yield Component(
            name=name,
            type=ComponentType.APPLICATION,
            scope=ComponentScope.REQUIRED if required else ComponentScope.EXCLUDED,
            purl=PackageURL("deb", "debian", name, qualifiers={"distro": "debian-12"}),
            bom_ref=f"deb/{name}",
        )


def _vendored() -> Iterator[Component]:
    for path, (name, licence) in VENDORED.items():
        digest = hashlib.sha256((ROOT / path).read_bytes()).hexdigest()
        yield Component(
            name=name,
            type=ComponentType.FILE,
            bom_ref=path,
            licenses=_licences(licence),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
            properties=[Property(name="perfweb:path", value=path)],
        )


def document() -> str:
    """Return the bill of materials as JSON, the same for the same tree."""
    bom = Bom(components=[*_python(), *_debian(), *_vendored()])
    bom.metadata.component = Component(name="perfweb", type=ComponentType.APPLICATION, bom_ref="perfweb")
    bom.metadata.timestamp = None  # type: ignore[assignment]
    names = " ".join(sorted(str(one.bom_ref.value) + (one.version or "") for one in bom.components))
    bom.register_dependency(bom.metadata.component, bom.components)
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, names)
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def main() -> int:
    """Print the bill of materials, unless it does not follow the published schema."""
    made = document()
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(made):
        print(f"sbom: it does not follow the schema: {wrong}", file=sys.stderr)
        return 1
    sys.stdout.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
