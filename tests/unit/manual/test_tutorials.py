# SPDX-License-Identifier: BSD-2-Clause
"""Every command of a tutorial exists and takes its arguments."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from django.core.management import get_commands, load_command_class
from perfctl.commands import parser

from perfweb.runs.planfile import read_plan
from tests.tutorials import NAMES, ROOT, blocks, commands, here_documents

MANAGE = [".venv/bin/python", "manage.py"]
PERFCTL = ["python3", "-m", "perfctl"]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_exists_and_takes_its_arguments(name: str) -> None:
    assert blocks(name)
    for block in blocks(name):
        subprocess.run(["bash", "-n"], input=block.encode(), check=True)
        for words in commands(block):
            if words[:2] == MANAGE:
                app = get_commands()[words[2]]
                assert isinstance(app, str)
                load_command_class(app, words[2]).create_parser("manage.py", words[2]).parse_args(words[3:])
            elif words[:3] == PERFCTL:
                parser().parse_args(words[3:])
            else:
                assert words[0] == "export" or shutil.which(words[0]), words[0]


@pytest.mark.parametrize("name", NAMES)
def test_every_plan_is_valid(name: str) -> None:
    for block in blocks(name):
        for plan in here_documents(block):
            assert read_plan(plan).tests


def test_the_server_is_started_as_the_readme_does() -> None:
    assert "    ./dev serve\n" in (ROOT / "docs" / "tutorials" / "first-verdict.md").read_text(encoding="utf-8")
