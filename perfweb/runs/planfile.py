# SPDX-License-Identifier: BSD-2-Clause
"""Reads the text of a plan.  Every error is a PlanError with line, column, field, and the allowed values.

`perfweb/runs/plans/` has example plans; `_read_plan` below lists all fields with their defaults and limits.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

import yaml

from perfweb.counted import configurations
from perfweb.inputlimits import PLAN_CHARACTERS, PLAN_DEPTH, PLAN_NODES
from perfweb.lab.origins import Origin, origin_of
from perfweb.runs.catalogue import TESTS, Test
from perfweb.runs.linuxknobs import BOOT_KNOBS, COMMAND_LINE, read_knob
from perfweb.yamlnodes import Field, PlanError, Record
from playbooks.module_utils import command_line
from playbooks.module_utils.gates import BY_NAME, DEFAULT_LIMITS, Limits

__all__ = [
    "ORDERS",
    "SIZES",
    "PlanError",
    "PlanSpec",
    "SentinelSpec",
    "SizeError",
    "VariantSpec",
    "read_plan",
    "resized",
]

ORDERS = ("abba", "random")
SENTINEL = "sentinel"
SIZES = ("boots", "samples", "discard", "seconds", "timeout", SENTINEL)
"""The fields of a plan that set the number of measurements, and not their kind."""
PLANNED, DECIDED = "planned", "decided"
OFF = "off"
LONGEST_TIMEOUT = 3600
MOST_BOOTS = 50
MOST_SAMPLES = 1000
MOST_VARIANTS = 16
MOST_LIMIT = 999_999
MOST_MINUTES = 24 * 60
MOST_DECIDING_BOOTS = 20
FEWEST_DECIDING_BOOTS = 3
STACK, SIM, LINUX = "stack", "sim", "linux"
TARGETS = (STACK, LINUX, SIM)
SENTINEL_SAMPLES = 2
"""Min samples of a test on each boot of the sentinel: the min number that has a variance."""
SIM_TIMEOUT = 300
"""Default seconds of a simulated sample: real time has no effect on the result."""
COUNTED_BOOTS = 3
COUNTED_TIMEOUT = 1800
"""Default seconds of a boot of a kernel that counts, which also waits for a CPU."""
DEPLOYED, BASE, PATCH, COMMIT, BEFORE = "deployed", "base", "patch", "commit", "before"
SOURCE = re.compile(r"deployed|base|patch(?: [1-9][0-9]?)?|commit|before", re.ASCII)
SOURCE_RULE = (
    "deployed (the stack of this service); of a submission base, patch, or `patch 2` for a series up to its second "
    "patch; of a tracked branch commit, or before for the one that it is compared with"
)
NO_PROFILE = "none"
PROFILES = {"locks": "debug.lock.prof.enable", "mutexes": "debug.mutex.prof.enable"}
"""Counters that need the build option lock_profiling, and the tunable that enables each."""
NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?", re.ASCII)
NAME_RULE = "lower-case letters, digits, '_' and '-', at most 64, beginning and ending with a letter or digit"
# Characters that loader.conf and a meson command line can contain without escapes.
TUNABLE = re.compile(r"[a-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_%]+)+", re.ASCII)
TUNABLE_VALUE = re.compile(r"[A-Za-z0-9_.,:/+=-](?:[A-Za-z0-9_.,:/+= -]{0,126}[A-Za-z0-9_.,:/+=-])?", re.ASCII)
TUNABLE_VALUE_RULE = "letters, digits, _ . , : / + = - and spaces inside, at most 128"
BUILD_OPTION = re.compile(r"-D[a-z][a-z0-9_]*=[A-Za-z0-9_.,+-]{0,128}", re.ASCII)


class SizeError(ValueError):
    """The field cannot be set; the message lists the possible ones."""


@dataclass(frozen=True)
class VariantSpec:
    """A variant to compare; `tunables` in the order of the plan, `source` names the source of its build."""

    name: str
    target: str
    build_options: tuple[str, ...]
    tunables: dict[str, str]
    source: str = DEPLOYED


@dataclass(frozen=True)
class SentinelSpec:
    """The sentinel, which shows drift of the machine. `variant` boots once more before the first boot of each server,
    after every `every` boots and after the last, with that many samples of each test. They count in no verdict.
    """

    variant: str
    every: int
    samples: int


@dataclass(frozen=True)
class PlanSpec:
    """A valid plan.

    `samples` are per variant and test over all boots, `discard` per boot and test; `seconds` is the length of a sample,
    `timeout` its time limit in seconds. `stop` is whether all boots are measured, or only until every comparison with
    the baseline is decided, for a change of `margin` percent, with a `confidence` in percent. Boots of a stack have
    `layouts` different layouts in turn; with 0 all have the linker's. `gates` are the limits of the enabled validity
    gates; in a measurement up to `voids_allowed` void samples are repeated, as many as it has samples if that is None.
    `budget` is the time in minutes for which boots and samples are still to be chosen, None if they are given.
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
    gates: Limits
    voids_allowed: int | None
    layouts: int = 0
    budget: float | None = None
    sentinel: SentinelSpec | None = None

    @property
    def groups(self) -> int:
        """The number of combinations of server and topology, each of which needs its own boots."""
        return len({test.boots for test in self.tests})

    def layout_of(self, block: int) -> int | None:
        """Return the layout of all stacks of a block."""
        return block % self.layouts + 1 if self.layouts else None

    @property
    def command_lines(self) -> dict[str, str]:
        """Words for the command line of a kernel, by variant, if it has any."""
        return {v.name: v.tunables[COMMAND_LINE] for v in self.variants if COMMAND_LINE in v.tunables}

    def words_problem(self, testbed: Collection[str] | None) -> str:
        """Return which variant has words for the command line that a testbed does not allow, and why; else an empty
        text.

        A testbed without a list of its own has the default list.
        """
        allowed = command_line.ALLOWED if testbed is None else testbed
        found = ((name, command_line.problem(words, allowed)) for name, words in self.command_lines.items())
        return next((f"{COMMAND_LINE} of variant {name}: {why}" for name, why in found if why), "")

    @property
    def origin(self) -> Origin:
        """How all results of the plan come about; no plan has tests of two origins."""
        return self.tests[0].measure.origin


def read_plan(text: str) -> PlanSpec:
    """Parse the plan in `text` (YAML 1.1, one document). Raises PlanError and nothing else."""
    node = _compose(text)
    if node is None:
        raise PlanError(1, 1, "plan", "is empty: it needs at least name, variants, baseline and tests")
    return _read_plan(Record(Field("plan", node)))


class _Loader(yaml.SafeLoader):
    """Composes documents of limited size: PyYAML scans all open brackets for each token."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.nodes = self.depth = 0

    def fetch_flow_collection_start(self, kind: type[yaml.Token]) -> None:
        if self.flow_level >= PLAN_DEPTH:
            self._refuse()
        super().fetch_flow_collection_start(kind)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.nodes += 1
        self.depth += 1
        if self.nodes > PLAN_NODES or self.depth > PLAN_DEPTH:
            self._refuse()
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def _refuse(self) -> NoReturn:
        problem = f"it has more than {PLAN_NODES} values, or values nested more than {PLAN_DEPTH} deep"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.get_mark())


def _compose(text: str) -> yaml.Node | None:
    """Parse the document of a text, None if it has none. Raises PlanError."""
    if len(text) > PLAN_CHARACTERS:
        raise PlanError(1, 1, "plan", f"is longer than {PLAN_CHARACTERS} characters")
    try:
        return yaml.compose(text, Loader=_Loader)
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


def resized(text: str, sizes: Mapping[str, str]) -> str:
    """Return the text of a plan with other SIZES; read_plan() checks their values. Raises SizeError, or PlanError if
    the text is not YAML.
    """
    for field, value in sizes.items():
        if field not in SIZES or re.fullmatch(r"\d{1,9}", value, re.ASCII) is None:
            raise SizeError(f"{field[:40]}={value[:40]} is none of {', '.join(SIZES)} with a whole number")
        plan = _compose(text)
        if isinstance(plan, yaml.MappingNode):
            text = _with_size(text, plan, field, value)
    return text


def _with_size(text: str, plan: yaml.MappingNode, field: str, value: str) -> str:
    """Return the text with another value, or with the field before all others if the plan does not have it."""
    for key, old in plan.value:
        if key.value == field:
            first, last = old.start_mark.index, old.end_mark.index
            if first < key.end_mark.index:
                raise SizeError(f"{field} is an alias in this plan; write the number itself")
            if field == SENTINEL and isinstance(old, yaml.MappingNode):
                return _with_size(text, old, "every", value)
            blank = " " if text[first - 1] == ":" else ""  # there was no value
            return f"{text[:first]}{blank}{value}{text[last:]}"
    if plan.flow_style:
        place = text.index("{", plan.start_mark.index) + 1
        return f"{text[:place]}{field}: {value}, {text[place:]}"
    place, indent = plan.start_mark.index, " " * plan.start_mark.column
    return f"{text[:place]}{field}: {value}\n{indent}{text[place:]}"


def _reject_syntax(error: yaml.MarkedYAMLError) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    raise PlanError(line, column, "plan", f"is not YAML: {error.problem or error.context}") from None


def _read_plan(plan: Record) -> PlanSpec:
    plan.allow(
        "name", "title", "baseline", "variants", "tests", "samples", "discard", "boots", "seconds", "timeout", "order",
        "stop", "margin", "confidence", "profile", "layouts", "gates", "voids_allowed", "budget",
        SENTINEL,
    )  # fmt: skip
    name = plan.need("name").matching(NAME, NAME_RULE)
    variants = tuple(_read_variant(Record(item)) for item in plan.need("variants").items(1, MOST_VARIANTS))
    variants = _profiled(plan, variants)
    layouts = plan.number("layouts", default=0, lowest=0, highest=MOST_BOOTS)
    variants = _laid_out(plan, variants, layouts)
    plan.need("variants").distinct([variant.name for variant in variants])
    baseline = plan.need("baseline").one_of([variant.name for variant in variants])
    tests = [item.one_of(list(TESTS)) for item in plan.need("tests").items(1, 32)]
    plan.need("tests").distinct(tests)
    origin = _origin(plan, variants, tests)
    emulated = origin != Origin.MEASURED
    stop = plan.choice("stop", default=PLANNED, allowed=(PLANNED, DECIDED))
    samples, boots = _read_size(plan, stop, len(variants)) if origin != Origin.COUNTED else _counted_size(plan)
    times = max(TESTS[test].measure.times for test in tests)
    seconds = plan.number("seconds", default=1, lowest=1, highest=min(600, (LONGEST_TIMEOUT - 1) // times))
    longest = seconds * times
    return PlanSpec(
        name=name,
        title=plan.text("title", default=name, longest=200),
        baseline=baseline,
        variants=variants,
        tests=tuple(TESTS[test] for test in tests),
        samples=samples,
        discard=plan.number("discard", default=0 if emulated else 1, lowest=0, highest=20),
        boots=boots,
        seconds=seconds,
        timeout=plan.number(
            "timeout",
            default=max(_TIMEOUTS[origin], longest + 10),
            lowest=longest + 1,
            highest=LONGEST_TIMEOUT,
        ),
        order=plan.choice("order", default="abba", allowed=ORDERS),
        stop=stop,
        margin=plan.decimal("margin", default=2.0, lowest=0.1, highest=50.0),
        confidence=plan.decimal("confidence", default=95.0, lowest=80.0, highest=99.9),
        gates=_no_gates(plan, origin) if emulated else _read_gates(plan.get("gates")),
        voids_allowed=voids.number(0, MOST_SAMPLES) if (voids := plan.get("voids_allowed")) else None,
        layouts=layouts,
        budget=_read_budget(plan, stop),
        sentinel=_read_sentinel(plan.get(SENTINEL), variants, baseline),
    )


def _origin(plan: Record, variants: tuple[VariantSpec, ...], tests: list[str]) -> Origin:
    """Return the origin of all results of a plan: results of two origins are never compared."""
    if origin_of(tests[0]) == Origin.COUNTED:
        return _counted(plan, variants, tests)
    simulated = variants[0].target == SIM
    for item, variant in zip(plan.need("variants").items(1, len(variants)), variants, strict=True):
        if variant.target == LINUX and variant.source != DEPLOYED:
            Record(item).need("source").reject(f"is for target {STACK}; of target {LINUX} only counted tests have it")
        if (variant.target == SIM) != simulated:
            item.reject(f"has target {variant.target}, beside others: a plan has target {SIM} everywhere or nowhere")
    origin = Origin.SIMULATED if simulated else Origin.MEASURED
    for item, test in zip(plan.need("tests").items(1, len(tests)), tests, strict=True):
        if (found := TESTS[test].measure.origin) != origin:
            is_for = "for other targets" if simulated else f"for target {SIM}"
            item.reject(f"is {found.value}, {is_for} only; the variants of this plan have target {variants[0].target}")
    return origin


_TIMEOUTS = {Origin.MEASURED: 0, Origin.SIMULATED: SIM_TIMEOUT, Origin.COUNTED: COUNTED_TIMEOUT}


def _counted(plan: Record, variants: tuple[VariantSpec, ...], tests: list[str]) -> Origin:
    """Check a plan that counts: kernels that are built from sources, one sample on each boot."""
    for item, variant in zip(plan.need("variants").items(1, len(variants)), variants, strict=True):
        if variant.target != LINUX or variant.source == DEPLOYED:
            item.reject(f"is not counted: each variant of such a plan has target {LINUX} and a source, such as {BASE}")
        if variant.tunables:
            item.reject("has tunables: a kernel that counts has none, but `build` for its options")
    for item, test in zip(plan.need("tests").items(1, len(tests)), tests, strict=True):
        if origin_of(test) != Origin.COUNTED:
            item.reject(f"is not counted, as {tests[0]} is: results of two origins are never compared")
    for name in ("discard", SENTINEL, "budget", "stop"):
        if given := plan.get(name):
            given.reject("is for measurements: a boot that counts gives the same result each time")
    return Origin.COUNTED


def _counted_size(plan: Record) -> tuple[int, int]:
    """Samples and boots of a plan that counts: a boot, which has a seed of its own, is one sample."""
    boots = plan.number("boots", default=COUNTED_BOOTS, lowest=1, highest=MOST_BOOTS)
    if (samples := plan.get("samples")) and samples.number(1, MOST_SAMPLES) != boots:
        samples.reject(f"differs from the {boots} boots: a boot that counts is one sample")
    return boots, boots


def _no_gates(plan: Record, origin: Origin) -> Limits:
    if gates := plan.get("gates"):
        gates.reject(f"are for measurements: nothing disturbs what is {origin.value}")
    return {}


def _read_gates(given: Field | None) -> Limits:
    """The limits of a plan's gates, with defaults for missing ones; `off` disables one of them or all."""
    if given is None:
        return DEFAULT_LIMITS
    if isinstance(given.node, yaml.ScalarNode):
        given.one_of([OFF])
        return {}
    gates = Record(given)
    gates.allow(*BY_NAME)
    limits = dict(DEFAULT_LIMITS)
    for key, value in gates.fields():
        limits.pop(key.scalar(), None)
        if value.node.value != OFF:
            limits[key.scalar()] = value.decimal(0, MOST_LIMIT)
    return limits


def _read_budget(plan: Record, stop: str) -> float | None:
    """Minutes for which boots and samples are to be chosen, None if they are given."""
    given = plan.get("budget")
    if given is None:
        return None
    if stop == DECIDED:
        given.reject(f"is for plans that measure all boots; with `stop: {DECIDED}` give the most `boots`")
    minutes = given.minutes(1, MOST_MINUTES)
    sizes = [field for name in ("boots", "samples") if (field := plan.get(name))]
    if len(sizes) == 1:
        sizes[0].reject("has a budget beside it: give both boots and samples, or neither to have them chosen")
    return None if sizes else minutes


def _read_sentinel(given: Field | None, variants: tuple[VariantSpec, ...], baseline: str) -> SentinelSpec | None:
    """The sentinel of a plan, which may be just the number of boots between two of its own."""
    if given is None:
        return None
    if variants[0].target == SIM:
        given.reject(f"is for measurements: with target {SIM} nothing drifts")
    most = MOST_BOOTS * MOST_VARIANTS
    if isinstance(given.node, yaml.ScalarNode):
        return SentinelSpec(baseline, given.number(1, most), SENTINEL_SAMPLES)
    sentinel = Record(given)
    sentinel.allow("variant", "every", "samples")
    variant = sentinel.get("variant")
    return SentinelSpec(
        variant=variant.one_of([known.name for known in variants]) if variant else baseline,
        every=sentinel.need("every").number(1, most),
        samples=sentinel.number("samples", default=SENTINEL_SAMPLES, lowest=1, highest=MOST_SAMPLES),
    )


def _read_size(plan: Record, stop: str, variants: int) -> tuple[int, int]:
    """Samples and boots of each variant, or their max if the run stops when it is decided."""
    if stop == PLANNED:
        if field := plan.get("margin") or plan.get("confidence"):
            field.reject(f"is for `stop: {DECIDED}`; pages compare with any margin and confidence")
        samples = plan.number("samples", default=10, lowest=1, highest=MOST_SAMPLES)
        boots = plan.number("boots", default=min(2, samples), lowest=1, highest=MOST_BOOTS)
    else:
        if variants < 2:
            plan.need("stop").reject("needs two variants at least: there is nothing to decide about one")
        boots = plan.number("boots", default=MOST_DECIDING_BOOTS, lowest=FEWEST_DECIDING_BOOTS, highest=MOST_BOOTS)
        samples = plan.number("samples", default=2 * boots, lowest=1, highest=MOST_SAMPLES)
    if boots > samples:
        place = plan.get("boots") or plan.need("samples")
        place.reject(f"is {boots} boots, more than the {samples} samples: every boot must measure something")
    return samples, boots


def _profiled(plan: Record, variants: tuple[VariantSpec, ...]) -> tuple[VariantSpec, ...]:
    """The variants with the plan's profile: all stacks count events, because counting slows them down."""
    wanted = plan.choice("profile", default=NO_PROFILE, allowed=(NO_PROFILE, *PROFILES))
    if wanted == NO_PROFILE:
        return variants
    if all(variant.target != "stack" for variant in variants):
        plan.need("profile").reject("is for target stack, and no variant has that")
    return tuple(_counting(variant, PROFILES[wanted]) if variant.target == "stack" else variant for variant in variants)


def _counting(variant: VariantSpec, tunable: str) -> VariantSpec:
    counting = _built_with(variant, "lock_profiling", "true")
    return replace(counting, tunables={**variant.tunables, tunable: "1"})


def _laid_out(plan: Record, variants: tuple[VariantSpec, ...], layouts: int) -> tuple[VariantSpec, ...]:
    """The variants with that many layouts of each stack to boot."""
    if not layouts:
        return variants
    if all(variant.target != "stack" for variant in variants):
        plan.need("layouts").reject("is for target stack, and no variant has that")
    return tuple(
        _built_with(variant, "layouts", str(layouts)) if variant.target == "stack" else variant for variant in variants
    )


def _built_with(variant: VariantSpec, option: str, value: str) -> VariantSpec:
    """The variant with a build option that its plan implies, which overrides its own value."""
    others = (given for given in variant.build_options if not given.startswith(f"-D{option}="))
    return replace(variant, build_options=(*others, f"-D{option}={value}"))


def _read_variant(variant: Record) -> VariantSpec:
    variant.allow("name", "target", "source", "build", "tunables")
    target = variant.need("target").one_of(TARGETS)
    given = variant.get("tunables")
    source = variant.get("source")
    options = variant.get("build")
    always = ("-Dsim=true",) if target == SIM else ()
    return VariantSpec(
        name=variant.need("name").matching(NAME, NAME_RULE),
        target=target,
        build_options=(
            *(
                _read_option(item, kernel=target == LINUX and source is not None)
                for item in (options.items(0, 32) if options else [])
            ),
            *always,
        ),
        tunables=_read_tunables(given, target) if given else {},
        source=source.matching(SOURCE, SOURCE_RULE) if source else DEPLOYED,
    )


def _read_option(item: Field, *, kernel: bool) -> str:
    """Return an option of the build: meson's, or of a kernel that is built."""
    if not kernel:
        return item.matching(BUILD_OPTION, "meson options such as -Dbuildtype=release")
    if not configurations.is_word(word := item.scalar()):
        item.reject(f"is not {configurations.WORD_RULE}")
    return word


def _read_tunables(given: Field, target: str) -> dict[str, str]:
    """Lines of a stack's loader.conf, or knobs of a Linux kernel; in the order of the plan."""
    tunables = {}
    for key, value in Record(given, most=64).fields():
        if target == LINUX:
            tunables[key.scalar()] = read_knob(key, value, _tunable_value)
        else:
            name = key.matching(TUNABLE, "the name of a tunable such as net.isr.dispatch")
            if name in BOOT_KNOBS:
                key.reject(f"has {name}, which is a knob of target linux")
            tunables[name] = _tunable_value(value)
    return tunables


def _tunable_value(value: Field) -> str:
    return value.matching(TUNABLE_VALUE, TUNABLE_VALUE_RULE)
