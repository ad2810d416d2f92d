# SPDX-License-Identifier: BSD-2-Clause
"""A check of the English in comments, messages, documents and templates: `python -m tests.prose [PATH ...]`.

`words.txt` lists words that a maintainer would not use, with replacements. `FOLDERS` lists what is checked by default;
to check more of the tree, add its path there once `python -m tests.prose PATH` prints nothing.
"""
