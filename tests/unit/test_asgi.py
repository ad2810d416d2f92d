# SPDX-License-Identifier: BSD-2-Clause
"""The web server's connections to the database."""

from urllib.request import urlopen

from django.db import connection

_CUT = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid()"""


def test_a_connection_is_kept_for_the_next_request_and_replaced_when_it_was_cut(asgi_server: str) -> None:
    for _ in range(2):
        with urlopen(f"{asgi_server}/testbeds/") as answer:  # noqa: S310  # our own server
            assert answer.status == 200
        with connection.cursor() as cursor:
            cursor.execute(_CUT)
            assert cursor.fetchone()[0] > 0
