# SPDX-License-Identifier: BSD-2-Clause
"""How results came about. Results of different origins are never compared, and never in one series."""

from django.db import models

_SENTENCES = {
    "measured": "Measured on machines.",
    "simulated": "Simulated: the stack ran on virtual CPUs, in virtual time.",
    "counted": "Counted: instructions of an emulated CPU. They do not show cache misses, contention or time.",
}


class Origin(models.TextChoices):
    """The origin of all results of a testbed, or of all results of a test."""

    MEASURED = "measured", "measured"
    SIMULATED = "simulated", "simulated"
    COUNTED = "counted", "counted"

    @property
    def mark(self) -> str:
        """The word beside results; empty for measured ones."""
        return "" if self is Origin.MEASURED else self.value

    @property
    def in_brackets(self) -> str:
        """The mark after the name of a testbed."""
        return f" ({self.mark})" if self.mark else ""

    @property
    def after_comma(self) -> str:
        """The mark after a verdict."""
        return f", {self.mark}" if self.mark else ""

    @property
    def verb(self) -> str:
        """What a testbed does to get such results: measure, simulate or count."""
        return {"measured": "measure", "simulated": "simulate", "counted": "count"}[self.value]

    @property
    def sentence(self) -> str:
        """What such results are."""
        return _SENTENCES[self.value]


def origin_of(test: str) -> Origin:
    """Return the origin of a test of this name, of this or an older catalogue."""
    first = test.partition(".")[0]
    return Origin(first) if first in (Origin.SIMULATED, Origin.COUNTED) else Origin.MEASURED
