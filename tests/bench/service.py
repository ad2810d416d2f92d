# SPDX-License-Identifier: BSD-2-Clause
"""Times of pages and of the API with years of results in the database: `./dev bench service`.

Also the number of samples per second that are stored, and the first contentful paint in a browser.

It needs an empty, migrated database and the address of a web server on it. For each page it prints median and 95th
percentile of the time to the last byte with one client and with twenty, the CPU time of the web server (which hardly
depends on other load), the size (as it is, without the plots, and compressed), the number of queries, and each target
with whether it is met. The query plans of all pages go into a file, and sequential scans of a large table are printed.

A target of time is for the 95th percentile with one client, one of size for the page without its plots. Twenty clients
without pauses have no target: each waits for nineteen others, so the expected median is about twenty times the CPU
time; a larger one shows contention.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import os
import re
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlsplit

import django
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import CHROMIUM, CHROMIUM_FLAGS

CLIENTS = 20
INGESTED, INGESTED_MEASUREMENTS, INGESTS, INGEST_TARGET = 200_000, 2000, 3, 50_000
TEXT_TARGET = 100_000
"""Bytes of a page without its plots."""
PAINTS, PAINT_TARGET = 3, 500.0
LARGE_TABLE, LARGE_SHARE = 10_000, 0.2


@dataclass(frozen=True)
class Page:
    """A page to request, and the target for its 95th percentile with one client, in milliseconds."""

    name: str
    address: str
    target: float = 150.0

    @property
    def is_page(self) -> bool:
        """Whether its readers are users, not programs or graphs."""
        return not self.address.startswith("/api/") and "graphs=" not in self.address and "graph=" not in self.address


def pages(runs: int, revision: str, test: str) -> list[Page]:
    """The pages of a database with that many runs, the last of which has a hundred tests."""
    last = runs - 1
    return [
        Page("home", "/"),
        Page("runs", "/runs/"),
        Page("runs, oldest", "/runs/?before=26"),
        Page("run", f"/runs/{last}/"),
        Page("run, its figures", f"/runs/{last}/?graphs=json"),
        Page("knobs", f"/runs/{last}/matrix/"),
        Page("comparison", f"/runs/{last}/compare/deferred-1..direct-1/"),
        Page("comparison of 7", _seven(last)),
        Page("comparison of commits", f"/compare/?base={revision}/deferred-1&with={revision}/direct-1"),
        Page("comparison, 100 tests", f"/runs/{runs}/compare/deferred-1..direct-1/", 300.0),
        Page("run, 100 tests", f"/runs/{runs}/"),
        Page("run, 100, a topic", f"/runs/{runs}/?topic=tcp"),
        Page("run, 100, its figures", f"/runs/{runs}/?topic=tcp&graphs=json"),
        Page("run, 100, a test", f"/runs/{runs}/?test={test}%230"),
        Page("run, 100, a picture", f"/runs/{runs}/?graph=topic-tcp"),
        Page("tests", "/tests/"),
        Page("topic", "/topics/tcp/"),
        Page("reproductions", "/reproductions/"),
        Page("timeline, all commits", f"/tests/{test}/", 200.0),
        Page("timeline, its figure", f"/tests/{test}/?graphs=json", 200.0),
        Page("timeline by run", f"/tests/{test}/?by=run", 200.0),
        Page("timeline, newest 50", f"/tests/{test}/?newest=50", 200.0),
        Page("testbeds", "/testbeds/"),
        Page("testbed", "/testbeds/lab1/"),
        Page("search, rare", f"/search/?q={revision[-7:]}"),
        Page("search, common", "/search/?q=direct"),
        Page("search, nothing", "/search/?q=zzzzzz"),
        *_calls(runs, revision, test),
    ]


def _calls(runs: int, revision: str, test: str) -> list[Page]:
    """The API: each kind of call, and each filter where a list has some."""
    last, root = runs - 1, "/api/v1"
    pair = f"base={revision}/deferred-1&with={revision}/direct-1"
    return [
        Page("API runs", f"{root}/runs"),
        Page("API runs, verdicts", f"{root}/runs?verdicts=true"),
        Page("API runs, oldest", f"{root}/runs?cursor=51"),
        Page("API runs of a test", f"{root}/runs?test={test}"),
        Page("API runs, no such test", f"{root}/runs?test=nothing"),
        Page("API runs of a commit", f"{root}/runs?commit={revision}"),
        Page("API runs of a variant", f"{root}/runs?variant=direct-1"),
        Page("API runs of a testbed", f"{root}/runs?testbed=lab2&state=done&plan=plan3"),
        Page("API runs of a time", f"{root}/runs?since=2021-02-01&until=2021-02-08"),
        Page("API run", f"{root}/runs/{last}"),
        Page("API progress", f"{root}/runs/{last}/progress"),
        Page("API boots", f"{root}/runs/{last}/boots"),
        Page("API measurements", f"{root}/runs/{last}/measurements"),
        Page("API samples, 1000", f"{root}/runs/{runs}/samples"),
        Page("API samples, counted", f"{root}/runs/{runs}/samples?counted=true"),
        Page("API comparison", f"{root}/runs/{last}/comparisons"),
        Page("API comparison of commits", f"{root}/comparisons?{pair}"),
        Page("API comparison, 100 tests", f"{root}/runs/{runs}/comparisons", 300.0),
        Page("API series, 2000 points", f"{root}/series?test={test}&newest=2000", 300.0),
        Page("API series, 200 points", f"{root}/series?test={test}", 200.0),
        Page("API summaries", f"{root}/summaries?test={test}"),
        Page("API plans", f"{root}/plans"),
        Page("API testbed", f"{root}/testbeds/lab1"),
        Page("API schema", f"{root}/openapi.json"),
    ]


def _seven(run: int) -> str:
    names = [f"{dispatch}-{cpus}" for cpus in (1, 2, 4) for dispatch in ("deferred", "direct")]
    others = "&".join(f"with={run}/{name}" for name in names[1:])
    return f"/compare/?base={run}/{names[0]}&{others}&with={run - PLANS}/{names[0]}"


PLANS = 5  # runs between two of the same plan on neighbouring testbeds


class Site:
    """A web server queried over persistent connections."""

    def __init__(self, address: str) -> None:
        self.host = urlsplit(address).netloc

    def times(self, address: str, requests: int) -> list[float]:
        """Send that many requests in a row; return the seconds of each response."""
        client = http.client.HTTPConnection(self.host, timeout=120)
        taken = []
        for _ in range(requests):
            began = time.perf_counter()
            client.request("GET", address)
            answer = client.getresponse()
            answer.read()
            taken.append(time.perf_counter() - began)
            if answer.status != 200:
                raise SystemExit(f"bench: {address} answered {answer.status}")
        client.close()
        return taken

    def times_of_many(self, address: str, requests: int) -> list[float]:
        """Send that many requests from each of CLIENTS clients at once."""
        with ThreadPoolExecutor(CLIENTS) as clients:
            parts = clients.map(lambda _: self.times(address, requests), range(CLIENTS))
            return [time for part in parts for time in part]


@dataclass(frozen=True)
class Answer:
    """Measure the response of a page, and its queries."""

    content: bytes
    queries: list[str]

    @property
    def text(self) -> bytes:
        """Return the page without its plots, whose size depends on the number of samples."""
        return re.sub(rb"<svg (?!class=\"key).*?</svg>", b"", self.content, flags=re.DOTALL)


def ask(page: Page) -> Answer:
    """Render a page in this process."""
    with CaptureQueriesContext(connection) as captured:
        answer = Client(headers={"host": "127.0.0.1"}).get(page.address)
    return Answer(answer.content, [query["sql"] for query in captured.captured_queries])


def measure(site: Site, page: Page, answer: Answer, requests: int, web_pid: int) -> tuple[str, list[bool]]:
    """A line of the table, and whether each of its targets was met."""
    site.times(page.address, 2)  # the first responses fill caches, as those of a running server are
    before = processor_seconds(web_pid)
    alone = site.times(page.address, requests)
    busy = (processor_seconds(web_pid) - before) / requests
    many = site.times_of_many(page.address, max(1, requests // CLIENTS))
    sizes = [len(answer.content), len(answer.text), len(gzip.compress(answer.content, 6))]
    numbers = [*(1000 * value for value in (*_quantiles(alone), *_quantiles(many), busy)), *(n / 1000 for n in sizes)]
    cells = "".join(f"{number:9.1f}" for number in numbers)
    targets = [(f"p95 < {page.target:.0f} ms", numbers[1] < page.target)]
    targets += [(f"text < {TEXT_TARGET / 1000:.0f} kB", sizes[1] < TEXT_TARGET)] * page.is_page
    judged = "; ".join(_judged(*target) for target in targets)
    return f"{page.name:26}{cells}{len(answer.queries):8}  {judged}", [met for _, met in targets]


def _judged(target: str, met: bool) -> str:
    return f"{target}: {'met' if met else 'MISSED'}"


def _quantiles(times: Sequence[float]) -> tuple[float, float]:
    return statistics.median(times), sorted(times)[min(len(times) - 1, int(0.95 * len(times)))]


class Plans:
    """Writes PostgreSQL's plans for the queries of pages."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.count = 0
        self.bad: list[str] = []
        """Return the queries with a sequential scan of a large table."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT relname, reltuples FROM pg_class WHERE reltuples > %s AND relkind = 'r'", [LARGE_TABLE]
            )
            self._large: dict[str, float] = dict(cursor.fetchall())

    def add(self, page: Page, queries: Sequence[str]) -> None:
        """Write down the plans of a page."""
        for sql in queries:
            if not sql.startswith(("SELECT", "(")):
                continue
            with connection.cursor() as cursor:
                cursor.execute("EXPLAIN " + sql)
                lines = [line for (line,) in cursor.fetchall()]
                cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + sql)
                plan = cursor.fetchone()[0][0]["Plan"]
            text = "\n".join([f"-- {page.name}", sql[:1000], *lines, ""])
            self.file.write(text + "\n")
            self.count += 1
            if self._reads_all(plan):
                self.bad.append(text)

    def _reads_all(self, plan: dict[str, Any]) -> bool:
        """Return whether a plan has read a large part of a large table."""
        nodes = [plan]
        for node in nodes:
            nodes += node.get("Plans", [])
        scans = [node for node in nodes if node.get("Relation Name") in self._large]
        return any(_rows_read(node) > LARGE_SHARE * self._large[node["Relation Name"]] for node in scans)


def _rows_read(node: dict[str, Any]) -> float:
    """Return the rows that a scan has read, used or not."""
    looked_at = sum(node.get(name, 0) for name in ("Actual Rows", "Rows Removed by Filter"))
    return float(node["Actual Loops"] * looked_at)


def ingest() -> bool:
    """Print how many samples per second are written, and delete them. Return whether the target was met.

    As in runs and imports: rows of values, no objects, through COPY in one transaction, including the check of the
    measurements' keys. The table has all its rows and indexes.
    """
    from perfweb.runs.bulk import copy_samples
    from perfweb.runs.models import Measurement

    measurements = list(Measurement.objects.order_by("-pk").values_list("pk", flat=True)[:INGESTED_MEASUREMENTS])
    rates = []
    for _ in range(INGESTS):
        with transaction.atomic():
            began = time.perf_counter()
            count = copy_samples(
                (measurement, index, "bench", index / 7, "us", "lower", index == 0, 1.0, "")
                for measurement in measurements
                for index in range(INGESTED // INGESTED_MEASUREMENTS)
            )
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            rates.append(count / (time.perf_counter() - began))
            transaction.set_rollback(True)
    rate = statistics.median(rates)
    met = rate >= INGEST_TARGET
    print(f"ingest: {rate:.0f} samples/s  {_judged(f'at least {INGEST_TARGET}', met)}", flush=True)
    return met


def paints(site: str, wanted: Sequence[Page]) -> list[bool]:
    """Print the first paint of each page in Chromium (https://www.w3.org/TR/paint-timing/). Return whether each met the
    target.
    """
    results = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        for page in wanted:
            times = [_first_paint(browser, site.rstrip("/") + page.address) for _ in range(PAINTS)]
            results.append(statistics.median(times) < PAINT_TARGET)
            judged = _judged(f"< {PAINT_TARGET:.0f} ms", results[-1])
            print(f"first contentful paint of {page.name:24}{statistics.median(times):9.0f} ms  {judged}", flush=True)
        browser.close()
    return results


def _first_paint(browser: Browser, address: str) -> float:
    """Return milliseconds until the first contentful paint in a browser with an empty cache."""
    with browser.new_context() as context:
        shown = context.new_page()
        shown.goto(address)
        return float(shown.evaluate(_PAINT))


_PAINT = """new Promise(resolve => new PerformanceObserver(list => {
  for (const entry of list.getEntriesByName("first-contentful-paint")) resolve(entry.startTime);
}).observe({type: "paint", buffered: true}))"""


def processor_seconds(pid: int) -> float:
    """Return the CPU time of a process (proc(5), utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> float:
    """Resident memory of a process in megabytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1000


def main() -> int:
    """Generate, measure, print; returns 1 when a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", required=True, help="address of the web server")
    parser.add_argument("--web-pid", type=int, required=True, help="its process, for its memory")
    parser.add_argument("--plans", type=Path, default=Path("plans.txt"), help="file for the plans of all queries")
    parser.add_argument("--commits", type=int, default=2000, help="of ten runs with 528 samples each (2000)")
    parser.add_argument("--requests", type=int, default=40, help="for each page (40)")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
    django.setup()
    from perfweb.builds.models import Build
    from perfweb.runs.catalogue import TESTS
    from perfweb.runs.models import Run, Summary
    from tests.bench.generate import TESTS_OF_PLAN, generate

    began = time.monotonic()
    if not Run.objects.exists():
        for step in generate(options.commits):
            print(f"{time.monotonic() - began:5.0f} s: {step}", flush=True)
    if not Summary.objects.filter(run=Run.objects.first()).exists():
        raise SystemExit("bench: what is in its database is only half made: remove its directory, var/bench")
    revision = Build.objects.order_by("-pk").values_list("revision", flat=True)[0]
    # The tests of the second plan are in no other one: twelve series.
    wanted = pages(Run.objects.count(), revision, list(TESTS)[TESTS_OF_PLAN])
    targets = _tables(wanted, options)
    print(f"web server: {memory_of(options.web_pid):.0f} MB resident")
    targets.append(ingest())
    targets += paints(options.site, [page for page in wanted if page.is_page])
    print(f"{sum(targets)} of {len(targets)} targets met; {time.monotonic() - began:.0f} s in all")
    return 0 if all(targets) else 1


def _tables(wanted: Sequence[Page], options: argparse.Namespace) -> list[bool]:
    """Print the table of times, then queries that read large tables. Returns whether each target was met."""
    head = ("median", "p95", "20: med", "20: p95", "CPU", "kB", "no plots", "kB gzip")
    print(f"{'times in ms':26}" + "".join(f"{name:>9}" for name in head) + f"{'queries':>8}  targets")
    site, targets = Site(options.site), list[bool]()
    with options.plans.open("w", encoding="utf-8") as file:
        plans = Plans(file)
        for page in wanted:
            answer = ask(page)
            plans.add(page, answer.queries)
            line, met = measure(site, page, answer, options.requests, options.web_pid)
            targets += met
            print(line, flush=True)
    print("targets: p95 with one client, and kB without plots; with 20 clients the median should be near 20 times CPU")
    bad = f"{len(plans.bad)} read a large table from end to end  {_judged('none', not plans.bad)}"
    print(f"plans of {plans.count} queries: {options.plans}; {bad}")
    for plan in plans.bad:
        print(plan)
    return [*targets, not plans.bad]


if __name__ == "__main__":
    sys.exit(main())
