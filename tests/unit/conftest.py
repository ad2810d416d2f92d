# SPDX-License-Identifier: BSD-2-Clause
"""A small repository with a stack, a series of patches of it, a site with objects of all kinds, and a finished run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from pytest_django import Settings

from perfweb.runs.models import Run
from tests.checkouts import Checkout, small_checkout
from tests.factories import create_run, create_testbed
from tests.laboratory import Laboratory
from tests.unit.accounts.site import Site

BROKEN_TEST = "udp.rr/host-host/ipv4"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    tree = tmp_path / "checkout"
    tree.mkdir()
    return small_checkout(tree)


@pytest.fixture
def series(checkout: Checkout) -> bytes:
    """An mbox as `git format-patch` makes it: a cover letter and two patches, with their base."""
    checkout.edit("stack/net/if.c", lambda text: text.replace("line5;", "five;"))
    checkout.commit("net: name five\n\nBecause it is.")
    checkout.edit("stack/net/if.c", lambda text: text.replace("line30;", "thirty;"))
    checkout.commit("net: name thirty")
    made = checkout.git("format-patch", "--stdout", "--cover-letter", "--base=HEAD~2", "HEAD~2")
    checkout.git("reset", "-q", "--hard", "HEAD~2")
    return made.replace(b"*** SUBJECT HERE ***", b"net: names").replace(b"*** BLURB HERE ***", b"Why not.")


@pytest.fixture
def site(checkout: Checkout, settings: Settings, tmp_path: Path, db: None) -> Site:
    """A site with some object of every kind, where GitHub accounts can sign in."""
    secret = tmp_path / "client"
    secret.write_text("secret-of-the-client", encoding="ascii")
    settings.PATCH_REPOSITORY = checkout.tree
    settings.PERFWEB_VAR = tmp_path / "var"
    settings.FORGE_SECRETS = tmp_path / "var" / "forges"
    settings.GITHUB_CLIENT_ID, settings.GITHUB_SECRET_FILE = "perfweb", str(secret)
    made = Site(checkout)
    made.furnish()
    made.private[secret.read_text(encoding="ascii")] = set()
    return made


@pytest.fixture
def laboratory(checkout: Checkout, settings: Settings, tmp_path: Path, db: None) -> Laboratory:
    """A repository whose main branch can be tracked."""
    settings.PATCH_REPOSITORY = checkout.tree
    settings.PERFWEB_VAR = tmp_path / "var"
    create_testbed()
    return Laboratory(checkout)


@pytest.fixture
def run(db: None) -> Run:
    """A run of the demonstration plan in which one test failed on `direct`."""
    return create_run(failed_test=BROKEN_TEST)


@pytest.fixture
def one_connection(db: None) -> Iterator[None]:
    """Keep the connection from request to request, as Django's client does, and with it the transaction of the test."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)
