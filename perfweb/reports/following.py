# SPDX-License-Identifier: BSD-2-Clause
"""Shows the progress of a run on a terminal until it is over."""

import time
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, OutputWrapper

from perfweb.runs import progress, services
from perfweb.runs.models import Run, RunState
from perfweb.verdicts.text import run_text

POLL_SECONDS = 0.5
BAR_WIDTH = 30
IMPATIENT_SECONDS = 20


class Watch:
    """The state of a run from its events, and its status line."""

    def __init__(self) -> None:
        self.last_id = progress.FIRST
        self.state = RunState.QUEUED.value
        self.doing = ""
        self.fraction = 0.0
        self.seconds = 0.0
        self.estimated = time.monotonic()

    def listen(self, number: int) -> None:
        for event in progress.progress_since(number, self.last_id):
            self.last_id = event.id
            self.take(event.name, event.values)

    def take(self, name: str, values: dict[str, Any]) -> None:
        match name:
            case "state":
                self.state, self.doing = values["state"], ""
            case "boot":
                place = f"boot {values['position'] + 1} of {values['boots']}"
                self.doing = f"{place}: {values['variant']}, {values['server']}, {values['topology']}"
            case "measuring":
                self.doing = f"{values['test']} on {values['variant']}"
            case "eta":
                self.fraction, self.seconds = values["fraction"], values["seconds"]
                self.estimated = time.monotonic()

    def line(self) -> str:
        """Between two events the bar moves at the estimated pace."""
        since = min(time.monotonic() - self.estimated, self.seconds)
        share = since / self.seconds if self.seconds else 0.0
        fraction = self.fraction + (1 - self.fraction) * share
        done = round(BAR_WIDTH * fraction)
        left = round(self.seconds - since)
        bar = "#" * done + "." * (BAR_WIDTH - done)
        clock = f"{left // 60}:{left % 60:02d} left" if self.state == RunState.RUNNING else "         "
        return f"[{bar}] {fraction:4.0%} {clock}  {self.doing or self.state}"


def follow_to_its_verdict(number: int, out: OutputWrapper) -> Run:
    """Show the progress of a run and then its comparison. Raises CommandError unless the run ends as done."""
    try:
        run = _follow(number, out)
    except KeyboardInterrupt:
        raise CommandError("stopped", returncode=130) from None
    if run.state != RunState.DONE:
        raise CommandError(f"run {number} is {run.state}: {run.reason}\n{_address(run)}")
    out.write("\n" + run_text(run))
    if run.reason:
        out.write(f"{run.reason}; the page has the reason.\n")
    out.write(f"The comparison: {_address(run)}")
    return run


def _address(run: Run) -> str:
    names = list(run.variants.values_list("name", flat=True).order_by("-baseline", "position"))
    page = f"compare/{names[0]}..{names[1]}/" if run.state == RunState.DONE and len(names) > 1 else ""
    return f"{settings.SITE_URL}/runs/{run.number}/{page}"


def _follow(number: int, out: OutputWrapper) -> Run:
    """Show the progress until the run is over; on a terminal in one line, otherwise a line for each event."""
    terminal = out.isatty()
    watch = Watch()
    shown, began = "", time.monotonic()
    while not (run := services.get(number)).is_over:
        watch.listen(number)
        watch.state = run.state
        news = f"{watch.state} {watch.doing}"
        if terminal:
            out.write(f"\r\x1b[K{watch.line()}", ending="")
            out.flush()
        elif news != shown:
            out.write(watch.line())
        shown = news
        if run.state == RunState.QUEUED and time.monotonic() - began > IMPATIENT_SECONDS:
            began = float("inf")
            out.write("\nStill queued: another run holds the testbed, or no worker is running.")
        time.sleep(POLL_SECONDS)
    if terminal:
        out.write("")
    return run
