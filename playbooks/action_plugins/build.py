# SPDX-License-Identifier: BSD-2-Clause
"""Makes a host build, and sends the sources only if the host reports that it needs them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):  # type: ignore[misc]
    """The module `build`, with C(archive), a tar.gz on the controller, in place of C(sources)."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Runs the module without the sources, and again with them if the host needs them."""
        super().run(tmp, task_vars)
        values = dict(self._task.args)
        archive = Path(values.pop("archive"))
        answer: dict[str, Any] = self._execute_module(module_args=values, task_vars=task_vars)
        if answer.get("wanted"):
            values["sources"] = base64.b64encode(archive.read_bytes()).decode("ascii")
            answer = self._execute_module(module_args=values, task_vars=task_vars)
        return answer
