# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of the pages and of the raw data. Mails cite them for years, so an address never gets another meaning."""

from django.urls import URLPattern, URLResolver, path, register_converter
from django.urls.converters import StringConverter

from perfweb.rawdata.tables import FORMATS
from perfweb.reports.pages import (
    boots,
    comparison,
    embedded,
    matrix,
    rawdata,
    reproductions,
    runs,
    search,
    testbeds,
    tests,
    timeline,
    topics,
)


class FormConverter(StringConverter):
    """The suffix of a table's name: csv, json, parquet."""

    regex = "|".join(FORMATS)


register_converter(FormConverter, "form")

_PAIR = "runs/<int:number>/compare/<slug:a>..<slug:b>"

app_name = "reports"
urlpatterns: list[URLPattern | URLResolver] = [
    path("runs/", runs.run_list, name="run-list"),
    path("runs/<int:number>/", runs.run_detail, name="run"),
    path(f"{_PAIR}/", comparison.comparison, name="comparison"),
    path("runs/<int:number>/boots/", boots.boots, name="boots"),
    path("runs/<int:number>/matrix/", matrix.matrix, name="matrix"),
    path("compare/", comparison.compare, name="compare"),
    path("tests/", tests.test_list, name="test-list"),
    path("tests/<path:test>/", timeline.timeline, name="test"),
    path("topics/<slug:name>/", topics.topic, name="topic"),
    path("testbeds/", testbeds.testbed_list, name="testbed-list"),
    path("testbeds/<slug:name>/", testbeds.testbed, name="testbed"),
    path("reproductions/", reproductions.reproductions, name="reproductions"),
    path("search/", search.results, name="search"),
    path("search/names.json", search.completions, name="search-names"),
    path("runs/<int:number>/samples.<form:form>", rawdata.run_samples, name="run-samples"),
    path("runs/<int:number>/interim.<form:form>", rawdata.run_interim, name="run-interim"),
    path("runs/<int:number>/verdicts.<form:form>", rawdata.run_verdicts, name="run-verdicts"),
    path("runs/<int:number>/run.json", rawdata.run_json, name="run-json"),
    path("runs/<int:number>/plan.yaml", rawdata.plan_yaml, name="plan-yaml"),
    path("runs/<int:number>/raw.tar", rawdata.run_archive, name="run-archive"),
    path("runs/<int:number>/ministat/<slug:variant>/<path:test>.txt", rawdata.ministat_input, name="ministat-input"),
    path("artefacts/<int:key>/", rawdata.artefact, name="artefact"),
    path(f"{_PAIR}/samples.<form:form>", rawdata.comparison_samples, name="comparison-samples"),
    path(f"{_PAIR}/verdicts.<form:form>", rawdata.comparison_verdicts, name="comparison-verdicts"),
    path(f"{_PAIR}/raw.tar", rawdata.comparison_archive, name="comparison-archive"),
    path("compare/samples.<form:form>", rawdata.comparison_samples, name="compare-samples"),
    path("compare/verdicts.<form:form>", rawdata.comparison_verdicts, name="compare-verdicts"),
    path("compare/raw.tar", rawdata.comparison_archive, name="compare-archive"),
    path(f"{_PAIR}/badge.svg", embedded.comparison_badge, name="comparison-badge"),
    path(f"{_PAIR}/graph.svg", embedded.comparison_graph, name="comparison-graph"),
    path("compare/badge.svg", embedded.comparison_badge, name="compare-badge"),
    path("compare/graph.svg", embedded.comparison_graph, name="compare-graph"),
    path("tests/<path:test>/graph.svg", embedded.series_graph, name="series-graph"),
    path("tests/<path:test>/series.<form:form>", rawdata.series_table, name="series-table"),
    path("tests/<path:test>/samples.<form:form>", rawdata.series_samples, name="series-samples"),
    path("tests/<path:test>/raw.tar", rawdata.series_archive, name="series-archive"),
]
