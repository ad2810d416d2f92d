# SPDX-License-Identifier: BSD-2-Clause
"""Delivers the letters of the outbox to forges."""

from datetime import UTC
from typing import Any

from perfweb.forges import http, secrets
from perfweb.forges.models import Project
from perfweb.forges.table import FORGES
from perfweb.outbox.models import Letter
from perfweb.outbox.services import LaterError, NeverError


def send(letter: Letter) -> str:
    """Say what a letter has to say; returns the number of the comment.  Raises LaterError or NeverError."""
    name = letter.channel.partition(":")[2]
    project = Project.objects.select_related("mirror").filter(mirror__name=name).first()
    if project is None:
        raise NeverError(f"there is no project {name}")
    try:
        speaker = Speaker(project)
    except secrets.SecretError as error:
        raise LaterError(str(error), http.DENIED, everything=True) from None
    if letter.content["what"] == "status":
        speaker.status(letter.content)
        return ""
    return speaker.comment(letter)


class Speaker:
    """The bot of a project."""

    def __init__(self, project: Project) -> None:
        self.project, self.forge = project, FORGES[project.forge]
        name, value = self.forge.authorization
        self.headers = {name: value.format(token=secrets.token(project))}

    def status(self, content: dict[str, Any]) -> None:
        """Set the status of a commit."""
        wanted = self.forge.status(content["state"], content["description"], content["address"])
        try:
            self._call("POST", self.forge.statuses, wanted, sha=content["sha"])
        except NeverError as error:
            # GitLab refuses a state that a commit has already.
            if "Cannot transition status" not in str(error):
                raise

    def comment(self, letter: Letter) -> str:
        """Write a comment, or edit the one that was written."""
        content = letter.content
        known = letter.reference or (self._written(letter) if letter.attempts > 1 else "")
        body = {"body": content["body"]}
        if known:
            self._call(self.forge.edit, self.forge.comment, body, pull=content["pull"], comment=known)
            return known
        return str(self._call("POST", self.forge.comments, body, pull=content["pull"])["id"])

    def _written(self, letter: Letter) -> str:
        """The comment that an attempt made whose answer was lost."""
        since = letter.since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        found = self._call("GET", self.forge.recent, None, pull=letter.content["pull"], since=since)
        for comment in found:
            author = comment.get("user") or comment.get("author") or {}
            if letter.content["mark"] in comment["body"] and author.get(self.forge.author) == self.project.login:
                return str(comment["id"])
        return ""

    def _call(self, method: str, template: str, content: object, **values: object) -> Any:
        address = self.forge.address(self.project.api, template, self.project.path, **values)
        return http.call(method, address, self.headers, content, edit="comment" in values)
