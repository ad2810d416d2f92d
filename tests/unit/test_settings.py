# SPDX-License-Identifier: BSD-2-Clause
"""Production refuses to start half configured, commands report missing settings, and every response has the security
headers.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils.module_loading import import_string

ROOT = Path(__file__).resolve().parents[2]


def start(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Start Django with the production settings and nothing but `environment`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PERFWEB_")}
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT, env=clean | {"DJANGO_SETTINGS_MODULE": "perfweb.settings.production"} | environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def good(tmp_path: Path) -> dict[str, str]:
    key = tmp_path / "key"
    key.write_text("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", encoding="ascii")
    return {
        "PERFWEB_SECRET_KEY_FILE": str(key),
        "PERFWEB_ALLOWED_HOSTS": "perf.example.org",
        "PERFWEB_PGHOST": "db.example.org",
        "PERFWEB_PGPASSWORD": "secret",
        "PERFWEB_VAR": str(tmp_path),
    }


def test_complete_configuration_passes_djangos_own_checks(good: dict[str, str]) -> None:
    done = start(good)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"PERFWEB_SECRET_KEY_FILE": ""}, "give it the path of a file"),
        ({"PERFWEB_SECRET_KEY_FILE": "/dev/null"}, "make a new key"),
        ({"PERFWEB_ALLOWED_HOSTS": ""}, "give it the host names"),
        ({"PERFWEB_ALLOWED_HOSTS": "*"}, "forged Host headers"),
        ({"PERFWEB_PGHOST": ""}, "give it the host or socket directory"),
        ({"PERFWEB_PGPASSWORD": ""}, "give it the password"),
    ],
)
def test_each_missing_setting_is_named(good: dict[str, str], change: dict[str, str], advice: str) -> None:
    done = start(good | change)
    assert done.returncode != 0
    (name,) = change
    assert name in done.stderr
    assert advice in done.stderr


def test_every_task_that_beat_starts_is_there() -> None:
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        assert callable(import_string(str(entry["task"])))


def test_password_is_not_needed_over_a_socket(good: dict[str, str]) -> None:
    assert start(good | {"PERFWEB_PGHOST": "/run/postgresql", "PERFWEB_PGPASSWORD": ""}).returncode == 0


def test_the_error_for_a_command_without_a_database_states_how_to_get_one(tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PERFWEB_", "DJANGO_"))}
    command = [sys.executable, "manage.py", "cancel", "1"]
    environment = clean | {"PERFWEB_VAR": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("manage.py: no database: ")
    assert str(tmp_path / "run" / "postgresql") in done.stderr
    assert done.stderr.endswith("Start one with ./dev serve, or say where it is: PERFWEB_PGHOST\n")
    command.append("--traceback")
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" in done.stderr


def test_commands_have_the_key_of_the_server_beside_them(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("the key of the server\n", encoding="ascii")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PERFWEB_", "DJANGO_"))}
    code = "from perfweb.settings.development import SECRET_KEY; print(SECRET_KEY)"
    command = [sys.executable, "-c", code]
    environment = clean | {"PERFWEB_VAR": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "the key of the server\n"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/account/sign-in/", "/api/v1/runs"])
def test_nothing_is_answered_under_another_name(client: Client, path: str) -> None:
    answer = client.get(path, headers={"Host": "elsewhere.example"})
    assert answer.status_code == 400
    assert "elsewhere.example" not in answer.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/runs/4711/", "/nothing/here"])
def test_every_answer_has_the_security_headers(client: Client, path: str) -> None:
    headers = client.get(path).headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"
