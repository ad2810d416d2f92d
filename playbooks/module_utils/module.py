# SPDX-License-Identifier: BSD-2-Clause
"""The call of a module: its parameters, and its one result.

It does what these modules need of Ansible's AnsibleModule, whose import takes longer than the work of most modules: 80
of the 147 ms of CPU of a call. Types are not converted here: the grammar of each parameter checks them (parameters.py).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

INTERNAL = "_ansible_"
"""The prefix of Ansible's own parameters."""
SYSTEM_PATH = "/sbin:/usr/sbin:/usr/local/sbin"
"""Directories of tools that the PATH of a user may lack."""

_given: list[dict[str, Any]] = []
"""The parameters from the guard of this host. Without a guard Ansible's program has them."""


def call(main: Callable[[], None], given: dict[str, Any]) -> NoReturn:
    """Runs a module with these parameters, to its end; an exception becomes its result."""
    _given.append(given)
    try:
        main()
    except Exception as error:
        _answer({"failed": True, "msg": f"{type(error).__name__}: {error}", "exception": traceback.format_exc()})
        sys.exit(1)
    raise RuntimeError("a module has ended without a result")


def _answer(values: Mapping[str, Any]) -> None:
    sys.stdout.write(f"\n{json.dumps(values)}\n")


class Module:
    """The parameters of a call, and how it ends.

    `argument_spec` has each parameter with its `default`, or `required`. `required_if` has a parameter, its value, and
    the parameters that it then needs.
    """

    def __init__(
        self,
        argument_spec: Mapping[str, Mapping[str, Any]],
        required_if: Sequence[tuple[str, str, Sequence[str]]] = (),
        supports_check_mode: bool = False,
    ) -> None:
        given = (
            _given[-1]
            if _given
            else json.loads(sys.modules["ansible.module_utils.basic"]._ANSIBLE_ARGS)["ANSIBLE_MODULE_ARGS"]
        )
        self.check_mode = given.get(f"{INTERNAL}check_mode") is True
        values = {name: value for name, value in given.items() if not name.startswith(INTERNAL)}
        self.params = {name: values.pop(name, None) for name in argument_spec}
        for name, rule in argument_spec.items():
            if self.params[name] is None:
                self.params[name] = rule.get("default")
        if values:
            self.fail_json(msg=f"unknown parameters: {', '.join(values)}")
        self._require("required arguments", [name for name, rule in argument_spec.items() if rule.get("required")])
        for name, value, needed in required_if:
            if self.params[name] == value:
                self._require(f"arguments if {name} is {value}", needed)
        if self.check_mode and not supports_check_mode:
            self.exit_json(skipped=True, msg="this module does not support check mode")

    def _require(self, what: str, names: Sequence[str]) -> None:
        if missing := [name for name in names if self.params[name] is None]:
            self.fail_json(msg=f"missing {what}: {', '.join(missing)}")

    def exit_json(self, **result: Any) -> NoReturn:
        """Ends the module."""
        _answer(result)
        sys.exit(0)

    def fail_json(self, msg: str, **result: Any) -> NoReturn:
        """Ends the module as failed."""
        _answer({"failed": True, "msg": msg, **result})
        sys.exit(1)

    def run_command(self, argv: Sequence[str], check_rc: bool = False) -> tuple[int, str, str]:
        """Returns the exit status, the output and the errors of a tool; a missing one fails the module."""
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run(argv, env=environment, capture_output=True, check=False)
        except OSError as error:
            self.fail_json(msg=f"`{' '.join(argv)}` failed: {error.strerror}")
        out, errors = (printed.decode("utf-8", "replace") for printed in (done.stdout, done.stderr))
        if check_rc and done.returncode != 0:
            self.fail_json(msg=f"`{' '.join(argv)}` failed: {errors.strip() or out.strip()}")
        return done.returncode, out, errors

    def get_bin_path(self, tool: str) -> str | None:
        """Returns the path of a tool, or nothing."""
        return shutil.which(tool, path=f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}")
