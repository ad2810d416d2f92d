# SPDX-License-Identifier: BSD-2-Clause
"""Variants of a run that do not build or do not run, each with the decisive line: a patch that fails has a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from perfweb.builds.models import BuildState
from perfweb.counted import diagnostics
from perfweb.counted.diagnostics import Diagnostic
from perfweb.lab.origins import Origin
from perfweb.runs.models import Artefact, ArtefactKind, Boot, BootState, Run, Variant

LONGEST_LINE = 300
_BAD = {BootState.FAILED, BootState.CRASHED}


class Kind(StrEnum):
    """What a variant fails to do."""

    BUILD = "does not build"
    RUN = "does not run"


@dataclass(frozen=True)
class VariantFailure:
    """A variant that fails, with the decisive line, and what follows it: the compiler's view of the source."""

    variant: str
    baseline: bool
    kind: Kind
    line: str
    details: str = ""
    log: int | None = None
    """The artefact with the console of the boot."""

    @property
    def text(self) -> str:
        """The message in the decisive line, without its place."""
        return self.line.partition(": ")[2] or self.line

    def __str__(self) -> str:
        return f"{self.variant} {self.kind}: {self.line}"


def failures(runs: Iterable[Run]) -> Mapping[int, list[VariantFailure]]:
    """Return the failures of finished runs by number, variants in order: two queries, three if boots failed.

    A variant does not run if each of its boots failed or crashed.
    """
    numbers = [run.pk for run in runs if run.is_over]
    found: dict[int, list[VariantFailure]] = {number: [] for number in numbers}
    variants = list(Variant.objects.filter(run__in=numbers).select_related("build").order_by("run_id", "position"))
    reasons = _of_boots(numbers)
    for variant in variants:
        if variant.build and variant.build.state == BuildState.FAILED:
            line, details = _of_build(variant.build.log)
            found[variant.run_id].append(VariantFailure(variant.name, variant.baseline, Kind.BUILD, line, details))
        elif reason := reasons.get(variant.pk):
            line, log = reason
            found[variant.run_id].append(VariantFailure(variant.name, variant.baseline, Kind.RUN, line, log=log))
    return found


def blames_patch(found: Sequence[VariantFailure]) -> bool:
    """Return whether only variants with a patch fail, and not the baseline, too."""
    return bool(found) and not any(failure.baseline for failure in found)


def in_words(found: Sequence[VariantFailure]) -> str:
    """Return the failures in a line, the first in full: "patch does not build: net/x.c:7: error: …"."""
    more = f" ({len(found) - 1} more variants fail)" if len(found) > 1 else ""
    return f"{found[0]}{more}" if found else ""


def new_warnings(before: Iterable[Variant], after: Iterable[Variant]) -> list[Diagnostic]:
    """Return the warnings of the compiler that only the later variants have.

    Kernels that count are built as a whole, so their logs have all warnings.
    """
    old, new = ("\n".join(variant.build.log for variant in side if variant.build) for side in (before, after))
    return diagnostics.new_warnings((one.identity for one in diagnostics.warnings(old)), new)


def warnings_of_run(run: Run) -> list[Diagnostic]:
    """Return the warnings of the compiler that only kernels with a patch have; none if the run is not counted."""
    if run.testbed.origin != Origin.COUNTED:
        return []
    variants = list(run.variants.select_related("build"))
    return new_warnings([one for one in variants if one.baseline], [one for one in variants if not one.baseline])


def _of_build(log: str) -> tuple[str, str]:
    """Return the decisive line of the log of a build, and the lines of source that belong to it."""
    errors = [one for one in diagnostics.diagnostics(log) if one.kind != "warning"]
    if errors:
        return errors[0].lines[0][:LONGEST_LINE], "\n".join(errors[0].lines[1:])
    last = diagnostics.reason(log).strip().rsplit("\n", 1)[-1]
    return last[:LONGEST_LINE], ""


def _of_boots(numbers: Sequence[int]) -> dict[int, tuple[str, int | None]]:
    """Return the first error of variants whose boots all failed, with the artefact of the console, by variant's key."""
    rows = (
        Boot.objects.filter(run__in=numbers, sentinel=False)
        .exclude(state=BootState.INTERRUPTED)
        .order_by("run_id", "position", "attempt")
        .values_list("variant_id", "state", "error", "pk")
    )
    errors: dict[int, tuple[str, int]] = {}
    good = set()
    for variant, state, error, boot in rows:
        if state in _BAD:
            errors.setdefault(variant, (error.strip()[:LONGEST_LINE] or "it failed", boot))
        else:
            good.add(variant)
    bad = {variant: found for variant, found in errors.items() if variant not in good}
    logs = _logs([boot for _, boot in bad.values()]) if bad else {}
    return {variant: (error, logs.get(boot)) for variant, (error, boot) in bad.items()}


def _logs(boots: Sequence[int]) -> dict[int, int]:
    """Return the artefacts with the logs of boots, by boot's key."""
    logs = Artefact.objects.filter(boot__in=boots, kind=ArtefactKind.BOOT_LOG, name__endswith="boot.log")
    return dict(logs.values_list("boot_id", "pk"))
