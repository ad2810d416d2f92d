# SPDX-License-Identifier: BSD-2-Clause
"""Tags that write the HTML of many templates, and the rule for lines of templates."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from django.template import Context, Template

from perfweb.stats.comparison import Verdict
from perfweb.stats.ratio import Change
from perfweb.verdicts.run_verdicts import TestVerdict

ROOT = Path(__file__).resolve().parents[3]


def rendered(source: str, **values: object) -> str:
    return Template("{% load reports %}" + source).render(Context(values))


def test_table_has_its_label_for_the_box_and_as_hidden_caption() -> None:
    assert rendered('{% table "Verdicts of run " run classes="stacking" %}<tr></tr>{% endtable %}', run=7) == (
        '<div class="scroll" tabindex="0" role="group" aria-label="Verdicts of run 7"><table class="stacking">'
        '<caption class="hidden">Verdicts of run 7</caption><tr></tr></table></div>'
    )


def test_table_escapes_its_label_and_shows_its_caption() -> None:
    text = rendered("{% table name visible=True %}{{ name }}{% endtable %}", name='<b>"')
    assert 'aria-label="&lt;b&gt;&quot;"><table><caption>&lt;b&gt;&quot;</caption>&lt;b&gt;' in text


def test_verdict_cell_has_class_mark_words_warnings_and_size() -> None:
    verdict = TestVerdict("tcp.rr", Verdict.SLOWER, None, Change(-5.0, -6.0, -4.0), boots_differ=True)
    text = rendered('{% verdict_cell verdict label="patch" classes="wrap" %}', verdict=verdict)
    assert text.startswith('<td class="wrap verdict slower" data-label="patch">▼ slower')
    assert '<small class="warn">⚠ boots differ</small><div class="detail">' in text
    assert rendered("{% verdict_lines verdict %}", verdict=verdict).startswith('<div class="detail verdict slower">▼')


def test_lint_fails_for_a_template_line_of_161_columns(tmp_path: Path) -> None:
    for name in ("pyproject.toml", ".djlint_rules.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    line = "<p>" + "a" * 153 + "</p>\n"
    for text, status in ((line, 0), (f" {line}", 1)):
        (tmp_path / "a.html").write_text(text, encoding="utf-8")
        lint = subprocess.run(
            [Path(sys.executable).with_name("djlint"), "--quiet", "--lint", "a.html"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (lint.returncode, "P160" in lint.stdout) == (status, bool(status)), lint.stdout
