# SPDX-License-Identifier: BSD-2-Clause
"""Delivers the letters of the outbox to forges."""

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from perfweb.forges import secrets
from perfweb.forges.models import Project
from perfweb.forges.table import FORGES, Texts
from perfweb.outbox import rest
from perfweb.outbox import services as outbox
from perfweb.outbox.models import Letter
from perfweb.outbox.secretfiles import SecretError
from perfweb.outbox.services import LaterError, NeverError


class AccessError(ValueError):
    """The bot of a project cannot work; the message has the reason, and what to grant."""


def check(project: Project) -> None:
    """Check the token and the bot's permissions, as far as the forge reports them. Raises AccessError."""
    grant = FORGES[project.forge].grant
    try:
        lack = Bot(project).lacks()
    except (SecretError, rest.DeniedError) as error:
        raise AccessError(f"{error}. {grant}") from None
    except (LaterError, NeverError) as error:
        raise AccessError(f"{error}. Repeat this when the forge answers.") from None
    if lack:
        raise AccessError(f"{project.login} {lack} {project.path}. {grant}")


def retry(project: Project) -> int:
    """Check the bot's access, then have all that waits for the forge sent now; returns how much. Raises AccessError."""
    check(project)
    return outbox.retry(channel(project))


def channel(project: Project) -> str:
    """The channel of the outbox for a project."""
    return f"forge:{project.mirror.name}"


def send(letter: Letter) -> str:
    """Send the content of a letter; return the number of the comment or issue. Raises LaterError or NeverError."""
    name = letter.channel.partition(":")[2]
    project = Project.named(name)
    if project is None:
        raise NeverError(f"there is no project {name}")
    try:
        speaker = Bot(project)
    except SecretError as error:
        raise LaterError(str(error), rest.DENIED, everything=True) from None
    if letter.content["what"] == "status":
        speaker.status(letter.content)
        return ""
    return speaker.issue(letter) if letter.content["what"] == "issue" else speaker.comment(letter)


class Bot:
    """The bot of a project."""

    def __init__(self, project: Project) -> None:
        self.project, self.forge = project, FORGES[project.forge]
        name, value = self.forge.authorization
        self.headers = {name: value.format(token=secrets.token(project))}

    def lacks(self) -> str:
        """Return what the forge's answers show that the bot may not do; empty if they show nothing. Raises LaterError
        or NeverError.
        """
        for template, lacks in self.forge.checks:
            if lack := lacks(self._call("GET", template, None)):
                return lack
        return ""

    def status(self, content: dict[str, Any]) -> None:
        """Set the status of a commit."""
        wanted = self.forge.status(content["state"], content["description"], content["address"])
        try:
            self._call("POST", self.forge.statuses, wanted, sha=content["sha"])
        except NeverError as error:
            # GitLab refuses the state that a commit already has.
            if "Cannot transition status" not in str(error):
                raise

    def comment(self, letter: Letter) -> str:
        """Write a comment on a pull request, or edit the existing one; return its number."""
        return self._write(letter, self.forge.comments, {}, pull=letter.content["pull"])

    def issue(self, letter: Letter) -> str:
        """Write an issue, or edit the existing one, and open or close it; return its number.

        Without a state in the letter an existing issue stays as users left it, and a new one is open.
        """
        issues, state = self.forge.issues, letter.content["state"]
        number = self._write(letter, issues, {"title": letter.content["title"]})
        if state:
            self._call(self.forge.edit, issues.edit, self.forge.turns[state], number=number)
        return number

    def _write(self, letter: Letter, texts: Texts, more: Mapping[str, str], **where: object) -> str:
        """Write a text, or edit the one that was written; returns its number."""
        body = {texts.words: letter.content["body"], **more}
        known = letter.reference or (self._written(letter, texts, where) if letter.attempts > 1 else "")
        if known:
            self._call(self.forge.edit, texts.edit, body, number=known, **where)
            return known
        return str(self._call("POST", texts.write, body, **where)[texts.number])

    def _written(self, letter: Letter, texts: Texts, where: Mapping[str, object]) -> str:
        """The text that an attempt made whose answer was lost."""
        since = letter.since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for text in self._call("GET", texts.recent, None, since=since, **where):
            author = text.get("user") or text.get("author") or {}
            ours = author.get(self.forge.author) == self.project.login
            if ours and letter.content["mark"] in (text[texts.words] or ""):
                return str(text[texts.number])
        return ""

    def _call(self, method: str, template: str, content: object, **values: object) -> Any:
        address = self.forge.address(self.project.api, template, self.project.path, **values)
        return rest.call(method, address, self.headers, content, edit="number" in values)
