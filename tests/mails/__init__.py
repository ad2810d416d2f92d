# SPDX-License-Identifier: BSD-2-Clause
"""A corpus of mails with patches, made by git and in the encodings of mail programs, and what git reads of each."""
