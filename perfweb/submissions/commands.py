# SPDX-License-Identifier: BSD-2-Clause
"""Requests in comments and mails: `/perf run tcp net.isr.dispatch=direct,deferred`.

docs/howto/bots.md describes the words for users.
"""

import difflib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from perfweb.plaintext import shown
from perfweb.submissions.plans import MATRICES, KnobError, read_knobs
from perfweb.submissions.services import SubmissionRequest

USUAL_MATRIX = "tcp-quick"
MOST_COMBINATIONS = 4
"""Max values of knobs together: each is a separate comparison."""
LONGEST = 1000


class RequestError(ValueError):
    """The text is not a request; the message is for its author and has an example."""


class Verb(StrEnum):
    RUN = "run"
    STATUS = "status"
    CANCEL = "cancel"
    HELP = "help"


SETTINGS = {"testbed": "the name of a testbed", "base": "a branch, tag or commit"}
FLAGS = {"each": "measure a series patch by patch", "trailer": "offer a line Perf-tested-by, in a mail"}


@dataclass(frozen=True)
class Request:
    """The requested action; the rest is for RUN. `knobs` has a text of lines `name=value` for each combination of their
    values, and one empty text without knobs.
    """

    verb: Verb
    matrix: str = USUAL_MATRIX
    knobs: tuple[str, ...] = ("",)
    testbed: str = ""
    base: str = ""
    each: bool = False
    trailer: bool = False

    def wanted(self, testbed: str, base: str = "", title: str = "", mirror: str = "") -> list[SubmissionRequest]:
        """The submissions of a request: one for each combination, with a default testbed and base."""
        return [
            SubmissionRequest(
                testbed=self.testbed or testbed,
                matrix=self.matrix,
                knobs=knobs,
                each=self.each,
                base=self.base or base,
                title=title,
                mirror=mirror,
            )
            for knobs in self.knobs
        ]


def find(text: str, prefix: str) -> str | None:
    """Return the words after `prefix` in the one line that begins with it; None without such a line.

    Indented and quoted lines are skipped, and so is text between fences. Raises RequestError for a second line.
    """
    found, fence = list[str](), ""
    for line in text.replace("\r\n", "\n").split("\n"):
        mark = line[:3]
        if mark in {"```", "~~~"} and fence in {"", mark}:
            fence = "" if fence else mark
        elif not fence and line[: len(prefix)].lower() == prefix.lower():
            words = line[len(prefix) :]
            if prefix.endswith(":") or not words or words[0].isspace():
                found.append(words.strip())
    if len(found) > 1:
        raise RequestError(
            f"This has {len(found)} lines that begin with {prefix}. Write one: a request is answered once."
        )
    return found[0] if found else None


def parse(words: str) -> Request:
    """Parse the words of a request. Raises RequestError and nothing else."""
    if len(words) > LONGEST:
        raise RequestError(f"A request is at most {LONGEST} characters long.")
    first, *others = words.split() or [Verb.HELP]
    if first.lower() not in set(Verb):
        return _run([first, *others])
    verb = Verb(first.lower())
    if verb == Verb.RUN:
        return _run(others)
    if others:
        raise RequestError(f"“{verb}” takes no more words: remove “{shown(' '.join(others))}”.")
    return Request(verb)


def help_text(prefix: str) -> str:
    """Return all requests, with examples; plain text, in 72 columns."""
    tests = "\n".join(f"  {_display_name(name):<12}{matrix.title}" for name, matrix in MATRICES.items())
    words = [*((f"{name}=", meaning) for name, meaning in SETTINGS.items()), *FLAGS.items()]
    return "\n".join([
        f"{prefix} tcp quick",
        f"{prefix} run tcp net.isr.dispatch=direct,deferred",
        f"{prefix} status | cancel | help",
        "",
        "Tests:",
        tests,
        "",
        "NAME=VALUE sets a tunable of the stack, of base and patch alike;",
        f"NAME=VALUE,VALUE compares them with each, {MOST_COMBINATIONS} combinations at most. Also:",
        *(f"  {word:<12}{meaning}" for word, meaning in words),
    ])  # fmt: skip


def _run(words: Sequence[str]) -> Request:
    tests, knobs, settings, flags = list[str](), dict[str, list[str]](), dict[str, str](), set[str]()
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and word.lower() in FLAGS:
            flags.add(word.lower())
        elif not equals:
            tests.append(word.lower())
        elif name in knobs or name in settings:
            raise RequestError(f"{shown(name)} is there twice; several values of a knob are written NAME=VALUE,VALUE.")
        elif name in SETTINGS:
            settings[name] = _setting(name, value)
        else:
            knobs[name] = _values(name, value)
    return Request(
        Verb.RUN,
        _matrix(tests),
        _combinations(knobs),
        testbed=settings.get("testbed", ""),
        base=settings.get("base", ""),
        each="each" in flags,
        trailer="trailer" in flags,
    )


def _setting(name: str, value: str) -> str:
    if not value:
        raise RequestError(f"{name}= lacks its value: {SETTINGS[name]}.")
    return value


def _values(name: str, text: str) -> list[str]:
    """Return the requested values of the knob in turn."""
    if "." not in name:
        near = _near(name, list(SETTINGS))
        others = " and ".join(f"{other}=" for other in SETTINGS)
        raise RequestError(
            f"“{shown(name)}=” is not known{near}: there are {others}, and knobs, whose names have dots."
        )
    values = text.split(",")
    for value in values:
        try:
            read_knobs(f"{name}={value}")
        except KnobError as error:
            raise RequestError(f"{str(error)[0].upper()}{str(error)[1:]}.") from None
        if values.count(value) > 1:
            raise RequestError(f"{shown(name)} has the value {shown(value)} twice.")
    return values


def _combinations(knobs: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    made = list(itertools.islice(itertools.product(*knobs.values()), MOST_COMBINATIONS + 1))
    if len(made) > MOST_COMBINATIONS:
        raise RequestError(
            f"These knobs have more than {MOST_COMBINATIONS} combinations of values: request fewer at once."
        )
    return tuple("\n".join(f"{name}={value}" for name, value in zip(knobs, values, strict=True)) for values in made)


def _matrix(words: Sequence[str]) -> str:
    """Return the name of the matrix written as `tcp quick`, `tcp-quick`, or `tcp`."""
    name = "-".join(words) or USUAL_MATRIX
    for known in (name, f"{name}-quick"):
        if known in MATRICES:
            return known
    names = [_display_name(known) for known in MATRICES]
    near = _near(" ".join(words), [*names, *(known.removesuffix(" quick") for known in names), *Verb, *FLAGS])
    raise RequestError(f"There are no tests “{shown(' '.join(words))}”{near}: there are {', '.join(names)}.")


def _display_name(name: str) -> str:
    return name.replace("-", " ")


def _near(word: str, known: Sequence[str]) -> str:
    found = difflib.get_close_matches(word[:60], known, n=1)
    return f" (did you mean “{found[0]}”?)" if found else ""
