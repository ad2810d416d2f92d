# SPDX-License-Identifier: BSD-2-Clause
"""`run`: what was asked for and how far it is.  `results`: what was measured."""

from perfweb.runs.models.results import (
    Artefact,
    ArtefactKind,
    Boot,
    BootState,
    Direction,
    Measurement,
    MeasurementState,
    Sample,
    Summary,
    Topology,
)
from perfweb.runs.models.run import (
    FINAL_STATES,
    OPEN_STATES,
    HostFacts,
    Import,
    Loss,
    Plan,
    Priority,
    Run,
    RunState,
    RunTransition,
    Target,
    Variant,
)

__all__ = [
    "FINAL_STATES",
    "OPEN_STATES",
    "Artefact",
    "ArtefactKind",
    "Boot",
    "BootState",
    "Direction",
    "HostFacts",
    "Import",
    "Loss",
    "Measurement",
    "MeasurementState",
    "Plan",
    "Priority",
    "Run",
    "RunState",
    "RunTransition",
    "Sample",
    "Summary",
    "Target",
    "Topology",
    "Variant",
]
