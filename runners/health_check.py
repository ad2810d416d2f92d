# SPDX-License-Identifier: BSD-2-Clause
"""Checks before each run that a testbed is fit, so that no run fails because of its testbed."""

from collections.abc import Mapping, Sequence

from perfweb.lab import outages
from perfweb.lab.inventory import InventoryHost
from perfweb.runs.models import Run
from perfweb.runs.planfile import PlanSpec
from runners.ansible.driver import PlayCancelledError, PlayError
from runners.ansible.plays import Plays
from runners.db_retry import retry_db


class UnfitError(Exception):
    """The testbed is not fit for a run; the message has the problem and the host."""


class UnableError(Exception):
    """The testbed lacks a feature that the plan needs, which is not a fault; the message names host and feature."""


def require_means(lacking: Mapping[str, Sequence[str]]) -> None:
    """Raises UnableError if something is lacking; texts by host name."""
    found = [f"{host}: {problem}" for host, problems in lacking.items() for problem in problems]
    if found:
        raise UnableError(f"this testbed cannot do the plan: {'; '.join(found)}")


def require_words(plan: PlanSpec, hosts: Mapping[str, InventoryHost]) -> None:
    """Raises UnableError if the testbed's inventory does not allow words for the kernel's command line."""
    if why := plan.words_problem(hosts["dut"].command_line_words):
        raise UnableError(f"this testbed does not allow {why}")


def require(run: Run, plays: Plays) -> None:
    """Checks the hosts and stores the result. Raises UnfitError."""
    facts: dict[str, object] = {}
    try:
        found = plays.health()
    except PlayCancelledError:
        raise
    except PlayError as error:
        problems = [str(error)]
    else:
        facts = {host: answer["facts"] for host, answer in found.items()}
        problems = [f"{host}: {problem}" for host, answer in found.items() for problem in answer["problems"]]
    retry_db(lambda: outages.checked(run.testbed, str(run), facts, problems))
    if problems:
        raise UnfitError("; ".join(problems))
