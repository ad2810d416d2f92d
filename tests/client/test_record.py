# SPDX-License-Identifier: BSD-2-Clause
"""The recording of samples for the bench of statistics, from a server as in production."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from django.conf import settings

from perfweb.runs.models import Plan
from perfweb.stats.samples import read_samples
from tests.bench.record import PLAN, fetched
from tests.factories import DEMO_TESTS, create_run


def record(site: str, file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.bench.record", "--site", f"{site}/", str(file)]
    return subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=120, check=False)


def test_what_is_recorded_is_what_counts(asgi_server: str, tmp_path: Path) -> None:
    kept, everything = tmp_path / "kept.csv", tmp_path / "samples.csv"
    assert "no run of the plan" in record(asgi_server, kept).stderr
    run = create_run(tests=DEMO_TESTS[:2], failed_test=DEMO_TESTS[1])
    Plan.objects.update(name=PLAN)
    assert f"the samples of run {run.pk}" in record(asgi_server, kept).stdout
    everything.write_text(fetched(f"{asgi_server}/runs/{run.pk}/samples.csv"), encoding="utf-8")
    assert {metric.test: metric.variants for metric in read_samples(kept)} == {
        metric.test: metric.variants for metric in read_samples(everything) if metric.primary
    }
