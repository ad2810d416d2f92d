# SPDX-License-Identifier: BSD-2-Clause
"""docker-compose.yml is valid, holds no secret, and describes the services that `./dev` starts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "docker-compose.yml"
LASTING = ("web", "worker", "messenger", "mail", "mailbox", "beat", "postgres", "redis")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def validate(path: Path) -> subprocess.CompletedProcess[str]:
    """Checks a file against the compose specification's own schema."""
    program = Path(sys.executable).parent / "check-jsonschema"
    argv = [str(program), "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(argv, capture_output=True, text=True)


def test_it_follows_the_compose_specification() -> None:
    done = validate(COMPOSE)
    assert done.returncode == 0, done.stdout


def test_the_schema_would_notice_a_mistake(tmp_path: Path) -> None:
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(COMPOSE.read_text(encoding="utf-8").replace("  web:\n", "  web:\n    port: 8000\n"))
    done = validate(broken)
    assert done.returncode == 1
    assert "'port' was unexpected" in done.stdout


def test_the_services_are_those_of_the_architecture(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {*LASTING, "migrate"}
    assert compose["services"]["postgres"]["image"] == "postgres:15"
    assert compose["services"]["redis"]["image"] == "redis:7"


@pytest.mark.parametrize("name", LASTING)
def test_every_service_is_watched_and_restarted(compose: dict[str, Any], name: str) -> None:
    service = compose["services"][name]
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"]
    assert "no-new-privileges:true" in service["security_opt"]


def test_only_pages_and_mails_are_taken_and_only_from_this_host(compose: dict[str, Any]) -> None:
    ports = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert ports == {"web": ["127.0.0.1:8000:8000"], "mail": ["127.0.0.1:8024:8024"]}
    assert compose["networks"]["inside"] == {"internal": True}
    for name in ("postgres", "redis"):
        assert compose["services"][name]["networks"] == ["inside"]


def test_nothing_that_uses_the_database_starts_before_it_is_migrated(compose: dict[str, Any]) -> None:
    """The upgrade of docs/howto/upgrade.md."""
    for name in set(LASTING) - {"postgres", "redis"}:
        assert compose["services"][name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_no_secret_is_written_down(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            if re.search("password|secret|key", name, re.IGNORECASE):
                assert name.endswith("_FILE")
                assert str(value).startswith(("/run/secrets/", "/etc/perfweb/"))
    assert all(set(secret) == {"file"} for secret in compose["secrets"].values())


def test_every_volume_and_secret_that_is_used_is_declared(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        named = {volume.split(":")[0] for volume in service.get("volumes", []) if not volume.startswith(".")}
        assert named <= set(compose["volumes"])
        assert set(service.get("secrets", [])) <= set(compose["secrets"])


def test_the_image_is_made_by_the_script_that_sets_up_a_machine() -> None:
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert "RUN runners/install.sh web wheels" in dockerfile
    copied = re.findall(r"^COPY (.*) \S+$", dockerfile, re.MULTILINE)
    missing = [name for line in copied for name in line.split() if not (ROOT / name).exists()]
    assert missing == []
    assert re.search(r"^USER (?!root)", dockerfile, re.MULTILINE)


def test_the_image_can_back_up_the_database_of_compose(compose: dict[str, Any]) -> None:
    """pg_dump refuses a server that is newer than itself; both are of one version, and there is room for its lists."""
    script = (ROOT / "runners" / "install.sh").read_text(encoding="utf-8")
    packages = re.search(r"^readonly WEB_PACKAGES=\(([^)]*)\)", script, re.MULTILINE)
    assert packages
    major = compose["services"]["postgres"]["image"].removeprefix("postgres:")
    assert f"postgresql-client-{major}" in packages.group(1).split()
    assert compose["services"]["web"]["tmpfs"] == ["/tmp"]  # noqa: S108


def test_the_password_reaches_django_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("of course not this\n")
    argv = [str(ROOT / "docker" / "entrypoint"), "printenv", "PERFWEB_PGPASSWORD"]
    environment = {"PERFWEB_PGPASSWORD_FILE": str(tmp_path / "password"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "of course not this\n"
