# SPDX-License-Identifier: BSD-2-Clause
"""The documents of docs/ as pages of the site, and the glossary's terms on all pages."""
