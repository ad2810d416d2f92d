# SPDX-License-Identifier: BSD-2-Clause
"""What the demo shows while it waits."""

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from perfweb.reports.following import BAR_WIDTH, Watch


def watch_after(*events: tuple[str, dict[str, object]]) -> Watch:
    watch = Watch()
    for name, values in events:
        watch.take(name, values)
    return watch


def test_waiting_run_has_an_empty_bar() -> None:
    assert Watch().line() == f"[{'.' * BAR_WIDTH}]   0%            queued"


def test_line_names_what_runs_and_how_long_is_left() -> None:
    boot = {"position": 4, "boots": 12, "variant": "direct", "server": "netserver", "topology": "host-host"}
    watch = watch_after(
        ("state", {"state": "running", "reason": ""}), ("eta", {"seconds": 100, "fraction": 0.5}), ("boot", boot)
    )
    assert watch.line() == (f"[{'#' * 15}{'.' * 15}]  50% 1:40 left  boot 5 of 12: direct, netserver, host-host")
    watch.take("measuring", {"test": "tcp.rr/host-host/ipv4", "variant": "direct"})
    assert watch.line().endswith("tcp.rr/host-host/ipv4 on direct")


def test_bar_moves_between_events_and_waits_at_its_end() -> None:
    watch = watch_after(("state", {"state": "running", "reason": ""}), ("eta", {"seconds": 100, "fraction": 0.5}))
    watch.estimated -= 50
    assert "  75% 0:50 left" in watch.line()
    watch.estimated -= 500
    assert " 100% 0:00 left" in watch.line()


def test_the_error_of_demo_without_a_lab_states_how_to_get_one(settings: Settings) -> None:
    settings.LAB_INVENTORY = ""
    with pytest.raises(CommandError, match=r"start the demo with \./dev demo"):
        call_command("demo")
