# SPDX-License-Identifier: BSD-2-Clause
"""The parameters and the result of a module (module_utils/module.py), with and without the guard of a host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from playbooks.module_utils import module
from playbooks.module_utils.module import Module

ROOT = Path(__file__).resolve().parents[2]
SPEC: dict[str, dict[str, Any]] = {"name": {"required": True}, "state": {"default": "present"}, "link": {}}


@pytest.fixture
def called(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Calls a module that ends with its parameters, or with `end`; returns its result."""

    def call(given: dict[str, Any], end: Callable[[Module], None] | None = None, **rules: Any) -> dict[str, Any]:
        monkeypatch.setattr(module, "_given", [])

        def main() -> None:
            made = Module(SPEC, **rules)
            (end or (lambda made: made.exit_json(**made.params)))(made)

        with pytest.raises(SystemExit) as ended:
            module.call(main, given)
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert ended.value.code == (1 if found.get("failed") else 0)
        return found

    return call


def test_parameters_have_their_defaults(called: Callable[..., dict[str, Any]]) -> None:
    assert called({"name": "x", "_ansible_verbosity": 3}) == {"name": "x", "state": "present", "link": None}
    assert called({"name": "", "state": None, "link": "a"}) == {"name": "", "state": "present", "link": "a"}


def test_wrong_parameters_are_named(called: Callable[..., dict[str, Any]]) -> None:
    assert called({"link": "a"})["msg"] == "missing required arguments: name"
    assert called({"name": None})["msg"] == "missing required arguments: name"
    assert called({"name": "x", "more": 1})["msg"] == "unknown parameters: more"
    needs = {"required_if": [("state", "absent", ["link"])]}
    assert called({"name": "x", "state": "absent"}, **needs)["msg"] == "missing arguments if state is absent: link"
    assert "failed" not in called({"name": "x"}, **needs)


def test_check_mode_runs_only_modules_that_support_it(called: Callable[..., dict[str, Any]]) -> None:
    given = {"name": "x", "_ansible_check_mode": True}
    assert called(given)["skipped"] is True
    assert called(given, lambda made: made.exit_json(dry=made.check_mode), supports_check_mode=True) == {"dry": True}


def test_tools_are_run_and_found(called: Callable[..., dict[str, Any]]) -> None:
    def end(made: Module) -> None:
        assert made.run_command(["sh", "-c", r"printf 'a\377'; printf b >&2; exit 3"]) == (3, "a\ufffd", "b")
        assert made.get_bin_path("ip")
        assert made.get_bin_path("no-such-tool") is None
        made.run_command(["ip", "link", "show", "dev", "none0"], check_rc=True)

    assert called({"name": "x"}, end)["msg"].startswith("`ip link show dev none0` failed: Device")
    missing = called({"name": "x"}, lambda made: made.run_command(["no-such-tool"]))
    assert missing["msg"] == "`no-such-tool` failed: No such file or directory"


def test_an_exception_is_a_result(called: Callable[..., dict[str, Any]]) -> None:
    def end(made: Module) -> None:
        raise ValueError(made.params["name"])

    found = called({"name": "why"}, end)
    assert found["msg"] == "ValueError: why"
    assert "in end" in found["exception"]


def test_a_module_runs_without_a_guard(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "playbooks" / "ansible.cfg"),
        "ANSIBLE_HOME": str(tmp_path),
    }
    ansible = [str(Path(sys.executable).with_name("ansible")), "localhost", "-i", "localhost,", "-c", "local"]
    for words, expected in (
        ("words=nosmt", '"words": "nosmt"'),
        ("words=init=/x", "FAILED!"),
        ("", "missing required"),
    ):
        argv = [*ansible, "-m", "boot_words", "-a", words]
        done = subprocess.run(
            argv, cwd=ROOT / "playbooks", env=environment, capture_output=True, text=True, check=False
        )
        assert expected in done.stdout, done
