# SPDX-License-Identifier: BSD-2-Clause
"""Patches as HTML: no character is lost, and only lines of hunks are marked."""

import re

from django.utils.html import escape
from hypothesis import given
from hypothesis import strategies as st

from perfweb.submissions.difftext import marked, visible

PATCH = """\
- a list in the message
--- a/stack/net/if.c
+++ b/stack/net/if.c
@@ -1,2 +1,3 @@ int main
 same
-<old>
+new
++two
\\ No newline at end of file
-- 2
2.39.5
"""
LINES = st.lists(st.sampled_from(["@@ -1 +1 @@", "@@ -0,0 +1,9 @@", "+a", "-<b>", " &", "\\ x", "", "</span>", "@@"]))


def test_lines_of_a_hunk_are_marked_and_no_others() -> None:
    found = re.findall(r'<span class="(\w+)">(.*?)</span>', marked(PATCH))
    assert found == [
        ("hunk", "@@ -1,2 +1,3 @@ int main"),
        ("removed", "-&lt;old&gt;"),
        ("added", "+new"),
        ("added", "++two"),
    ]


@given(LINES.map("\n".join) | st.text())
def test_nothing_is_lost_and_nothing_becomes_markup(text: str) -> None:
    html = marked(text)
    plain = re.sub(r'<span class="(?:added|removed|hunk)">(.*?)</span>', r"\1", html, flags=re.DOTALL)
    assert "<" not in plain
    assert plain == escape("\n".join(map(visible, text.split("\n"))))


def test_characters_without_a_glyph_are_shown() -> None:
    assert marked("+a\r\n+b\tc\x0c\n+\u202e\u2028\xa0d") == "+a␍\n+b\tc␌\n+&lt;U+202E&gt;&lt;U+2028&gt;&lt;U+00A0&gt;d"
    assert visible("größer\t日本語") == "größer\t日本語"
