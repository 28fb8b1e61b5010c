"""Serves the corpus natively on loopback; curl is the guest."""

import functools
import hashlib
import http.server
import os
import shlex
import subprocess
import threading

handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=os.environ["CORPUS"])
handler.func.log_message = lambda *_: None
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
run = shlex.split(os.environ.get("RUN", ""))
base = f"http://127.0.0.1:{server.server_port}"
for words in (["-s", f"{base}/rows.csv"], ["-sS", "--parallel", f"{base}/text", f"{base}/data.json"],
              ["-s", "-o", "/dev/null", "-w", "%{http_code} %{size_download}", f"{base}/none"], ["-s", "http://127.0.0.1:1/"]):
    done = subprocess.run([*run, "curl", *words], capture_output=True)
    lines = sorted(done.stdout.splitlines())
    print(done.returncode, hashlib.sha256(b"\n".join(lines)).hexdigest()[:16])
