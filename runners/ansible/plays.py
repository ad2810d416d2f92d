# SPDX-License-Identifier: BSD-2-Clause
"""The operations of a run on its testbed, one method for each playbook.

Playbooks/README.md has their input and output.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfweb.runs.models import Run
from runners.ansible import driver
from runners.ansible.driver import Listener

# These limits are for hosts that hang, not for busy hosts: without its samples, a play takes some seconds.
PLAY_SECONDS = 180.0
BUILD_SECONDS, KERNEL_SECONDS = 2100.0, 3600.0
"""For a build of the stack, which its playbook ends before (`build_timeout`), and of a kernel."""
BOOT_SECONDS = 900.0
"""For a play that may power-cycle a machine, whose firmware takes minutes; killed, it would start again."""
HEALTH_SECONDS = 60.0
DEBUGGER_SECONDS = 60.0
PATIENCE_SECONDS = 10.0
"""Max seconds for which a sample is retried while the server is busy with the one before."""


@dataclass(frozen=True)
class BootRequest:
    """What to boot.

    `boot_id` is its name on the hosts, `layout` selects one of the build's layouts of libraries and routers. A target
    that is `emulated` exists only while a sample of it is taken.
    """

    boot_id: str
    target: str
    topology: str
    server: str
    tunables: Mapping[str, str]
    prefix: str
    layout: int | None = None
    emulated: bool = False


@dataclass(frozen=True)
class Sampling:
    """What to measure on a boot: `measurements` as for the module `measure`, on the `host` of a role.

    A command may take `timeout` seconds; `limits` are those of the enabled gates.
    """

    host: str
    measurements: Sequence[Mapping[str, object]]
    timeout: float
    limits: Mapping[str, float]


class Plays:
    """The playbooks of one run on one testbed.

    All except the clean-up plays `stop` and `restore` end with PlayCancelledError soon after `cancelled()` turns true.
    They raise PlayFailedError when a host fails, and PlayTimeoutError, except where noted.
    """

    def __init__(self, run: Run, cancelled: Callable[[], bool] | None = None) -> None:
        self.run_id = f"{run.testbed.name[:16]}-{run.number}"
        self.inventory = Path(run.testbed.inventory)
        self.cancelled = cancelled

    def prepare(self, tunnels: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Returns the `facts` of each host by name, and what is `lacking` for the tunnels that it has to make."""
        wanted = {role: list(kinds) for role, kinds in tunnels.items()}
        return self._play("prepare", {"tunnels": wanted}).require_ok().data

    def health(self) -> dict[str, Any]:
        """Returns `facts` and `problems` of each host by name."""
        found: dict[str, Any] = self._play("health", {}, timeout=HEALTH_SECONDS).require_ok().data["health"]
        return found

    def build(self, key: str, archive: Path, options: Sequence[str], base: str) -> dict[str, Any]:
        """Builds a stack, with what was compiled for its `base`, if that is built. Returns `prefix`, `build_log`,
        `cached` and `seconds`.
        """
        values: dict[str, object] = {
            "build_key": key, "source_archive": str(archive), "meson_options": list(options), "base_prefix": base,
        }  # fmt: skip
        return self._play("build", values, timeout=BUILD_SECONDS).require_ok().data

    def build_kernel(self, key: str, archive: Path, base: str, options: Sequence[str]) -> dict[str, Any]:
        """Builds a kernel that counts, with what was compiled for its `base`, if that is built. Returns the same."""
        values: dict[str, object] = {
            "build_key": key, "source_archive": str(archive), "base_prefix": base, "build_timeout": KERNEL_SECONDS,
            "meson_options": list(options),
        }  # fmt: skip
        return self._play("build", values, timeout=KERNEL_SECONDS + PLAY_SECONDS).require_ok().data

    def replicate(self, request: BootRequest, sampling: Sampling, listener: Listener) -> None:
        """Plays a whole boot.

        `listener` gets the samples as reports. Its `handed` gets first `commands`, `effective` tunables and, for a
        stack, `boot_log`, when the target is up; then `counters`; then the results of `stop`. After a failed sample
        nothing more is measured, and without counters nothing is stopped.
        """
        self._sample("simulate" if request.emulated else "replicate", request, sampling, listener)

    def finish(self, request: BootRequest, sampling: Sampling, listener: Listener) -> None:
        """Plays the rest of a boot whose target is up."""
        self._sample("simulate" if request.emulated else "finish", request, sampling, listener)

    def _sample(self, name: str, request: BootRequest, sampling: Sampling, listener: Listener) -> None:
        values = {
            "server": request.server,
            "measurements": [dict(measurement) for measurement in sampling.measurements],
            "timeout": sampling.timeout,
            "limits": dict(sampling.limits),
            "host": sampling.host,
        }
        limit = sampling.timeout + PATIENCE_SECONDS + PLAY_SECONDS + (BOOT_SECONDS if name == "replicate" else 0)
        self._play(name, self._about(request) | values, timeout=limit, listener=listener).require_ok()

    def collect(self, request: BootRequest) -> dict[str, str]:
        """Returns the counters as text, by view; empty texts if the stack does not respond."""
        counters: dict[str, str] = self._play("collect", self._about(request)).require_ok().data["counters"]
        return counters

    def debugger(self, request: BootRequest) -> str:
        """Returns the threads of a stack, reported by it or, if it does not respond, by its host; empty if it does
        not run.
        """
        about: dict[str, object] = {"boot_id": request.boot_id, "prefix": request.prefix}
        threads: str = self._play("debugger", about, timeout=DEBUGGER_SECONDS).require_ok().data["debugger"]
        return threads

    def stop(self, request: BootRequest) -> dict[str, Any]:
        """Returns `exit_status`, `crashed` and `log`."""
        about: dict[str, object] = {"boot_id": request.boot_id, "topology": request.topology}
        return self._play("stop", about, cancellable=False).require_ok().data

    def restore(self) -> None:
        """Ends and removes all that the run left on the hosts; safe at any time."""
        self._play("restore", {}, timeout=PLAY_SECONDS + BOOT_SECONDS, cancellable=False).require_ok()

    def _about(self, request: BootRequest) -> dict[str, object]:
        about: dict[str, object] = {
            "boot_id": request.boot_id,
            "target": request.target,
            "topology": request.topology,
            "tunables": dict(request.tunables),
        }
        if request.layout:
            about["layout"] = request.layout
        return about | {"prefix": request.prefix} if request.prefix else about

    def _play(
        self,
        name: str,
        values: dict[str, object],
        *,
        timeout: float = PLAY_SECONDS,
        listener: Listener = driver.NO_LISTENER,
        cancellable: bool = True,
    ) -> driver.PlayResult:
        return driver.play(
            name,
            inventory=self.inventory,
            extra_vars={"run_id": self.run_id, **values},
            timeout=timeout,
            listener=listener,
            cancelled=self.cancelled if cancellable else None,
        )
