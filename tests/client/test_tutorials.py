# SPDX-License-Identifier: BSD-2-Clause
"""The tutorials, run as written against one installation; factories take the place of the worker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from perfweb.accounts.models import Scope, User
from perfweb.accounts.tokens import issue
from perfweb.runs.models import Run, RunState
from perfweb.runs.planfile import read_plan
from perfweb.tracking.scheduler import attend
from tests.checkouts import Checkout
from tests.factories import create_measurements, create_testbed
from tests.servers import served
from tests.tutorials import ROOT, steps

SPEED = {"unlimited": 4.9}
"""The speed of a variant relative to the others."""


@dataclass
class Terminal:
    """The user's second terminal, in a checkout of the project with a server at `address`."""

    folder: Path
    address: str
    environment: dict[str, str]
    exports: list[str] = field(default_factory=list)

    def run(self, block: str, typed: str = "") -> str:
        """Run a block of shell commands and return its output; the `export` lines stay in effect."""
        block = block.replace("http://127.0.0.1:8000", self.address)
        script = "\n".join(["set -eu", *self.exports, block])
        self.exports += [line for line in block.splitlines() if line.startswith("export ")]
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.environment, input=typed, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
        return done.stdout.replace(self.address, "http://127.0.0.1:8000")


@pytest.fixture
def terminal(settings: Settings, tmp_path: Path) -> Iterator[Terminal]:
    for name in (".venv", "manage.py", "perfweb", "playbooks", "runners", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "stack", tmp_path / "stack")
    checkout = Checkout(tmp_path)
    checkout.put(".gitignore", "/*\n!/stack\n")
    checkout.commit("the stack")
    settings.PATCH_REPOSITORY = tmp_path
    site = {
        "DJANGO_SETTINGS_MODULE": "perfweb.settings.development",
        "PERFWEB_PGDATABASE": connection.settings_dict["NAME"],
        "PERFWEB_REPOSITORY": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "home"),
    }
    create_testbed()
    with served(site["PERFWEB_PGDATABASE"], PERFWEB_REPOSITORY=str(tmp_path)) as address:
        yield Terminal(tmp_path, address, {**os.environ, **site, "PERFWEB_SITE_URL": address})


def work() -> None:
    """Do what beat and the worker do: queue the runs of tracked branches, and measure queued runs."""
    attend(timezone.now())
    for run in Run.objects.filter(state=RunState.QUEUED).select_related("plan"):
        tests = [test.name for test in read_plan(run.plan.text).tests]
        create_measurements(run, tests, 0.006, run.pk, lambda variant, _: SPEED.get(variant, 1.0))


def masked(text: str) -> list[str]:
    """The lines of an output with # in the place of each word with a digit."""
    return [" ".join(re.sub(r"\S*\d\S*", "#", line).split()) for line in text.splitlines()]


@pytest.mark.django_db(transaction=True, reset_sequences=True)
def test_the_commands_run_in_order_and_print_what_the_tutorials_show(terminal: Terminal) -> None:
    for name in ("first-verdict", "first-patch", "tracked-branch"):
        for step in steps(name):
            if step.command == "python3 -m perfctl login\n":
                secret = issue(User.objects.get(username="me"), "laptop", Scope.MAINTAIN, 1)[1]
                printed = terminal.run(step.command, f"{secret}\n")
            elif step.command == "./dev serve\n":
                continue
            else:
                printed = terminal.run(step.command)
            for line in masked(step.output):
                assert line in masked(printed), f"{name}: {step.command}\n{printed}"
            work()
