# SPDX-License-Identifier: BSD-2-Clause
"""Runs of submissions as a KCIDB report, version 5.3 of its schema (https://docs.kernelci.org/kcidb/, kcidb-io).

A submission is a checkout of its base and one with the patch for each stage. A variant's build is a build, whether all
its boots run is a test, and so is each measured test: with the mean, and with PASS or FAIL if it is judged.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.urls import reverse

from perfweb.builds.models import Build, BuildState
from perfweb.runs.judging import CountedSamples, counted_samples
from perfweb.runs.models import Run, Variant
from perfweb.runs.planfile import PATCH
from perfweb.stats.comparison import Verdict
from perfweb.submissions.models import Submission
from perfweb.verdicts.comparisons import TestComparison
from perfweb.verdicts.doubts import run_pairs
from perfweb.verdicts.failures import Kind, VariantFailure, failures

VERSION = {"major": 5, "minor": 3}
ORIGIN = re.compile(r"[a-z0-9_]+", re.ASCII)
LONGEST_EXCERPT = 16384
_STATUS = {
    Verdict.FAILED: "FAIL", Verdict.SLOWER: "FAIL", Verdict.FASTER: "PASS", Verdict.EQUIVALENT: "PASS",
    Verdict.IDENTICAL: "PASS",
}  # fmt: skip
_BUILD_STATUS = {BuildState.READY: "PASS", BuildState.FAILED: "FAIL"}


def report(runs: Iterable[Run], origin: str) -> dict[str, Any]:
    """Return the report of finished runs, those of submissions only. `origin` is the name of this site in KCIDB.

    Raises ValueError for another name than of small letters, digits and _.
    """
    if ORIGIN.fullmatch(origin) is None:
        raise ValueError(f"“{origin[:40]}” is no origin: small letters, digits and _")
    found: dict[str, dict[str, dict[str, Any]]] = {"checkouts": {}, "builds": {}, "tests": {}}
    for run in runs:
        submission = run.submissions.first()
        if submission is not None and run.is_over:
            for kind, item in _RunReport(run, submission, origin).items():
                found[kind][item["id"]] = item
    return {"version": VERSION, **{kind: list(items.values()) for kind, items in found.items() if items}}


class _RunReport:
    """The items of a run."""

    def __init__(self, run: Run, submission: Submission, origin: str) -> None:
        self.run, self.submission, self.origin = run, submission, origin
        self.variants = list(run.variants.select_related("build").order_by("position"))
        self.samples: CountedSamples = counted_samples([run])[run.pk]
        self.failures = {failure.variant: failure for failure in failures([run])[run.pk]}
        self.compared: dict[str, dict[str, TestComparison]] = {
            pair.b.name: {one.test: one for one in pair.compared} for pair in run_pairs(run, self.samples)
        }

    def items(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each item with the list that it belongs to."""
        for variant in self.variants:
            if variant.build is None:
                continue
            yield "checkouts", self._checkout(variant)
            yield "builds", self._build(variant, variant.build)
            if variant.build.state == BuildState.READY:
                for test in self._tests(variant):
                    yield "tests", test

    def _id(self, *parts: object) -> str:
        return f"{self.origin}:{'/'.join(map(str, (settings.SITE_URL.partition('://')[2], *parts)))}"

    def _checkout_id(self, variant: Variant) -> str:
        return self._id("submission", self.submission.number, variant.name)

    def _build_id(self, variant: Variant) -> str:
        return self._id("run", self.run.pk, variant.name)

    def _checkout(self, variant: Variant) -> dict[str, Any]:
        made: dict[str, Any] = {
            "id": self._checkout_id(variant),
            "origin": self.origin,
            "git_commit_hash": self.submission.base,
            "git_commit_name": self.submission.revision,
            "comment": self.submission.title,
            "start_time": self.submission.created.isoformat(),
            "valid": True,
        }
        if self.submission.mirror:
            made["tree_name"] = self.submission.mirror.name
            if self.submission.mirror.url.startswith("https://"):
                made["git_repository_url"] = self.submission.mirror.url
        if variant.baseline:
            made["patchset_hash"] = ""
        elif variant.name == PATCH:  # the stages of a series are no files of their own
            address = f"{settings.SITE_URL}{reverse('submissions:patch', args=[self.submission.number])}"
            made["patchset_hash"] = self._patchset()
            made["patchset_files"] = [{"name": "patch.mbox", "url": address}]
        return made

    def _patchset(self) -> str:
        """Hash the one file of the patch: the hash of a list with its hash."""
        digest = hashlib.sha256(bytes(self.submission.patch)).hexdigest()
        return hashlib.sha256(f"{digest}\n".encode()).hexdigest()

    def _build(self, variant: Variant, build: Build) -> dict[str, Any]:
        made: dict[str, Any] = {
            "id": self._build_id(variant),
            "checkout_id": self._checkout_id(variant),
            "origin": self.origin,
            "architecture": "x86_64",
            "config_name": " ".join(build.options) or "small",
            "log_url": f"{settings.SITE_URL}{reverse('reports:run', args=[self.run.pk])}",
            "misc": {"key": build.key},
        }
        if status := _BUILD_STATUS.get(BuildState(build.state)):
            made["status"] = status
        if build.seconds is not None:
            made["duration"] = build.seconds
        if failure := self._failure(variant, Kind.BUILD):
            made["log_excerpt"] = f"{failure.line}\n{failure.details}"[:LONGEST_EXCERPT]
        return made

    def _failure(self, variant: Variant, kind: Kind) -> VariantFailure | None:
        found = self.failures.get(variant.name)
        return found if found and found.kind == kind else None

    def _tests(self, variant: Variant) -> Iterator[dict[str, Any]]:
        failure = self._failure(variant, Kind.RUN)
        yield {
            **self._test(variant, "boot"),
            "status": "FAIL" if failure else "PASS",
            **({"log_excerpt": failure.line} if failure else {}),
        }
        for test in sorted(self.samples.tests):
            yield self._measured(variant, test)

    def _measured(self, variant: Variant, test: str) -> dict[str, Any]:
        found = self._test(variant, f"perfweb.{test.replace('/', '.')}")
        judged = self.compared.get(variant.name, {}).get(test)
        sampled = self.samples.side(variant.pk, test)
        if sampled and sampled.values:
            found["number"] = {"value": sum(sampled.values) / len(sampled.values), "unit": sampled.unit}
        found["status"] = _STATUS.get(judged.verdict, "DONE") if judged else "DONE" if "number" in found else "MISS"
        if judged:
            found["comment"] = judged.words
        return found

    def _test(self, variant: Variant, path: str) -> dict[str, Any]:
        return {
            "id": self._id("run", self.run.pk, variant.name, path),
            "build_id": self._build_id(variant),
            "origin": self.origin,
            "path": path,
            "environment": {"comment": self.run.testbed.label, "misc": {"origin": self.run.testbed.origin}},
            "log_url": f"{settings.SITE_URL}{reverse('reports:run', args=[self.run.pk])}",
            **({"start_time": self.run.started.isoformat()} if self.run.started else {}),
        }
