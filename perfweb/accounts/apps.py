# SPDX-License-Identifier: BSD-2-Clause
"""Accounts with roles, API tokens, permissions, and the audit log."""

from typing import Any

from django.apps import AppConfig
from django.contrib.contenttypes.management import create_contenttypes
from django.core.checks import Error, register
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "perfweb.accounts"

    def ready(self) -> None:
        """Check the settings, and keep Django from writing rows for its own permissions, which roles replace.

        It would write them after every `migrate` and, with seventy queries, after every test that empties the database.
        """
        register(ways_to_sign_in)
        post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
        post_migrate.disconnect(create_contenttypes)


def ways_to_sign_in(**_: Any) -> list[Error]:
    """Report at start the settings of external sign-in that cannot work."""
    from perfweb.accounts import providers  # workers do not query providers and need none of their libraries

    return providers.problems()
