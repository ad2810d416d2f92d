# SPDX-License-Identifier: BSD-2-Clause
"""Debian's Dovecot on loopback, with a private configuration, one user and no privileges."""

import grp
import os
import pwd
import shutil
import subprocess
import time
from pathlib import Path

from perfweb.mail.imap import Mailbox
from runners.services.supervisor import START_SECONDS, _as_user, free_port

USER, PASSWORD = "perf", "correct-horse-battery"
CONFIGURATION = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
protocols = imap
auth_failure_delay = 0
listen = 127.0.0.1
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 1
ssl = required
ssl_cert = <{folder}/certificate
ssl_key = <{folder}/key
service imap-login {{
  chroot =
  inet_listener imap {{
    port = 0
  }}
  inet_listener imaps {{
    port = {port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
mail_location = maildir:{folder}/mail
namespace inbox {{
  inbox = yes
  mailbox Taken {{
    auto = create
  }}
}}
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={folder}
}}
"""


class Dovecot:
    """A mail server that can be stopped and restarted; its mails are kept."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port(30_993)
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        # Dovecot does not run users' sessions as root.
        own = pwd.getpwnam("dovecot") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
        self.user, group = own.pw_name, grp.getgrgid(own.pw_gid).gr_name
        names = {"folder": folder, "port": self.port, "user": self.user, "group": group, "password": PASSWORD}
        (folder / "conf").write_text(CONFIGURATION.format(**names), encoding="utf-8")
        (folder / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(folder / "key")]
        names_it = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        certificate = ["openssl", "req", "-x509", "-days", "2", *key, *names_it, "-out", str(folder / "certificate")]
        subprocess.run(certificate, check=True, capture_output=True)
        if os.geteuid() == 0:
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, own.pw_uid, own.pw_gid)

    @property
    def box(self) -> Mailbox:
        files = {"password_file": str(self.folder / "password"), "authorities": str(self.folder / "certificate")}
        return Mailbox("127.0.0.1", self.port, USER, **files)

    def start(self) -> None:
        self.process = subprocess.Popen(
            [*_as_user(self.user, self.folder), "dovecot", "-F", "-c", str(self.folder / "conf")]
        )
        deadline = time.monotonic() + START_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                self.box.open().logout()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError((self.folder / "log").read_text(encoding="utf-8"))

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def put(self, *mails: bytes) -> None:
        """Deliver mails."""
        with self.box.open() as client:
            for mail in mails:
                client.append("INBOX", mail)

    def empty(self) -> None:
        """Delete all mails."""
        for folder in ("INBOX", "Taken"):
            with self.box.open() as client:
                client.select_folder(folder)
                client.delete_messages(client.search())
                client.expunge()

    def unseen(self, folder: str = "INBOX") -> int:
        with self.box.open() as client:
            client.select_folder(folder, readonly=True)
            return len(client.search("UNSEEN"))

    def seen(self, folder: str = "INBOX") -> int:
        with self.box.open() as client:
            client.select_folder(folder, readonly=True)
            return len(client.search("SEEN"))
