# SPDX-License-Identifier: BSD-2-Clause
"""The bench of knobs: its cells, its evaluation of samples, and one real cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from tests.stack import knobs, knobs_page, knobs_samples, results, strategies
from tests.stack.control import Control, Look
from tests.stack.knobs_page import Cell, Measured, Sign
from tests.stack.knobs_samples import Samples
from tests.stack.measures import Bench, Row, Sample
from tests.stack.strategies import Arm, Known, Strategy
from tests.stack.topology import Topology

CHOICES = {"unix.locking": ("giant", "single", "pair"), "if.<name>.transmit": ("inline", "deferred")}
STACK = Known(CHOICES, {"unix.locking": "single", "if.<name>.transmit": "inline", "debug.mpsafenet": "1"})
FASTER = tuple((100.0 + i, 120.0 + i) for i in range(5))
ALIKE = tuple((100.0 + i % 3, 100.0 + i % 2) for i in range(5))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bench of three knobs."""
    monkeypatch.setattr(strategies, "STRATEGIES", (
        Strategy("unix.locking", ("UNIX", "UNIX 1:1")),
        Strategy("if.<name>.transmit", ("forward",)),
        Strategy("debug.mpsafenet", ("UNIX",), ("0",), {"fd.lock": "mutex"}),
    ))  # fmt: skip


def test_a_tunable_is_a_choice_if_it_may_be_several_words() -> None:
    types = {"unix.locking": " giant single", "unix.sendspace": " 1-100", "ctl.path": "", "if.tap0.monitor": " off top"}
    values = {"unix.locking": " single", "if.tap0.monitor": " off", "ctl.path": " stack.ctl", "kern.up": " 7"}
    read = strategies.parse_known(types, values)
    assert read.choices == {"unix.locking": ("giant", "single"), "if.<name>.monitor": ("off", "top")}
    assert read.defaults == {"unix.locking": "single", "if.<name>.monitor": "off", "ctl.path": "stack.ctl"}


@pytest.mark.usefixtures("few")
def test_every_value_but_the_default_is_compared_with_it_where_it_can_act() -> None:
    found = {(group[0].workload, group[0].base): group for group in strategies.groups(STACK)}
    assert [arm.label for arm in found["UNIX", ()]] == [None, "unix.locking=giant", "unix.locking=pair"]
    assert [arm.label for arm in found["UNIX 1:1", ()]] == [None, "unix.locking=giant", "unix.locking=pair"]
    beside = (("fd.lock", "mutex"),)
    assert [arm.label for arm in found["UNIX", beside]] == [None, "debug.mpsafenet=0"]
    assert found["UNIX", beside][1].row().tunables == {"fd.lock": "mutex", "debug.mpsafenet": "0"}
    transmit = found["forward", ()][1].row().tunables
    assert (transmit["if.mem0.transmit"], transmit["if.mem1.transmit"]) == ("deferred", "deferred")
    assert len(found) == 4


@pytest.mark.usefixtures("few")
def test_knobs_that_are_named_are_measured_alone() -> None:
    assert [[arm.label for arm in group] for group in strategies.groups(STACK, ["transmit"])] == [
        [None, "if.<name>.transmit=deferred"]
    ]


def test_a_tunable_that_is_gone_is_named() -> None:
    with pytest.raises(KeyError, match=r"the stack has no tunable unix\.gone"):
        STACK.values(Strategy("unix.gone", ("UNIX",)))


def test_every_choice_of_the_stack_is_measured_or_listed_as_no_strategy(topology: Topology) -> None:
    stack = strategies.known(topology)
    for strategy in strategies.STRATEGIES:
        assert stack.values(strategy), f"{strategy.knob} has nothing but its default"
    named = {strategy.knob for strategy in strategies.STRATEGIES} | set(strategies.NO_STRATEGY)
    unknown = set(stack.choices) - named
    assert not unknown, f"STRATEGIES or NO_STRATEGY of tests/stack/strategies.py should have {unknown}"


@pytest.mark.usefixtures("few")
def test_a_cell_has_the_rounds_in_which_both_sides_were_measured() -> None:
    group = next(group for group in strategies.groups(STACK) if group[0].workload == "UNIX" and not group[0].base)
    default, giant, pair = group
    samples = Samples({default: {0: 1.0, 1: 2.0, 3: 9.0}, giant: {0: 3.0, 2: 5.0, 3: 4.0}, pair: {1: 5.0}})
    of_giant, of_pair = knobs_samples.cells([group], samples)
    assert (of_giant.label, of_giant.pairs) == ("unix.locking=giant", ((1.0, 3.0), (9.0, 4.0)))
    assert (of_pair.label, of_pair.pairs, of_pair.text()) == ("unix.locking=pair", ((2.0, 5.0),), "failed")


def test_a_cell_has_a_proven_or_the_detectable_difference() -> None:
    assert Cell("a=b", {}, "UNIX", FASTER).text().startswith("**+19.")
    assert Cell("a=b", {}, "UNIX", ALIKE).text() == "none (2)"
    assert Cell("a=b", {}, "UNIX", ((1.0, 1.0), (1.0, 99.0))).text() == "none (>100)"
    assert Cell("a=b", {}, "UNIX", ()).text() == "failed"


def test_the_table_has_a_line_for_each_strategy_and_the_defaults_first() -> None:
    table = knobs_page.table_of_cells(
        [Cell("a=b", {}, "UNIX", ALIKE), Cell("c=d", {"e": "f"}, "forward", ALIKE)],
        {"UNIX": "1000/s", "TCP 1": "Gbit/s", "forward": "Mpps/core"},
    )
    assert table.splitlines() == [
        "|  | UNIX | forward |",
        "| --- | --- | --- |",
        "| the default | 101 1000/s |  |",
        "| `a=b` | none (2) |  |",
        "| `c=d` beside `e=f` |  | none (2) |",
    ]


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        (FASTER, "as published"),
        (tuple((b, a) for a, b in FASTER), "opposite sign"),
        (ALIKE, "not proven"),
        ((), "failed"),
    ],
)
def test_a_sign_is_the_published_one_or_not(pairs: tuple[tuple[float, float], ...], verdict: str) -> None:
    assert Sign("x", "+5 %", Cell("x", {}, "UNIX", pairs)).verdict() == verdict


def test_the_page_states_what_chance_would_have_proven() -> None:
    cells = [Cell(f"a={i}", {}, "UNIX", ALIKE) for i in range(39)] + [Cell("a=b", {}, "UNIX", FASTER)]
    assert knobs_page.chances(cells) == (
        "Of 40 cells 1 have a proven difference; if no knob had an effect, chance alone would show about 2."
    )
    text = knobs_page.page(cells, [], {"UNIX": "1000/s"}, Measured(5, 30, 0.4, 15.2, "no noise"))
    assert "in 15 minutes" in text
    assert "5 rounds of the table, 30 pairs of boots" in text
    assert "no noise." in text


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--rounds", "1"], "an interval needs two rounds"),
        (["--write", "--signs"], "--write makes the whole page"),
        (["teleport"], "no such knob; there are: debug.mpsafenet"),
    ],
)
def test_what_cannot_be_measured_is_refused(argv: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        knobs.options(argv)
    assert why in capsys.readouterr().err


def test_one_knob_is_measured_for_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(results, "BENCH", tmp_path)
    assert knobs.main(["--rounds", "2", "--seconds", "0.5", "--patience", "0", "fastforwarding"]) == 0
    document = json.loads((tmp_path / "knobs.json").read_text(encoding="utf-8"))
    settings = [row["setting"] for row in document["cells"]["arms"]]
    assert sorted(settings, key=len) == [{}, {"net.inet.ip.fastforwarding": "1"}]
    assert all(0 < len(row["rates"]) <= 2 and min(row["rates"].values()) > 0 for row in document["cells"]["arms"])
    assert not document["signs"]["arms"]
    printed = capsys.readouterr()
    assert "4 boots, about 0 minutes" in printed.err
    assert "`net.inet.ip.fastforwarding=1`" in printed.out
    assert "0 samples void, " in printed.out
    assert knobs.main(["--rounds", "2", "--seconds", "0.5", "--patience", "0", "--resume", "fastforwarding"]) == 0
    again = capsys.readouterr()
    assert "0 boots, " in again.err
    assert again.out == printed.out
    assert results.kept("knobs")["minutes"] >= document["minutes"]
    with pytest.raises(SystemExit, match="measured with another seconds, knobs: leave out --resume"):
        knobs.main(["--rounds", "2", "--resume", "lro"])


def test_what_was_measured_is_kept_when_the_bench_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arm = Arm("forward", (), None)

    def interrupted(_bench: Bench, _control: Control, _found: object, samples: Samples, _rounds: int) -> None:
        samples.rates[arm] = {0: 7.0}
        raise KeyboardInterrupt

    monkeypatch.setattr(results, "BENCH", tmp_path)
    monkeypatch.setattr(knobs, "measure_cells", interrupted)
    assert knobs.main(["fastforwarding"]) == 130
    assert "--resume goes on" in capsys.readouterr().err
    chosen = knobs.options(["fastforwarding"])
    assert knobs.resume(results.kept("knobs"), chosen).signs.rates == {arm: {0: 7.0}}


@pytest.mark.parametrize(("rounds_of_cells", "rounds_of_signs", "refused"), [(2, 3, False), (3, 0, True), (0, 4, True)])
def test_cells_with_more_rounds_than_requested_are_no_part_of_a_page(
    rounds_of_cells: int, rounds_of_signs: int, *, refused: bool
) -> None:
    def samples(rounds: int) -> Samples:
        return Samples({arm: dict.fromkeys(range(rounds), 1.0)}, {arm: []}, {arm: {}})

    arm, chosen = Arm("UNIX", (), None), knobs.options(["--rounds", "2", "--pairs", "3"])
    taken = knobs.Taken(samples(rounds_of_signs), samples(rounds_of_cells))
    kept = json.loads(json.dumps(taken.document(chosen)))
    if refused:
        with pytest.raises(ValueError, match="more rounds or pairs: ask for as many"):
            knobs.resume(kept, chosen)
    else:
        assert knobs.resume(kept, chosen) == taken


def test_what_an_older_version_kept_is_not_resumed() -> None:
    with pytest.raises(ValueError, match="measured with another boot, kernel"):
        knobs.resume({"measured": "on a day", "cells": [], "signs": []}, knobs.options([]))


def test_a_round_that_was_interrupted_in_a_group_has_it_anew_and_the_others_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unix = [Arm("UNIX", (), None), Arm("UNIX", (), "fd.lock=rw", (("fd.lock", "rw"),))]
    forward = [Arm("forward", (("a", "b"),), None), Arm("forward", (("a", "b"),), "c=d", (("c", "d"),))]
    samples = Samples({unix[0]: {0: 1.0, 1: 2.0}, unix[1]: {0: 3.0}, forward[0]: {0: 4.0, 1: 5.0}})
    samples.failures[forward[1]] = ["why", "why again"]
    samples.void = 3
    quiet, busy = Look(100.0, 300.0), Look(50.0, 300.0)
    samples.looks = {unix[0]: {0: quiet, 1: busy}, unix[1]: {0: quiet}, forward[0]: {0: busy, 1: quiet}}
    read = knobs_samples.read(json.loads(json.dumps(knobs_samples.document(samples))))
    taken: list[tuple[Arm, int]] = []
    monkeypatch.setattr(Samples, "take", lambda _self, _bench, _control, arm, turn: taken.append((arm, turn)))
    assert knobs_samples.noise([read], Control(0, quiet)) == "3 samples void, 2 counted without quiet CPUs"
    knobs_samples.measure_cells(cast("Bench", None), Control(0), [unix, forward], read, 2)
    assert sorted(taken, key=str) == sorted(((arm, 1) for arm in unix), key=str)
    assert read.rates == {unix[0]: {0: 1.0}, unix[1]: {0: 3.0}, forward[0]: {0: 4.0, 1: 5.0}, forward[1]: {}}
    assert knobs_samples.noise([read], Control(0, quiet)) == "3 samples void, 1 counted without quiet CPUs"


def test_an_arm_that_fails_again_is_given_up_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = []

    def refuse(_bench: Bench, row: Row, _side: str) -> Sample:
        tried.append(row)
        raise AssertionError("the console's first line\nwhy it stopped")

    monkeypatch.setitem(strategies.WORKLOADS, "UNIX", strategies.Workload(Row(refuse, "1000/s")))
    arm, samples = Arm("UNIX", (), "unix.locking=pair"), Samples()
    for turn in range(5):
        samples.take(cast("Bench", None), Control(0), arm, turn)
    assert not samples.rates
    assert len(tried) == 2
    assert capsys.readouterr().err == 2 * "unix.locking=pair under UNIX: why it stopped\n"


@pytest.mark.parametrize(
    ("patience", "rates", "expected"),
    [
        (3600, {0: 20.0, 1: 30.0}, "1 samples void, 0 counted without quiet CPUs"),
        (0, {0: 10.0, 1: 20.0}, "0 samples void, 1 counted without quiet CPUs"),
    ],
)
def test_a_sample_of_busy_cpus_is_taken_again_in_its_round_while_there_is_patience(
    monkeypatch: pytest.MonkeyPatch, patience: float, rates: dict[int, float], expected: str
) -> None:
    measured, speeds = iter((10.0, 20.0, 30.0)), iter((95.0, 60.0, 95.0, 100.0, 100.0, 100.0))
    row = Row(lambda _bench, _row, _side: Sample(next(measured)), "1000/s")
    monkeypatch.setitem(strategies.WORKLOADS, "UNIX", strategies.Workload(row))
    control = Control(patience, Look(100.0, 300.0))
    monkeypatch.setattr(control, "look", lambda: Look(next(speeds), 300.0))
    arm, samples = Arm("UNIX", (), None), Samples()
    for turn in range(2):
        samples.take(cast("Bench", None), control, arm, turn)
    assert samples.rates == {arm: rates}
    assert knobs_samples.noise([samples], control) == expected
