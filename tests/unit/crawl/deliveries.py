# SPDX-License-Identifier: BSD-2-Clause
"""Webhooks with the signature of their project, whose payload is malformed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from perfweb.builds.models import Mirror
from perfweb.forges import secrets
from perfweb.forges.models import ForgeName, Project
from tests.unit.accounts.site import Site
from tests.unit.crawl.asking import Headers
from tests.unit.crawl.shapes import spoiled_json, write
from tests.unit.forges.conftest import PATH, commented, example, headers

WEBHOOK = "/forges/{name}/webhook"
_PUSHED = {"github": "github-pull_request.synchronize", "gitlab": "gitlab-merge_request", "gitea": "gitea-pull_request"}


class Deliveries:
    """A project on each kind of forge, and example deliveries of these forges."""

    def __init__(self, site: Site) -> None:
        self._projects = {kind: self._project(site, kind) for kind in ForgeName.values}

    def signed(self, choose: random.Random, change: Callable[[bytes], bytes]) -> tuple[str, Headers, bytes]:
        """The name of a project, and headers and body of a delivery; `change` is applied to its text before it is
        signed.
        """
        kind = choose.choice(sorted(self._projects))
        project, event = self._projects[kind], choose.choice(["comment", "push"])
        payload: dict[str, Any] = commented(kind, "/perf help") if event == "comment" else example(_PUSHED[kind])
        body = change(write(spoiled_json(choose, payload)))
        signed = headers(kind, body, secrets.webhook_secret(project), event=event)
        pairs = [(name.lower().encode(), value.encode()) for name, value in signed.items()]
        return str(project), [(b"content-type", b"application/json"), *pairs], body

    @staticmethod
    def _project(site: Site, kind: str) -> Project:
        known = Project.objects.filter(forge=kind).first()
        if known:
            known.path = PATH[kind]
            known.save()
            return known
        project = Project.objects.create(
            mirror=Mirror.objects.create(name=f"on-{kind}", url=str(site.checkout.tree)), forge=kind,
            api="http://127.0.0.1:9", path=PATH[kind], login="bot", testbed=site.run.testbed,
            account=site.users["submitter"],
        )  # fmt: skip
        secrets.make(project)
        return project
