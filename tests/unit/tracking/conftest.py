# SPDX-License-Identifier: BSD-2-Clause
"""Limits that are forgotten between tests, and a branch that is measured once for all of them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from django.db import transaction
from django.test import override_settings
from pytest_django import DjangoDbBlocker, Settings

from perfweb.tracking.models import Alert, TrackedBranch
from tests.checkouts import Checkout, small_checkout
from tests.factories import create_testbed
from tests.laboratory import Laboratory, tracked
from tests.rows import Rows
from tests.unit.accounts.conftest import forget_limits


@pytest.fixture(autouse=True)
def nothing_counted() -> None:
    """Let every test begin with unused limits."""
    forget_limits()


@dataclass(frozen=True)
class Measured:
    """A laboratory that has measured a branch: its files, and the rows of the database."""

    folder: Path
    laboratory: Laboratory
    rows: Rows


@pytest.fixture(scope="session")
def measured(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Measured:
    """A branch whose ninth of thirteen commits made everything slower, with the alert that was bisected to it."""
    folder = tmp_path_factory.mktemp("measured")
    (tree := folder / "checkout").mkdir()
    with (
        django_db_blocker.unblock(),
        override_settings(PATCH_REPOSITORY=tree, PERFWEB_VAR=folder / "var"),
        transaction.atomic(),
    ):
        before = Rows.of_database()
        create_testbed()
        laboratory = Laboratory(small_checkout(tree))
        shas = [laboratory.commit(number, 1.0 if number < 8 else 0.93) for number in range(13)]
        tracked(shas[0])
        laboratory.rest()
        made = Measured(folder, laboratory, Rows.of_database().since(before))
        transaction.set_rollback(True)
    return made


@pytest.fixture
def slowed(measured: Measured, db: None, settings: Settings, tmp_path: Path) -> Laboratory:
    """The laboratory of `measured`, which a test may change."""
    shutil.copytree(measured.folder, tmp_path, dirs_exist_ok=True)
    settings.PATCH_REPOSITORY, settings.PERFWEB_VAR = tmp_path / "checkout", tmp_path / "var"
    measured.rows.insert()
    laboratory = measured.laboratory
    return replace(laboratory, checkout=Checkout(tmp_path / "checkout"), speed=dict(laboratory.speed))


@pytest.fixture
def slowed_branch(slowed: Laboratory) -> TrackedBranch:
    return TrackedBranch.objects.get()


@pytest.fixture
def alert(slowed_branch: TrackedBranch) -> Alert:
    """The alert of the slower commit."""
    return slowed_branch.alerts.get()
