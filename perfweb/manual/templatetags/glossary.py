# SPDX-License-Identifier: BSD-2-Clause
"""`{% glossary %}…{% endglossary %}`: the first use of each term inside gets its definition."""

from __future__ import annotations

from django import template
from django.template import Context
from django.template.base import Node, NodeList, Parser, Token
from django.utils.safestring import SafeString

from perfweb.manual.glossary import with_definitions

register = template.Library()


class GlossaryNode(Node):
    """The content between the tags."""

    def __init__(self, nodelist: NodeList) -> None:
        self.nodelist = nodelist

    def render(self, context: Context) -> SafeString:
        """Render the content and link its terms."""
        return with_definitions(self.nodelist.render(context))


@register.tag
def glossary(parser: Parser, _token: Token) -> GlossaryNode:
    """Parse up to the end tag."""
    nodelist = parser.parse(("endglossary",))
    parser.delete_first_token()
    return GlossaryNode(nodelist)
