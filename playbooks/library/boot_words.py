#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks whether words may be added to the command line of this host's kernel; changes nothing.

The guard answers first, by the policy of this host, so the host decides with which words it boots, whatever the
controller allows. A host without a guard refuses only the words that no host allows.
"""

from __future__ import annotations

from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked

DOCUMENTATION = """
module: boot_words
short_description: ask whether the kernel of this host may be booted with words of a plan
options:
  words:
    description: Words for the kernel's command line, with one space between them, or C(default) for none.
    type: str
    required: true
"""

RETURN = """
words:
  description: The words, which are allowed.
  type: str
"""


def main() -> None:
    """Entry point of the module."""
    module = Module(argument_spec={"words": {"required": True}}, supports_check_mode=True)
    module.exit_json(changed=False, words=checked(module, "boot_words")["words"])


if __name__ == "__main__":
    main()
