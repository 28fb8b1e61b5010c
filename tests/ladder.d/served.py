"""What the drivers of servers share: the guest's command prefix, a free port, start and stop."""

import os
import shlex
import signal
import socket
import subprocess
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A guest server, started with `$RUN` before its command and asked to end with SIGTERM."""

    def __init__(self, command, port):
        words = shlex.split(os.environ.get("RUN", "")) + command
        self.process, self.port = subprocess.Popen(words), port
        end = time.monotonic() + 60
        while True:
            try:
                self.connect().close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.process.kill()
                    raise SystemExit(f"the server did not come up: {self.process.poll()}")
                time.sleep(0.05)

    def connect(self):
        made = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(60)
