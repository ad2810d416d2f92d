# SPDX-License-Identifier: BSD-2-Clause
"""Limits on untrusted input, which are checked before it is parsed.  docs/explanation/security.md has the same table.

Every parser takes linear time in the size of its input, so these limits bound the time for which a parser can hold the
interpreter's lock.  tests/untrusted tests both.
"""

KIB, MIB = 1 << 10, 1 << 20

# HTTP requests
REQUEST_BYTES = 4 * MIB
REQUEST_HEAD_BYTES = 32 * KIB
"""Bytes of the path, the query string and all headers together."""
REQUEST_PARAMETERS_BYTES = 1000
"""Bytes of Content-Type, and of Accept: the parser of their parameters, that of mail, takes quadratic time."""
FORM_BYTES = 256 * KIB
"""Bytes of a form in application/x-www-form-urlencoded, whose parser joins a list with two items for each percent sign.
The form for patches is multipart.
"""
FORM_FIELDS = 1000
FORM_FILES = 4
WEBHOOK_BYTES = 1 * MIB
COMMENT_CHARACTERS = 20_000
"""Characters of a comment on a forge that are searched for a request."""

# Patches and mail
PATCH_BYTES = 2 * MIB
PATCH_LINES = 100_000
SERIES_PATCHES = 64
THREAD_MAILS = 500
"""Mails of a thread in which a series is looked for."""
PATCH_PATH_CHARACTERS = 1000
PATCH_PATH_FOLDERS = 32
"""The same limit as for the result of a build (playbooks/module_utils/untrusted_tree.py)."""
MAIL_BYTES = 2 * PATCH_BYTES
"""Twice a patch: base64 makes it a third longer, and mail servers add headers."""
MAIL_LINES = 2 * PATCH_LINES
MAIL_HEADERS = 1000
"""Headers of a mail and all its parts together."""
MAIL_HEADER_CHARACTERS = 2000
"""Characters of a header that are read: Python's parsers of parameters and of encoded words take quadratic time."""
MAIL_REFERENCES_CHARACTERS = 8000
"""Characters that are read of headers with Message-IDs: each of up to 50 has up to 160."""
MAIL_PARTS = 200
MAIL_CONTAINERS = 6
"""Max nested multiparts, because Python's parser compares each line with the boundaries of all open ones."""

# Plans
PLAN_CHARACTERS = 64 * KIB
PLAN_NODES = 10_000
PLAN_DEPTH = 10

# Responses of other servers
PROVIDER_BYTES = 256 * KIB
"""Bytes of a response of an identity provider: its metadata, its keys, a token, or the user's identity."""
FORGE_ANSWER_BYTES = 4 * MIB

# JSON documents of any origin
JSON_DEPTH = 32
REQUEST_JSON_PARTS = 100_000
"""Texts, and commas and opening brackets outside of them, of a request's body."""
REQUEST_JSON_ESCAPES = 500_000
"""Backslashes of a request's body. Source code of PATCH_BYTES in one text has fewer: its line ends, tabs and quotes
take one each, and fewer than every fourth of its bytes is one of these.
"""

# Output of measuring tools
TOOL_NUMBER_CHARACTERS = 64
