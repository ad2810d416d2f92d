# SPDX-License-Identifier: BSD-2-Clause
"""Reads the text of a plan.  Every mistake is a PlanError that names line, column and field and says what is allowed.

`perfweb/runs/plans/` has plans to start from; `_read_plan` below lists all fields with their defaults and limits.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

import yaml

from perfweb.runs.catalogue import TESTS, Test
from perfweb.runs.yamlnodes import Field, PlanError, Record

__all__ = ["ORDERS", "SIZES", "PlanError", "PlanSpec", "VariantSpec", "read_plan", "resized"]

MAX_TEXT = 64 * 1024
ORDERS = ("abba", "random")
SIZES = ("boots", "samples", "discard", "seconds", "timeout")
"""The fields of a plan that say how much is measured, and not what."""
PLANNED, DECIDED = "planned", "decided"
MOST_DECIDING_BOOTS = 20
FEWEST_DECIDING_BOOTS = 3
TARGETS = ("stack", "linux")
NO_PROFILE = "none"
PROFILES = {"locks": "debug.lock.prof.enable", "mutexes": "debug.mutex.prof.enable"}
"""What a stack that is built with lock_profiling can count, and the tunable that has it count."""
NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?", re.ASCII)
NAME_RULE = "lower-case letters, digits, '_' and '-', at most 64, beginning and ending with a letter or digit"
# What loader.conf and a meson command line can carry without escapes of any kind.
TUNABLE = re.compile(r"[a-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_%]+)+", re.ASCII)
TUNABLE_VALUE = re.compile(r"[A-Za-z0-9_.,:/+=-](?:[A-Za-z0-9_.,:/+= -]{0,126}[A-Za-z0-9_.,:/+=-])?", re.ASCII)
TUNABLE_VALUE_RULE = "letters, digits, _ . , : / + = - and spaces inside, at most 128"
BUILD_OPTION = re.compile(r"-D[a-z][a-z0-9_]*=[A-Za-z0-9_.,+-]{0,128}", re.ASCII)


@dataclass(frozen=True)
class VariantSpec:
    """One of the things to compare; `tunables` in the order of the plan."""

    name: str
    target: str
    build_options: tuple[str, ...]
    tunables: dict[str, str]


@dataclass(frozen=True)
class PlanSpec:
    """A valid plan.

    `samples` are per variant and test over all boots, `discard` per boot and test; `seconds` is the length of a sample,
    `timeout` the seconds after which one is killed. `stop` says whether all boots are measured or only so many that
    every comparison with the baseline is decided, about a change of `margin` percent, with a `confidence` in percent.
    """

    name: str
    title: str
    baseline: str
    variants: tuple[VariantSpec, ...]
    tests: tuple[Test, ...]
    samples: int
    discard: int
    boots: int
    seconds: int
    timeout: int
    order: str
    stop: str
    margin: float
    confidence: float


def read_plan(text: str) -> PlanSpec:
    """The plan in `text` (YAML 1.1, one document).  Raises PlanError and nothing else."""
    if len(text) > MAX_TEXT:
        raise PlanError(1, 1, "plan", f"is longer than {MAX_TEXT} characters")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        _reject_syntax(error)
    except yaml.reader.ReaderError as error:
        raise PlanError(
            text.count("\n", 0, error.position) + 1,
            1,
            "plan",
            f"has a character that YAML forbids: #x{error.character:04x}",
        ) from None
    except (RecursionError, ValueError) as error:
        raise PlanError(1, 1, "plan", f"cannot be read as YAML: {type(error).__name__}") from None
    if node is None:
        raise PlanError(1, 1, "plan", "is empty: it needs at least name, variants, baseline and tests")
    return _read_plan(Record(Field("plan", node)))


def resized(text: str, sizes: Mapping[str, str]) -> str:
    """The text of a plan with other SIZES; what they may be is for read_plan() to say.  Raises ValueError."""
    for field, value in sizes.items():
        if field not in SIZES or re.fullmatch(r"\d{1,9}", value, re.ASCII) is None:
            raise ValueError(f"{field[:40]}={value[:40]} is none of {', '.join(SIZES)} with a whole number")
        text, found = re.subn(rf"^{field}:[ ]*\S+", f"{field}: {value}", text, count=1, flags=re.MULTILINE)
        if not found:
            text = f"{text.rstrip()}\n{field}: {value}\n"
    return text


def _reject_syntax(error: yaml.MarkedYAMLError) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    raise PlanError(line, column, "plan", f"is not YAML: {error.problem or error.context}") from None


def _read_plan(plan: Record) -> PlanSpec:
    plan.allow(
        "name", "title", "baseline", "variants", "tests", "samples", "discard", "boots", "seconds", "timeout", "order",
        "stop", "margin", "confidence", "profile",
    )  # fmt: skip
    name = plan.need("name").matching(NAME, NAME_RULE)
    variants = tuple(_read_variant(Record(item)) for item in plan.need("variants").items(1, 16))
    variants = _profiled(plan, variants)
    plan.need("variants").distinct([variant.name for variant in variants])
    baseline = plan.need("baseline").one_of([variant.name for variant in variants])
    tests = [item.one_of(list(TESTS)) for item in plan.need("tests").items(1, 32)]
    plan.need("tests").distinct(tests)
    stop = plan.choice("stop", default=PLANNED, allowed=(PLANNED, DECIDED))
    samples, boots = _read_size(plan, stop, len(variants))
    seconds = plan.number("seconds", default=1, lowest=1, highest=600)
    return PlanSpec(
        name=name,
        title=plan.text("title", default=name, longest=200),
        baseline=baseline,
        variants=variants,
        tests=tuple(TESTS[test] for test in tests),
        samples=samples,
        discard=plan.number("discard", default=1, lowest=0, highest=20),
        boots=boots,
        seconds=seconds,
        timeout=plan.number("timeout", default=seconds + 10, lowest=seconds + 1, highest=3600),
        order=plan.choice("order", default="abba", allowed=ORDERS),
        stop=stop,
        margin=plan.decimal("margin", default=2.0, lowest=0.1, highest=50.0),
        confidence=plan.decimal("confidence", default=95.0, lowest=80.0, highest=99.9),
    )


def _read_size(plan: Record, stop: str, variants: int) -> tuple[int, int]:
    """How many samples and boots of each variant there are, or at most, where the run stops when it is decided."""
    if stop == PLANNED:
        if field := plan.get("margin") or plan.get("confidence"):
            field.reject(f"is for `stop: {DECIDED}`; pages compare with any margin and confidence")
        samples = plan.number("samples", default=10, lowest=1, highest=1000)
        boots = plan.number("boots", default=min(2, samples), lowest=1, highest=50)
    else:
        if variants < 2:
            plan.need("stop").reject("needs two variants at least: there is nothing to decide about one")
        boots = plan.number("boots", default=MOST_DECIDING_BOOTS, lowest=FEWEST_DECIDING_BOOTS, highest=50)
        samples = plan.number("samples", default=2 * boots, lowest=1, highest=1000)
    if boots > samples:
        place = plan.get("boots") or plan.need("samples")
        place.reject(f"is {boots} boots, more than the {samples} samples: every boot must measure something")
    return samples, boots


def _profiled(plan: Record, variants: tuple[VariantSpec, ...]) -> tuple[VariantSpec, ...]:
    """The variants as the plan's profile wants them: all stacks count, since counting slows what is measured."""
    wanted = plan.choice("profile", default=NO_PROFILE, allowed=(NO_PROFILE, *PROFILES))
    if wanted == NO_PROFILE:
        return variants
    if all(variant.target != "stack" for variant in variants):
        plan.need("profile").reject("is for target stack, and no variant has that")
    return tuple(_counting(variant, PROFILES[wanted]) if variant.target == "stack" else variant for variant in variants)


def _counting(variant: VariantSpec, tunable: str) -> VariantSpec:
    others = (option for option in variant.build_options if not option.startswith("-Dlock_profiling="))
    options = (*others, "-Dlock_profiling=true")
    return replace(variant, build_options=options, tunables={**variant.tunables, tunable: "1"})


def _read_variant(variant: Record) -> VariantSpec:
    variant.allow("name", "target", "build", "tunables")
    target = variant.need("target").one_of(TARGETS)
    tunables: dict[str, str] = {}
    if given := variant.get("tunables"):
        if target == "linux":
            given.reject("is for target stack: the lab sets nothing in a Linux kernel")
        for key, value in Record(given, most=64).fields():
            key.matching(TUNABLE, "the name of a tunable such as net.isr.dispatch")
            tunables[key.scalar()] = value.matching(TUNABLE_VALUE, TUNABLE_VALUE_RULE)
    options = variant.get("build")
    return VariantSpec(
        name=variant.need("name").matching(NAME, NAME_RULE),
        target=target,
        build_options=tuple(
            item.matching(BUILD_OPTION, "meson options such as -Dbuildtype=release")
            for item in (options.items(0, 32) if options else [])
        ),
        tunables=tunables,
    )
