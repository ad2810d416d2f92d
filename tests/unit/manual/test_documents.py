# SPDX-License-Identifier: BSD-2-Clause
"""Documents become pages: links lead somewhere, HTML is escaped, images are served."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from django.test import Client

from perfweb.manual import markdown
from perfweb.manual.documents import KINDS, MOVED, Document, documents

NAMES = list(documents())
LOCAL = re.compile(r'href="(/[^"#]*)?(?:#([^"]*))?"')


def ids(html: str) -> set[str]:
    return set(re.findall(r' id="([^"]*)"', html))


def render(text: str) -> str:
    return Document("howto/x", "docs/howto/x.md", text).rendered.html


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_documents_and_headings(name: str) -> None:
    html = documents()[name].rendered.html
    for address, anchor in LOCAL.findall(html):
        page = documents()[address.removeprefix("/docs/").rstrip("/")].rendered.html if address else html
        assert not anchor or unquote(anchor) in ids(page), f"{address}#{anchor}"


@pytest.mark.parametrize("name", NAMES)
def test_a_document_has_a_kind_a_title_and_a_summary(name: str) -> None:
    document = documents()[name]
    assert document.kind in KINDS or name == "glossary"
    assert document.outline.title
    assert "?" in document.outline.summary or not document.file.startswith("docs/"), "say which question it answers"
    assert "</h1>" in document.rendered.html


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;"),
        ("a <b onclick=x>b</b>", "&lt;b onclick=x&gt;"),
        ("[a](javascript:alert(1))", "[a](javascript:alert(1))"),
        ("[a](data:text/html,x)", "[a](data:text/html,x)"),
        ('    "><script>', "&lt;script&gt;"),
        ("```\n</code><script>\n```", "&lt;/code&gt;&lt;script&gt;"),
        ('# "><script>\n\n| a |\n|---|\n| b |', "&quot;&gt;&lt;script&gt;"),
        ('[a](https://example.org/"onclick="x)', "%22onclick=%22x"),
    ],
)
def test_html_is_escaped(text: str, escaped: str) -> None:
    html = render(text)
    assert escaped in html
    assert "<script" not in html


def test_marks_of_generators_are_not_shown() -> None:
    assert "table" not in render("# T\n\n<!-- table: ./dev bench -->\ntext\n<!-- end of table -->\n")


def test_a_link_to_no_document_is_an_error() -> None:
    with pytest.raises(LookupError):
        render("[a](no-such-file.md)")
    with pytest.raises(LookupError):
        render("![a](../../LICENSE)")


def test_a_link_that_is_named_by_its_file_gets_the_title() -> None:
    html = render("[data.md](../reference/data.md) and [columns](../reference/data.md#columns)")
    assert '<a href="/docs/reference/data/">Raw data</a>' in html
    assert '<a href="/docs/reference/data/#columns">columns</a>' in html


def test_equal_headings_have_different_anchors() -> None:
    assert ids(render("# A b\n\n## A b\n\n## A b\n")) == {"a-b", "a-b-1", "a-b-2"}


def test_columns_of_numbers_need_no_inline_style() -> None:
    html = render("# T\n\n| a |\n|--:|\n| 1 |\n")
    assert '<td class="number">' in html
    assert "style" not in html


def test_a_term_is_a_list_item_that_begins_with_it() -> None:
    tokens = markdown.parse("- **a, b**: `c` [d](e.md).\n- plain **g**: h\n")
    assert markdown.terms(tokens) == [("a, b", "c d.")]


@pytest.mark.django_db
@pytest.mark.parametrize("name", NAMES)
def test_every_document_is_a_page_with_its_images(client: Client, name: str) -> None:
    page = client.get(f"/docs/{name}/")
    assert page.status_code == 200
    for image in re.findall(r'<img src="([^"]*)"', page.content.decode()):
        assert client.get(image).headers["Content-Type"] == "image/png"


@pytest.mark.django_db
def test_the_contents_list_every_document(client: Client) -> None:
    page = client.get("/docs/").content.decode()
    assert [name for name in NAMES if f'href="/docs/{name}/"' not in page] == []


@pytest.mark.parametrize("name", ["no-such", "howto", "../README", "howto/../glossary", "/etc/passwd"])
def test_what_is_no_document_is_not_found(client: Client, name: str) -> None:
    assert client.get(f"/docs/{name}/").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("name", MOVED)
def test_a_former_name_redirects(client: Client, name: str) -> None:
    assert name not in NAMES
    page = client.get(f"/docs/{name}/")
    assert page.status_code == 301
    assert client.get(page.headers["Location"]).status_code == 200
