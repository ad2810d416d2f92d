# SPDX-License-Identifier: BSD-2-Clause
"""Debian's Postfix on loopback, with a configuration and a queue of its own. Nothing is sent to other machines."""

import os
import re
import subprocess
import time
from pathlib import Path

from runners.services.supervisor import START_SECONDS, free_port

CONFIGURATION = """
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
maillog_file = {folder}/log
maillog_file_prefixes = {folder}
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.service.example
mydestination =
alias_maps =
local_recipient_maps =
relay_domains = service.example
smtpd_peername_lookup = no
default_transport = error:5.4.0 there is no other machine
queue_run_delay = 1s
minimal_backoff_time = 1s
maximal_backoff_time = 1s
transport_maps = inline:{{ {{{own}={transport}}} {{gone@example.org=local:}} }}
"""

QUEUE_MANAGER = "qmgr unix n - n 1 1 qmgr"
"""Wakes each second: a mail that it found "still being delivered" waits for its next wake, usually 300 s."""


class Postfix:
    """A mail server that delivers the mails to one address by a transport."""

    def __init__(self, folder: Path, own: str, transport: str, *services: str) -> None:
        self.folder, self.port = folder, free_port(30_925)
        conf = folder / "conf"
        for each in (conf, folder / "queue", folder / "data"):
            each.mkdir()
        (conf / "main.cf").write_text(
            CONFIGURATION.format(folder=folder, own=own, transport=transport), encoding="utf-8"
        )
        usual = Path("/usr/share/postfix/master.cf.dist").read_text(encoding="utf-8")
        port = f"127.0.0.1:{self.port} inet n - n - - smtpd"
        text = "\n".join([re.sub(r"(?m)^smtp +inet .*$", port, usual), QUEUE_MANAGER, *services])
        (conf / "master.cf").write_text(f"{text}\n", encoding="utf-8")
        _as_root("chown", "postfix", str(folder / "data"))

    def start(self) -> None:
        _as_root("postfix", "-c", str(self.folder / "conf"), "start")
        self.wait_for("daemon started")

    def stop(self) -> None:
        _as_root("postfix", "-c", str(self.folder / "conf"), "stop")

    def remove(self) -> None:
        _as_root("rm", "-rf", str(self.folder))

    def log(self) -> str:
        file = self.folder / "log"
        return _as_root("cat", str(file)) if file.exists() else ""

    def wait_for(self, pattern: str, times: int = 1) -> None:
        """Wait until the log has lines with a pattern."""
        deadline = time.monotonic() + START_SECONDS
        while len(re.findall(pattern, self.log())) < times:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no {pattern}: {self.log()}")
            time.sleep(0.1)


def _as_root(*command: str) -> str:
    """Postfix is started by root, and runs as other users."""
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    done = subprocess.run([*prefix, *command], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stdout} {done.stderr}")
    return done.stdout
