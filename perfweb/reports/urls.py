# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of the pages and of the raw data. They are cited in mails for years: never give one another meaning."""

from django.urls import URLPattern, URLResolver, path

from perfweb.reports.views import comparison, home, matrix, rawdata, runs, search, testbeds, tests, topics

app_name = "reports"
urlpatterns: list[URLPattern | URLResolver] = [
    path("", home.home, name="home"),
    path("runs/", runs.run_list, name="run-list"),
    path("runs/<int:number>/", runs.run_detail, name="run"),
    path("runs/<int:number>/compare/<slug:a>..<slug:b>/", comparison.comparison, name="comparison"),
    path("runs/<int:number>/matrix/", matrix.matrix, name="matrix"),
    path("compare/", comparison.compare, name="compare"),
    path("tests/", tests.test_list, name="test-list"),
    path("tests/<path:test>/", tests.timeline, name="test"),
    path("topics/<slug:name>/", topics.topic, name="topic"),
    path("testbeds/", testbeds.testbed_list, name="testbed-list"),
    path("testbeds/<slug:name>/", testbeds.testbed, name="testbed"),
    path("search/", search.results, name="search"),
    path("runs/<int:number>/samples.csv", rawdata.samples_csv, name="samples-csv"),
    path("runs/<int:number>/run.json", rawdata.run_json, name="run-json"),
    path("runs/<int:number>/plan.yaml", rawdata.plan_yaml, name="plan-yaml"),
    path("runs/<int:number>/raw.tar", rawdata.raw_tar, name="raw-tar"),
    path("runs/<int:number>/ministat/<slug:variant>/<path:test>.txt", rawdata.ministat_input, name="ministat-input"),
    path("artefacts/<int:key>/", rawdata.artefact, name="artefact"),
]
