# SPDX-License-Identifier: BSD-2-Clause
"""The content of the pages for a reader without JavaScript."""

from __future__ import annotations

import gzip
import re

import pytest
from django.db.models import F
from django.test import Client, RequestFactory
from django.urls import reverse
from django.views.defaults import server_error
from pytest_django import DjangoAssertNumQueries

from perfweb.reports.pages import comparison, runs
from perfweb.runs.judging import counted_samples
from perfweb.runs.models import Artefact, BootState, Import, Measurement, Run, Sample
from perfweb.runs.summaries import summarise
from perfweb.verdicts.text import run_text
from tests.factories import DEMO_TESTS, create_history, create_queued_run, create_run, make_void
from tests.unit.conftest import BROKEN_TEST
from tests.unit.pages import comparison_address, page, text_of

pytestmark = pytest.mark.django_db


def test_an_empty_list_states_how_to_start_a_run(client: Client) -> None:
    text = text_of(page(client, "/"))
    assert "There are no runs yet." in text
    assert "./dev demo" in text


def test_the_list_shows_each_run_with_its_verdict(client: Client, run: Run) -> None:
    queued = create_queued_run()
    text = text_of(page(client, reverse("reports:run-list")))
    assert "Direct against deferred dispatch" in text
    assert "direct against deferred : 1 failed, 5 faster" in text
    assert text.index(f" {queued.pk} ") < text.index(f" {run.pk} ")


def test_the_list_has_pages(client: Client) -> None:
    for _ in range(26):
        create_queued_run()
    first = page(client, "/runs/")
    (older,) = re.findall(r'rel="next" href="([^"]+)"', first)
    second = page(client, "/runs/" + older)
    assert [html.count('<span class="state') for html in (first, second)] == [25, 1]
    assert 'rel="prev" href="/runs/"' in second
    assert 'rel="next"' not in second


def test_the_pages_of_the_list_lead_back(client: Client) -> None:
    numbers = [create_queued_run().pk for _ in range(55)]
    second = page(client, f"/runs/?before={numbers[30]}")
    third = page(client, f"/runs/?before={numbers[5]}")
    assert 'rel="prev" href="/runs/"' in second
    assert f'rel="prev" href="?before={numbers[30]}"' in third


def _numbers(client: Client, query: str) -> list[int]:
    return [
        int(number) for number in re.findall(r'data-label="run"><a href="/runs/(\d+)/"', page(client, f"/runs/{query}"))
    ]


def test_the_list_can_be_narrowed_by_testbed_plan_and_state(client: Client, run: Run) -> None:
    queued = create_queued_run()
    assert _numbers(client, "") == [queued.pk, run.pk]
    assert _numbers(client, "?state=queued") == [queued.pk]
    assert _numbers(client, "?state=done&testbed=&plan=") == [run.pk]
    assert _numbers(client, f"?testbed={run.testbed.name}&plan={run.plan.name}&state=done") == [run.pk]
    assert _numbers(client, "?state=imported") == []
    assert "No run is of this testbed and plan and in this state." in text_of(page(client, "/runs/?state=imported"))
    Run.objects.filter(pk=run.pk).update(imported=Import.objects.create(reading="1" * 64, sha256="2" * 64))
    assert _numbers(client, "?state=imported") == [run.pk]
    assert _numbers(client, "?state=done") == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("testbed=nowhere", ["testbed", "nowhere", "Possible: demo."]),
        ("state=dead", ["state", "dead", "done, "]),
        ("plan=nothing", ["plan", "nothing", "Possible: direct-or-deferred."]),
    ],
)
def test_a_selection_of_runs_that_is_not_possible_is_refused(
    client: Client, run: Run, query: str, words: list[str]
) -> None:
    response = client.get(f"/runs/?{query}")
    assert response.status_code == 400
    assert not [word for word in words if word not in response.content.decode()]


def test_the_pages_of_a_narrowed_list_keep_its_selection(client: Client, run: Run) -> None:
    for _ in range(27):
        create_queued_run()
    first = page(client, "/runs/?state=queued")
    (older,) = re.findall(r'rel="next" href="([^"]+)"', first)
    second = page(client, "/runs/" + older.replace("&amp;", "&"))
    assert second.count('<span class="state queued') == 2
    assert f'href="/runs/{run.pk}/"' not in second
    (newer,) = re.findall(r'rel="prev" href="([^"]+)"', second)
    assert newer == "/runs/?state=queued"
    assert page(client, newer).count('<span class="state queued') == 25


def test_the_page_of_a_run_has_every_test_with_its_numbers(client: Client, run: Run) -> None:
    html = page(client, reverse("reports:run", args=[run.pk]))
    text = text_of(html)
    for test in DEMO_TESTS:
        assert test in text
    for heading in ("Mean", "Min", "Max", "Deviation", "Relative"):
        assert heading in text
    assert "netperf -H 10.77.1.2 -l 1" in text
    assert "client on CPU 0, server on CPU 1" in text


def test_the_page_of_a_run_has_variants_tests_and_hosts(client: Client, run: Run) -> None:
    text = text_of(page(client, reverse("reports:run", args=[run.pk])))
    for words in ("Example CPU 3.0 GHz", "6.1.0-28-amd64", "v0.1-12-g0123abc", "restoring done"):
        assert words in text
    assert re.search(r"net\.isr\.dispatch\s+deferred\s+direct\s+differs", text)


def test_a_failed_measurement_shows_its_reason_and_output(client: Client, run: Run) -> None:
    html = page(client, reverse("reports:run", args=[run.pk]))
    assert "2 measurements failed or void" in text_of(html)
    assert "failed on direct, boot 1: sample 0: netperf ended with status 1" in text_of(html)
    failed = Artefact.objects.filter(measurement__state="failed")
    assert failed.count() == 2
    for artefact in failed:
        assert reverse("reports:artefact", args=[artefact.pk]) in html


def test_void_samples_are_struck_through_with_their_reason_and_change_no_number(client: Client, run: Run) -> None:
    measurement = Measurement.objects.filter(boot__run=run, boot__variant__name="direct", test=DEMO_TESTS[0])[0]
    make_void(measurement, 2, "steal: in 1.0 s the hypervisor took 12.3 % of the CPUs' time")
    address = reverse("reports:run", args=[run.pk])
    html = page(client, address)
    text = text_of(html)
    assert "1 void sample" in text
    struck = re.findall(r"<s>([^<]+)</s> steal: in 1.0 s the hypervisor took 12.3 %", html)
    assert len(struck) == 1
    assert f"boot {measurement.boot.position}, direct, sample 3: {text_of(struck[0])}" in text
    assert re.search(rf"{DEMO_TESTS[0]} transactions/s .* ok, 1 void", text)
    counted = counted_samples([run])[run.pk].sets[measurement.boot.variant_id, DEMO_TESTS[0]]
    assert len(counted.values) == 9
    assert re.search(r"direct 9 [\d ]+", text)


def test_void_samples_are_counted_in_brief(client: Client, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for measurement in Measurement.objects.filter(boot__run=run)[:2]:
        make_void(measurement, 1, "errors: 1")
    monkeypatch.setattr(runs, "MOST_CELLS", 3)
    text = text_of(page(client, reverse("reports:run", args=[run.pk])))
    assert "2 void samples" in text
    assert "2 measurements failed or void" in text


def test_a_noisy_set_of_samples_is_marked_in_words(client: Client) -> None:
    noisy = create_run(tests=[DEMO_TESTS[0]], noise=0.2)
    assert html_marks(client, noisy) > 0
    calm = create_run(tests=[DEMO_TESTS[0]], noise=0.001)
    assert html_marks(client, calm) == 0


def html_marks(client: Client, run: Run) -> int:
    return page(client, reverse("reports:run", args=[run.pk])).count('title="relative deviation of 2.5 % or more"')


def test_a_run_that_is_not_over_can_be_reloaded_without_javascript(client: Client) -> None:
    queued = create_queued_run()
    html = page(client, reverse("reports:run", args=[queued.pk]))
    assert "Reload the page for the current progress." in text_of(html)
    assert "No results yet." in text_of(html)


def test_the_comparison_has_its_verdict_in_words(client: Client, run: Run) -> None:
    text = text_of(page(client, comparison_address(run)))
    assert "At 95 % confidence direct is, against deferred : 1 failed, 5 faster." in text
    assert "failed (on every boot of direct: the page of the run has the reason)" in text
    assert "Difference at 95.0% confidence" in text


def test_too_little_data_is_never_called_equivalent(client: Client) -> None:
    same = create_run(gain=1.0, noise=0.05)
    text = text_of(page(client, comparison_address(same)))
    assert re.search(r"not enough data \(it takes about \d+ more boots of each, [0-9a-z ]+\)", text)
    for word in ("identical", "the same", " equal "):
        assert word not in text


def test_samples_with_two_modes_are_not_averaged(client: Client) -> None:
    run = create_run(tests=[DEMO_TESTS[0]], noise=0.001)
    odd = Sample.objects.filter(measurement__boot__variant__name="direct", index__in=(3, 5))
    odd.update(value=F("value") * 1.1)
    text = text_of(page(client, comparison_address(run)))
    assert re.search(r" 45 \d{3} or 49 \d{3} two modes, 60 % in the lower ".replace(" ", r"\s"), text)


def test_variants_without_a_difference_are_equivalent_within_the_margin(client: Client) -> None:
    text = text_of(page(client, comparison_address(create_run(gain=1.0, noise=0.002))))
    assert "deferred : 6 equivalent." in text
    assert "= equivalent within ±2 %" in text


def test_of_very_many_tests_a_comparison_shows_the_one_that_is_requested(
    client: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "MOST_DRAWN", 3)
    made = page(client, comparison_address(run))
    assert "1 failed, 5 faster" in text_of(made)
    assert "Choose a test in the table" in text_of(made)
    assert "at 95.0% confidence" not in made
    one = page(client, f"{comparison_address(run)}?test={DEMO_TESTS[0]}")
    assert f'href="?test={DEMO_TESTS[0].replace("/", "%2F")}"' in made
    assert "1 failed, 5 faster" in text_of(one)  # the verdicts are still those among all tests
    assert one.count("Difference at 95.0% confidence") == 1
    assert client.get(f"{comparison_address(run)}?test=none").status_code == 400


def test_exchanging_the_sides_turns_faster_into_slower(client: Client, run: Run) -> None:
    assert "5 slower" in text_of(page(client, comparison_address(run, "direct", "deferred")))


def test_another_margin(client: Client) -> None:
    run = create_run(gain=1.01, noise=0.002)
    assert "equivalent within ±2 %, but not the same" in text_of(page(client, comparison_address(run)))
    text = text_of(page(client, comparison_address(run) + "?margin=0.5"))
    assert "6 faster" in text
    assert "10 and 10 samples of 2 and 2 boots, compared by" in text
    assert re.search(r"changes from \d\.\d+ % on would show in 4 runs of 5; margin ±0.5 %, confidence 95 %", text)


def test_another_confidence_level(client: Client, run: Run) -> None:
    assert "Difference at 99.5% confidence" in page(client, comparison_address(run) + "?confidence=99.5")


@pytest.mark.parametrize(
    ("address", "help_text"),
    [
        ("/runs/999999/", "There is no run 999999."),
        ("/runs/{run}/compare/deferred..hybrid/", "Its variants are: deferred, direct."),
        ("/runs/{run}/ministat/direct/no.such/test.txt", "its page lists what it has"),
        ("/artefacts/999999/", "There is no artefact 999999."),
        ("/no/such/page", "No page has this address."),
    ],
)
def test_what_is_not_there_is_answered_with_help(client: Client, run: Run, address: str, help_text: str) -> None:
    response = client.get(address.format(run=run.pk))
    assert response.status_code == 404
    assert help_text in text_of(response.content.decode())
    assert reverse("reports:run-list") in response.content.decode()


def test_a_page_that_fails_refers_to_the_log() -> None:
    response = server_error(RequestFactory().get("/"))
    assert response.status_code == 500
    assert "The web server's log has the reason." in response.content.decode()


def test_pages_only_answer_to_reading(client: Client, run: Run) -> None:
    assert client.post(reverse("reports:run", args=[run.pk])).status_code == 405


def test_what_tools_printed_cannot_become_markup(client: Client, run: Run) -> None:
    measurement = run.boots.all()[0].measurements.all()[0]
    measurement.command = "netperf </script><script>alert(1)</script>"
    measurement.test = "x</script><script>alert(2)</script>"
    measurement.save()
    html = page(client, reverse("reports:run", args=[run.pk])) + page(client, comparison_address(run))
    assert "<script>alert" not in html


def test_the_policy_allows_no_inline_script(client: Client, run: Run) -> None:
    response = client.get(reverse("reports:run", args=[run.pk]))
    assert "'unsafe-inline'" not in response.headers["Content-Security-Policy"]
    scripts = re.findall(r"<script([^>]*)>", response.content.decode())
    assert scripts
    assert all("src=" in attributes or 'type="application/json"' in attributes for attributes in scripts)
    assert " style=" not in response.content.decode()


@pytest.mark.parametrize(("samples", "boots"), [(10, 2), (40, 5)])
def test_queries_do_not_depend_on_how_much_was_measured(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries, samples: int, boots: int
) -> None:
    run = create_run(samples=samples, boots=boots)
    summarise([run.pk])
    with django_assert_num_queries(21):
        client.get(reverse("reports:run", args=[run.pk]))
    with django_assert_num_queries(9):
        client.get(comparison_address(run))


@pytest.mark.parametrize("runs", [1, 5])
def test_queries_of_the_list_do_not_depend_on_the_number_of_runs(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries, runs: int
) -> None:
    made = [create_run(tests=[DEMO_TESTS[0], BROKEN_TEST], seed=seed).pk for seed in range(runs)]
    with django_assert_num_queries(9):
        client.get("/runs/")
    summarise(made)
    with django_assert_num_queries(6):
        client.get("/runs/")


def test_boots_that_differ_are_marked(client: Client) -> None:
    run = create_run(tests=[DEMO_TESTS[0]], noise=0.001)
    assert "boots differ" not in text_of(page(client, comparison_address(run)))
    apart = run.boots.filter(variant__name="direct").first()
    Sample.objects.filter(measurement__boot=apart).update(value=F("value") * 1.1)
    assert "⚠ boots differ" in text_of(page(client, comparison_address(run)))
    assert "⚠ boots differ" in text_of(page(client, reverse("reports:run", args=[run.pk])))
    assert "not enough data; boots differ" in run_text(run)


def test_a_boot_that_crashed_is_reported_at_the_top(client: Client, run: Run) -> None:
    boot = run.boots.all()[3]
    boot.state, boot.error = BootState.CRASHED, "panic: mutex tcbinfo not owned"
    boot.save()
    text = text_of(page(client, reverse("reports:run", args=[run.pk])))
    assert "1 boot failed or crashed" in text
    assert "crashed ⚠ panic: mutex tcbinfo not owned" in text


def test_each_variant_is_compared_with_the_baseline(client: Client, run: Run) -> None:
    run.variants.create(name="hybrid", position=2, target="stack", tunables={"net.isr.dispatch": "hybrid"})
    for address in ("/", reverse("reports:run", args=[run.pk])):
        text = text_of(page(client, address))
        assert "direct against deferred : 1 failed, 5 faster" in text
        assert "hybrid against deferred : 6 not enough data" in text


def test_of_very_many_tests_those_of_a_topic_are_shown_in_detail(
    client: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = reverse("reports:run", args=[run.pk])
    monkeypatch.setattr(runs, "MOST_CELLS", 4)
    html = page(client, address)
    assert "Choose a test in the table, or a topic" in text_of(html)
    assert "data-graph=" not in html
    assert all(test in html for test in DEMO_TESTS)
    part = page(client, address + "?topic=forward")
    assert set(re.findall(r'data-graph="test-([^"]+)"', part)) == {
        "tcp-rr-host-router-host-ipv4", "tcp-stream-host-router-host-ipv4",
    }  # fmt: skip
    assert DEMO_TESTS[0] not in text_of(part)
    assert "1 failed, 5 faster" in text_of(part)  # the verdicts are still those among all tests
    assert client.get(address + "?topic=none").status_code == 400


def test_of_very_many_tests_of_a_topic_each_has_a_page(
    client: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = reverse("reports:run", args=[run.pk])
    monkeypatch.setattr(runs, "MOST_CELLS", 3)
    part = page(client, address + "?topic=tcp")
    assert re.findall(r'data-graph="([^"]+)"', part) == ["topic-tcp"]
    tests = set(re.findall(r'href="(\?test=[^"]+)"', part))
    assert len(tests) == 2
    for test in tests:
        html = page(client, address + test)
        assert len(re.findall(r'data-graph="test-[^"]+"', html)) == 1
        assert "netperf -H 10.77.1.2 -l 1" in text_of(html) or "iperf3 -H" in text_of(html)
        assert "1 failed, 5 faster" in text_of(html)
    assert client.get(address + "?test=none").status_code == 400


def test_very_many_tests_are_reported_in_brief(client: Client, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST_CELLS", 4)
    address = reverse("reports:run", args=[run.pk])
    made = page(client, address)
    text = text_of(made)
    assert re.search(r"tcp\.rr/host-host/ipv4 transactions/s [\d ]+ \d\.\d\d % [\d ]+ \d\.\d\d % ▲ \+\d\.\d\d %", text)
    assert re.search(r"udp\.rr/host-host/ipv4 transactions/s [\d ]+ \d\.\d\d % ⚠ 2 failed", text)
    assert "1 failed, 5 faster" in text
    assert "2 measurements failed or void" in text
    for picture in re.findall(r'<img src="([^"]+)"', made):
        assert client.get(address + picture).headers["Content-Type"] == "image/svg+xml"
    assert re.findall(r'<img src="([^"]+)"', made)
    summarise([run.pk])
    assert page(client, address) == made  # the stored summaries equal the samples
    Sample.objects.filter(measurement__boot__run=run).delete()
    assert page(client, address) == made


def test_the_page_of_a_run_that_has_not_changed_is_not_made_again(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    first, second = create_history(2)
    for address in (f"/runs/{second.pk}/", f"/runs/{second.pk}/?graphs=json", comparison_address(second)):
        tag = client.get(address).headers["ETag"]
        with django_assert_num_queries(1 if "compare" in address else 5):
            again = client.get(address, headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
        assert client.get(address, headers={"If-None-Match": '"another"'}).status_code == 200
    for changed in (second, first):
        tag = client.get(f"/runs/{second.pk}/").headers["ETag"]
        summarise([changed.pk])
        assert client.get(f"/runs/{second.pk}/", headers={"If-None-Match": tag}).status_code == 200
    assert "ETag" not in client.get(f"/runs/{create_queued_run().pk}/").headers


def test_pages_are_compressed_for_browsers_that_take_that(client: Client, run: Run) -> None:
    address = reverse("reports:run", args=[run.pk])
    answer = client.get(address, headers={"Accept-Encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert DEMO_TESTS[0] in gzip.decompress(answer.content).decode()
    assert "Content-Encoding" not in client.get(address).headers


def test_a_plan_of_one_variant_has_nothing_to_compare(client: Client) -> None:
    run = create_run(tests=[DEMO_TESTS[0]])
    run.variants.get(name="direct").delete()
    assert "a single variant" in text_of(page(client, "/"))
    assert DEMO_TESTS[0] in text_of(page(client, reverse("reports:run", args=[run.pk])))
