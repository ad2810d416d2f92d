# SPDX-License-Identifier: BSD-2-Clause
"""Plans are read, or rejected with the position and the correction."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.inputlimits import PLAN_CHARACTERS
from perfweb.lab.origins import Origin
from perfweb.measuring.planner import estimate, plan_boots
from perfweb.runs import costs
from perfweb.runs.catalogue import TESTS
from perfweb.runs.planfile import SIZES, PlanError, PlanSpec, SentinelSpec, SizeError, read_plan, resized
from playbooks.module_utils.gates import DEFAULT_LIMITS

PLANS = Path(__file__).parents[3] / "perfweb" / "runs" / "plans"
GOOD = """\
name: two
baseline: old
variants:
  - name: old
    target: stack
    build: [-Dbuildtype=release]
    tunables: {net.isr.dispatch: deferred, debug.mpsafenet: 1}
  - {name: new, target: linux}
tests: [tcp.rr/host-host/ipv4]
"""
SEARCHED = GOOD.replace("tcp.rr", "udp.ndr")
IN_BRACES = "{name: one, baseline: new,\n variants: [{name: new, target: linux}], tests: [tcp.rr/host-host/ipv4]}"
WITHOUT_STACK = """\
name: one
baseline: new
variants:
  - {name: new, target: linux}
tests: [tcp.rr/host-host/ipv4]
"""

SIMULATED = """\
name: one
baseline: new
variants:
  - {name: new, target: sim, source: patch}
  - {name: old, target: sim, source: base, build: [-Db_lto=true]}
tests: [simulated.tcp.2/host-host/ipv4]
"""


COUNTED = """\
name: one
baseline: base
variants:
  - {name: base, target: linux, source: base}
  - {name: patch, target: linux, source: patch}
tests: [counted.tcp.rr/local/ipv4, counted.udp.forward/routed/ipv6]
"""


def test_a_plan_that_counts() -> None:
    plan = read_plan(COUNTED)
    assert plan.origin == Origin.COUNTED
    assert (plan.boots, plan.samples, plan.discard, plan.timeout, plan.gates) == (3, 3, 0, 1800, {})
    assert plan.groups == 1
    assert read_plan(COUNTED + "boots: 5\n").samples == 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (COUNTED.replace(", source: base", ""), "target linux and a source"),
        (COUNTED.replace("linux", "stack"), "target linux and a source"),
        (COUNTED.replace("source: patch", "source: patch, tunables: {net.core.somaxconn: 4}"), "has tunables"),
        (COUNTED.replace("source: patch", "source: patch, build: [-Da=b]"), "is not the name of a configuration"),
        (
            COUNTED.replace("source: patch", "source: patch, build: [CONFIG_NET=m]"),
            "is not the name of a configuration",
        ),
        (COUNTED.replace("counted.udp.forward/routed/ipv6", "tcp.rr/host-host/ipv4"), "results of two origins"),
        (COUNTED + "samples: 6\n", "a boot that counts is one sample"),
        (COUNTED + "stop: decided\n", "the same result each time"),
        (COUNTED + "sentinel: 2\n", "the same result each time"),
        (COUNTED + "gates: off\n", "nothing disturbs what is counted"),
        (GOOD.replace("target: linux", "target: linux, source: patch"), "of target linux only counted tests have it"),
    ],
)
def test_what_does_not_count_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        read_plan(text)


def test_a_plan_is_simulated_or_measured() -> None:
    plan = read_plan(SIMULATED)
    assert plan.origin == Origin.SIMULATED
    assert read_plan(GOOD).origin == Origin.MEASURED
    assert [variant.build_options for variant in plan.variants] == [("-Dsim=true",), ("-Db_lto=true", "-Dsim=true")]
    assert (plan.discard, plan.timeout, plan.gates) == (0, 300, {})


def test_a_search_has_the_time_of_all_its_trials() -> None:
    assert read_plan(SEARCHED).timeout == 30
    assert read_plan(SEARCHED.replace("udp.ndr", "udp.loaded")).timeout == 34
    one, many = read_plan(GOOD), read_plan(SEARCHED)
    assert costs.of_block(many, 1) > costs.of_block(one, 1) + 20
    short, long = (estimate(plan_boots(plan, 0), plan.seconds) for plan in (one, many))
    assert long > 2 * (one.samples + one.boots) * 20 > short


def test_fields_and_defaults() -> None:
    plan = read_plan(GOOD)
    assert (plan.name, plan.title, plan.baseline, plan.order) == ("two", "two", "old", "abba")
    assert (plan.samples, plan.boots, plan.discard, plan.seconds, plan.timeout) == (10, 2, 1, 1, 11)
    assert plan.variants[0].tunables == {"net.isr.dispatch": "deferred", "debug.mpsafenet": "1"}
    assert plan.variants[0].build_options == ("-Dbuildtype=release",)
    assert plan.variants[1].target == "linux"
    assert plan.tests == (TESTS["tcp.rr/host-host/ipv4"],)


@pytest.mark.parametrize("source", ["deployed", "base", "patch", "patch 2"])
def test_source_of_a_stack(source: str) -> None:
    plan = read_plan(GOOD.replace("target: stack", f"target: stack\n    source: {source}"))
    assert plan.variants[0].source == source
    assert read_plan(GOOD).variants[0].source == "deployed"


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_plans_are_good(path: Path) -> None:
    assert read_plan(path.read_text(encoding="utf-8")).name == path.stem


@given(st.sampled_from(sorted(PLANS.glob("*.yaml"))), st.dictionaries(st.sampled_from(SIZES), st.integers(3, 9)))
def test_a_plan_is_cut_to_size_and_stays_the_same_plan(path: Path, sizes: dict[str, int]) -> None:
    text = path.read_text(encoding="utf-8")
    sizes |= {"samples": 50, "timeout": 600}
    plan = read_plan(text)
    if plan.origin == Origin.SIMULATED:
        sizes.pop("sentinel", None)
    expected: dict[str, Any] = dict(sizes)
    if "sentinel" in sizes:
        expected["sentinel"] = SentinelSpec(plan.baseline, sizes["sentinel"], 2)
    cut = read_plan(resized(text, {field: str(value) for field, value in sizes.items()}))
    assert cut == replace(plan, **expected)


@pytest.mark.parametrize(
    "text",
    [
        IN_BRACES.replace("name", "boots: 3, name", 1),
        IN_BRACES.replace("{name", '{"boots":3,"name"', 1),
        f"# {{\n---\n{IN_BRACES.replace(']}', '],}')}",
        " " + WITHOUT_STACK.replace("\n", "\n "),
        f"{WITHOUT_STACK}boots: '3' # enough\n...\n",
        f"boots:\n{WITHOUT_STACK}",
    ],
)
def test_a_plan_in_any_style_is_cut_to_size(text: str) -> None:
    plan = read_plan(resized(text, {"boots": "4", "seconds": "2"}))
    assert (plan.name, plan.boots, plan.seconds, plan.samples) == ("one", 4, 2, 10)


def test_a_size_that_is_written_elsewhere_in_the_plan_is_left_alone() -> None:
    with pytest.raises(SizeError, match="boots is an alias"):
        resized(f"seconds: &few 3\nboots: *few\n{WITHOUT_STACK}", {"boots": "4"})


@given(st.text())
def test_no_text_breaks_the_setting_of_sizes(text: str) -> None:
    with contextlib.suppress(PlanError):
        assert isinstance(resized(text, {"boots": "4"}), str)


@pytest.mark.parametrize(("field", "value"), [("order", "abba"), ("boots", "many"), ("boots", "1\nname: x"), ("", "")])
def test_what_is_no_size_is_refused(field: str, value: str) -> None:
    with pytest.raises(
        SizeError, match="is none of boots, samples, discard, seconds, timeout, sentinel with a whole number"
    ):
        resized(GOOD, {field: value})


def test_a_sentinel_is_the_baseline_unless_the_plan_names_another() -> None:
    assert read_plan(GOOD).sentinel is None
    assert read_plan(GOOD + "sentinel: 4\n").sentinel == SentinelSpec("old", 4, 2)
    assert read_plan(GOOD + "sentinel: {variant: new, every: 6, samples: 3}\n").sentinel == SentinelSpec("new", 6, 3)


def test_a_sentinel_is_set_like_a_size_and_keeps_what_else_it_is() -> None:
    for line, becomes in [
        ("", SentinelSpec("old", 9, 2)),
        ("sentinel: 4\n", SentinelSpec("old", 9, 2)),
        ("sentinel: {variant: new, every: 6}\n", SentinelSpec("new", 9, 2)),
        ("sentinel:\n  samples: 3\n  every: 6\n", SentinelSpec("old", 9, 3)),
    ]:
        plan = read_plan(resized(GOOD + line, {"sentinel": "9", "samples": "8"}))
        assert (plan.sentinel, plan.samples) == (becomes, 8)


def test_a_plan_that_stops_when_it_is_decided() -> None:
    plan = read_plan(GOOD + "stop: decided\nmargin: 1.5\nconfidence: 99\n")
    assert (plan.stop, plan.margin, plan.confidence, plan.boots, plan.samples) == ("decided", 1.5, 99, 20, 40)
    assert read_plan(GOOD).stop == "planned"


def test_gates_are_those_of_the_table_unless_the_plan_sets_others() -> None:
    plan = read_plan(GOOD)
    assert (plan.gates, plan.voids_allowed) == (DEFAULT_LIMITS, None)
    plan = read_plan(GOOD + "gates: {steal: 0.02, foreign: off, retransmits: 0}\nvoids_allowed: 3\n")
    kept = {name: limit for name, limit in DEFAULT_LIMITS.items() if name != "foreign"}
    assert plan.gates == {**kept, "steal": 0.02, "retransmits": 0.0}
    assert plan.voids_allowed == 3
    assert read_plan(GOOD + "gates: off\n").gates == {}


def test_a_profile_is_counted_by_every_stack() -> None:
    old, new = read_plan(GOOD + "profile: locks\n").variants
    assert old.build_options == ("-Dbuildtype=release", "-Dlock_profiling=true")
    assert old.tunables["debug.lock.prof.enable"] == "1"
    assert (new.build_options, new.tunables) == ((), {})
    old, _ = read_plan(GOOD.replace("-Dbuildtype=release", "-Dlock_profiling=false") + "profile: mutexes\n").variants
    assert old.build_options == ("-Dlock_profiling=true",)
    assert old.tunables["debug.mutex.prof.enable"] == "1"


def test_layouts_are_built_for_every_stack_and_booted_in_turn() -> None:
    plan = read_plan(GOOD + "layouts: 3\n")
    assert plan.variants[0].build_options == ("-Dbuildtype=release", "-Dlayouts=3")
    assert plan.variants[1].build_options == ()
    assert [plan.layout_of(block) for block in range(5)] == [1, 2, 3, 1, 2]
    assert read_plan(GOOD).layout_of(3) is None


def test_scalars_are_the_text_that_was_written() -> None:
    """YAML 1.1 would make `on` a boolean and 0x10 sixteen; a tunable gets the text of the plan."""
    plan = read_plan(GOOD.replace("debug.mpsafenet: 1", "a.b: on, a.c: 0x10, a.d: from=10.9.0.2 len=46"))
    given = {"net.isr.dispatch": "deferred", "a.b": "on", "a.c": "0x10", "a.d": "from=10.9.0.2 len=46"}
    assert plan.variants[0].tunables == given


@pytest.mark.parametrize(
    ("text", "line", "column", "field", "advice"),
    [
        ("", 1, 1, "plan", "needs at least name"),
        ("- 1\n", 1, 1, "plan", "must be a mapping"),
        ("name: [\n", 2, 1, "plan", "not YAML"),
        ("name: a\n\0", 2, 1, "plan", "forbids"),
        ("x" * (PLAN_CHARACTERS + 1), 1, 1, "plan", "longer than"),
        (GOOD + "colour: red\n", 10, 1, "plan", "unknown field 'colour'"),
        (GOOD + "name: again\n", 10, 1, "plan", "second time"),
        (GOOD + "sampels: 3\n", 10, 1, "plan", "did you mean 'samples'"),
        (GOOD + "samples: 0\n", 10, 10, "samples", "from 1 to 1000"),
        (GOOD + "samples: many\n", 10, 10, "samples", "whole number"),
        (GOOD + "samples: [1]\n", 10, 10, "samples", "single value"),
        (GOOD + "samples: 4\nboots: 5\n", 11, 8, "boots", "more than the 4 samples"),
        (GOOD + "seconds: 5\ntimeout: 5\n", 11, 10, "timeout", "from 6 to 3600"),
        (SEARCHED + "timeout: 20\n", 10, 10, "timeout", "from 21 to 3600"),
        (SEARCHED + "seconds: 180\n", 10, 10, "seconds", "from 1 to 179"),
        (GOOD + "stop: never\n", 10, 7, "stop", "planned, decided"),
        (GOOD + "stop: decided\nboots: 2\n", 11, 8, "boots", "from 3 to 50"),
        (GOOD + "stop: decided\nsamples: 10\n", 11, 10, "samples", "is 20 boots, more than the 10 samples"),
        (GOOD + "stop: decided\nmargin: 0\n", 11, 9, "margin", "a number from 0.1 to 50"),
        (GOOD + "stop: decided\nconfidence: .nan\n", 11, 13, "confidence", "a number from 80 to 99.9"),
        (GOOD + "margin: 1\n", 10, 9, "margin", "for `stop: decided`"),
        (GOOD.replace("  - {name: new, target: linux}\n", "") + "stop: decided\n", 9, 7, "stop", "needs two variants"),
        (GOOD + "gates: none\n", 10, 8, "gates", "allowed: off"),
        (GOOD + "gates: [steal]\n", 10, 8, "gates", "must be a mapping"),
        (GOOD + "gates: {stael: 1}\n", 10, 9, "gates", "did you mean 'steal'"),
        (GOOD + "gates: {steal: 5 %}\n", 10, 16, "gates.steal", "a number from 0 to"),
        (GOOD + "gates: {steal: {off: 1}}\n", 10, 16, "gates.steal", "single value"),
        (GOOD + "voids_allowed: all\n", 10, 16, "voids_allowed", "from 0 to 1000"),
        (GOOD + "order: sorted\n", 10, 8, "order", "abba, random"),
        (GOOD + "profile: cpu\n", 10, 10, "profile", "none, locks, mutexes"),
        (WITHOUT_STACK + "profile: locks\n", 6, 10, "profile", "no variant has that"),
        (WITHOUT_STACK + "layouts: 2\n", 6, 10, "layouts", "no variant has that"),
        (GOOD + "layouts: 51\n", 10, 10, "layouts", "from 0 to 50"),
        (GOOD + "sentinel: {every: 4, variant: nwe}\n", 10, 31, "sentinel.variant", "did you mean 'new'"),
        (GOOD + "sentinel: {every: 0}\n", 10, 19, "sentinel.every", "a whole number from 1 to 800"),
        (GOOD + "sentinel: 0\n", 10, 11, "sentinel", "a whole number from 1 to 800"),
        (GOOD + "sentinel: {every: 4, samples: 0}\n", 10, 31, "sentinel.samples", "from 1 to 1000"),
        (GOOD + "sentinel: {variant: new}\n", 10, 11, "sentinel", "lacks the field 'every'"),
        (GOOD + "sentinel: {evrey: 4}\n", 10, 12, "sentinel", "did you mean 'every'"),
        (GOOD + "sentinel: [4]\n", 10, 11, "sentinel", "must be a mapping"),
        (SIMULATED + "sentinel: 4\n", 7, 11, "sentinel", "with target sim nothing drifts"),
        (GOOD + "title: ''\n", 10, 8, "title", "1 to 200 characters"),
        (GOOD.replace("name: two", "title: two"), 1, 1, "plan", "lacks the field 'name'"),
        (GOOD.replace("baseline: old", "baseline: older"), 2, 11, "baseline", "did you mean 'old'"),
        (GOOD.replace("tcp.rr", "tcp.rx"), 9, 9, "tests[0]", "did you mean 'tcp.rr/host-host/ipv4'"),
        (GOOD.replace("ipv4]", "ipv4, tcp.rr/host-host/ipv4]"), 9, 32, "tests[1]", "appear once"),
        (GOOD.replace("name: new", "name: old"), 8, 5, "variants[1]", "appear once"),
        (GOOD.replace("target: linux", "target: bsd"), 8, 25, "variants[1].target", "stack, linux, sim"),
        (GOOD.replace("name: old\n", "name: Old!\n"), 4, 11, "variants[0].name", "lower-case"),
        (GOOD.replace("deferred", "'a\"b'"), 7, 34, "variants[0].tunables.net.isr.dispatch", "letters, digits"),
        (GOOD.replace("deferred", "' a'"), 7, 34, "variants[0].tunables.net.isr.dispatch", "spaces inside"),
        (GOOD.replace("net.isr.dispatch", "rm -rf"), 7, 16, "variants[0].tunables", "name of a tunable"),
        (GOOD.replace("-Dbuildtype", "--cross-file"), 6, 13, "variants[0].build[0]", "meson options"),
        (SIMULATED.replace("old, target: sim", "old, target: stack"), 5, 5, "variants[1]", "everywhere or nowhere"),
        (SIMULATED.replace("simulated.tcp.2", "tcp.rr"), 6, 9, "tests[0]", "is measured, for other targets only"),
        (GOOD.replace("tcp.rr", "simulated.tcp.2"), 9, 9, "tests[0]", "is simulated, for target sim only"),
        (SIMULATED + "gates: {steal: 5}\n", 7, 8, "gates", "nothing disturbs what is simulated"),
        (GOOD.replace("linux}", "linux, tunables: {a.b: 1}}"), 8, 43, "variants[1].tunables", "no knob of target"),
    ],
)  # fmt: skip
def test_mistake_is_shown_with_its_place(text: str, line: int, column: int, field: str, advice: str) -> None:
    with pytest.raises(PlanError) as caught:
        read_plan(text)
    assert advice in str(caught.value)
    assert (caught.value.field, caught.value.line, caught.value.column) == (field, line, column)


@pytest.mark.parametrize("written", ["10", "010", "'10'", "!!str 10", "!!int '10'"])
def test_a_number_is_its_decimal_digits(written: str) -> None:
    """YAML 1.1 would read 010 as eight."""
    assert read_plan(f"{GOOD}samples: {written}\n").samples == 10


@pytest.mark.parametrize(
    "written",
    [
        "0o10",
        "0x10",
        "1_0",
        "1:30",
        "10.0",
        "1e1",
        "+10",
        "-1",
        "true",
        "~",
        "",
        "1 0",
        "\uff11\uff10",
        ".inf",
        "9" * 30,
    ],
)
def test_other_numbers_of_yaml_are_refused(written: str) -> None:
    with pytest.raises(PlanError) as caught:
        read_plan(f"{GOOD}samples: {written}\n")
    assert (caught.value.field, caught.value.line) == ("samples", 10)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: f"\ufeff{text}",
        lambda text: f"---\n{text}...\n",
        lambda text: f"%YAML 1.2\n---\n{text}",
        lambda text: text.replace("{net", "&t {net"),
    ],
)
def test_forms_of_yaml_are_the_same_plan(change: Callable[[str], str]) -> None:
    assert read_plan(change(GOOD)) == read_plan(GOOD)


LAUGHS = "a: &a [x]\n" + "".join(f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n" for old, new in pairwise("abcdefgh"))


@pytest.mark.parametrize(
    "text", [LAUGHS, f"{GOOD}---\n{GOOD}", GOOD.replace("  - name: old", "  - <<: &v {}\n    name: old")]
)
def test_one_plain_mapping_is_a_plan(text: str) -> None:
    with pytest.raises(PlanError):
        read_plan(text)


@pytest.mark.parametrize(
    "text", ["[" * 5000, "a: &a [*a]", "? {a: 1}\n: 2", "name: !!python/object:os.system x", "%YAML 9.9\n---\na"]
)
def test_hostile_yaml(text: str) -> None:
    with pytest.raises(PlanError):
        read_plan(text)


def plan_or_error(text: str) -> PlanSpec | PlanError:
    try:
        return read_plan(text)
    except PlanError as error:
        return error


def plan_or_error_with_line(text: str) -> None:
    outcome = plan_or_error(text)
    if isinstance(outcome, PlanError):
        assert 1 <= outcome.line <= len(text.splitlines()) + 1
        assert outcome.column >= 1


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    plan_or_error_with_line(text)


@given(st.data())
def test_any_change_of_a_good_plan(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(GOOD)))
    end = data.draw(st.integers(start, min(len(GOOD), start + 20)))
    plan_or_error_with_line(GOOD[:start] + data.draw(st.text(max_size=10)) + GOOD[end:])


def test_a_kernel_that_counts_has_configurations_and_options() -> None:
    text = COUNTED.replace("source: patch", "source: patch, build: [debug, CONFIG_TCP_CONG_BBR=y, CONFIG_NR_CPUS=2]")
    assert read_plan(text).variants[1].build_options == ("debug", "CONFIG_TCP_CONG_BBR=y", "CONFIG_NR_CPUS=2")
