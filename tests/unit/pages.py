# SPDX-License-Identifier: BSD-2-Clause
"""Requests of pages, and their text."""

import re

from django.test import Client
from django.urls import reverse

from perfweb.runs.models import Run


def page(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def text_of(html: str) -> str:
    """Return roughly the text of a text browser: no scripts, no tags, white space collapsed."""
    html = re.sub(r"<script.*?</script>", " ", html, flags=re.DOTALL)
    html = re.sub(r'<span role="tooltip".*?</span>', "", html)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def comparison_address(run: Run, a: str = "deferred", b: str = "direct") -> str:
    return reverse("reports:comparison", args=[run.pk, a, b])
