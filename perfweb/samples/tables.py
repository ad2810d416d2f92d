# SPDX-License-Identifier: BSD-2-Clause
"""The rows that belong to a testbed, table by table; a table comes after those that its foreign keys name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from django.db import models
from django.db.models import Q

from perfweb.accounts.models import User
from perfweb.builds.models import Build, Mirror
from perfweb.lab.models import Host, Testbed
from perfweb.lab.origins import Origin
from perfweb.runs.models import (
    Artefact,
    Boot,
    Calibration,
    HostFacts,
    Import,
    Measurement,
    Plan,
    Run,
    RunTransition,
    Sample,
    Summary,
    Variant,
)
from perfweb.submissions.models import Submission, SubmissionTransition
from perfweb.tracking.models import (
    Alert,
    AlertStep,
    Analysis,
    Check,
    Movement,
    Shift,
    TrackedBranch,
    TrackedCommit,
)


@dataclass(frozen=True)
class Table:
    """A model, and the lookups from it to its testbeds.

    The unique field `name` identifies a row. A row of a `shared` table may belong to other testbeds, too; among those,
    `mark` selects the rows that may be of samples.
    """

    model: type[models.Model]
    lookups: tuple[str, ...]
    name: str = ""
    shared: bool = False
    mark: Q | None = None

    def rows(self, testbeds: Iterable[int]) -> models.QuerySet[Any]:
        """Select the rows that belong to testbeds."""
        keys = list(testbeds)
        chosen = reduce(or_, (Q(**{f"{lookup}__in": keys}) for lookup in self.lookups))
        rows = self.model._default_manager
        return rows.filter(pk__in=rows.filter(chosen).order_by().values("pk"))

    @property
    def label(self) -> str:
        """The name of the model with that of its app."""
        return self.model._meta.label_lower


PREFIX = "sample-"
NO_ADDRESS = "https://sample.invalid/"
"""The address of each repository of samples (RFC 2606, section 2: a name that never exists)."""

TABLES = (
    Table(Testbed, ("pk",), "name"),
    Table(Host, ("testbed",)),
    Table(
        User,
        ("submissions__testbed", "alerts__branch__testbed"),
        "username",
        shared=True,
        mark=Q(username__startswith=PREFIX, is_active=False),
    ),
    Table(
        Mirror,
        ("tracked__testbed", "submissions__testbed"),
        "name",
        shared=True,
        mark=Q(name__startswith=PREFIX, url=NO_ADDRESS),
    ),
    Table(Plan, ("runs__testbed",), "sha256", shared=True),
    Table(Import, ("runs__testbed",), "reading", shared=True),
    Table(Build, ("variants__run__testbed",), "key", shared=True),
    Table(Run, ("testbed",)),
    Table(RunTransition, ("run__testbed",)),
    Table(Variant, ("run__testbed",)),
    Table(HostFacts, ("run__testbed",)),
    Table(Boot, ("run__testbed",)),
    Table(Measurement, ("boot__run__testbed",)),
    Table(Sample, ("measurement__boot__run__testbed",)),
    Table(Artefact, ("run__testbed",)),
    Table(Summary, ("run__testbed",)),
    Table(Calibration, ("run__testbed",)),
    Table(TrackedBranch, ("testbed",), "name"),
    Table(TrackedCommit, ("branch__testbed",)),
    Table(TrackedCommit.runs.through, ("trackedcommit__branch__testbed",)),
    Table(Analysis, ("branch__testbed",)),
    Table(Shift, ("analysis__branch__testbed",)),
    Table(Alert, ("branch__testbed",)),
    Table(Movement, ("alert__branch__testbed",)),
    Table(AlertStep, ("alert__branch__testbed",)),
    Table(Check, ("alert__branch__testbed",)),
    Table(Submission, ("testbed",)),
    Table(Submission.runs.through, ("submission__testbed",)),
    Table(SubmissionTransition, ("submission__testbed",)),
)

OLDER_COLUMNS: Mapping[tuple[str, str], Callable[[Any], tuple[str, Any]]] = {
    ("lab.testbed", "simulated"): lambda yes: ("origin", Origin.SIMULATED if yes else Origin.MEASURED),
}
"""The columns of bundles of older versions, by model: what each has become, and its value there."""
