# SPDX-License-Identifier: BSD-2-Clause
"""A comparison, or why there is none, as one HTML file: it needs no server, no network and no JavaScript.

The text of a patch, of a compiler and of a console is untrusted: the templates escape all of it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.template import Context, Engine
from django.utils.safestring import mark_safe

from perfweb.counted import rows
from runners.counted.command import Result
from runners.counted.errors import BootError, BuildError, CountedError

ROOT = Path(__file__).resolve().parents[2]
STYLE_SHEETS = ("tokens.css", "base.css", "components.css")
FAILURES = {BuildError: "does not build", BootError: "does not run"}


@dataclass(frozen=True)
class About:
    """What was compared: names of patches, the base, and the number of boots of each kernel."""

    patches: Sequence[str]
    base: str
    boots: int


def of_result(about: About, result: Result) -> str:
    """Returns the page of a comparison."""
    warnings = [str(warning) for warning in result.warnings]
    return _rendered(about, warnings=warnings, counted=rows.of_comparison(result.loads))


def of_failure(about: About, error: CountedError) -> str:
    """Returns the page of a patch that was not compared, with the words of the compiler or the console."""
    return _rendered(about, failure=FAILURES.get(type(error), "cannot be compared"), reason=str(error))


@functools.cache
def _engine() -> Engine:
    return Engine(dirs=[str(ROOT / "templates")])


def _rendered(about: About, **more: Any) -> str:
    # Escaping would change the style sheets, which are files of this project.
    style = mark_safe("".join((ROOT / "static" / name).read_text(encoding="utf-8") for name in STYLE_SHEETS))  # noqa: S308
    values = {"patches": about.patches, "base": about.base, "boots": str(about.boots), "style": style, **more}
    # Without time zones and formats of a locale the engine needs no settings of the service.
    context = Context(values, use_l10n=False, use_tz=False)
    return _engine().get_template("counted/page.html").render(context)
