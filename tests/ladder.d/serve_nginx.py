"""Starts nginx (a master and two workers) as the guest and asks it over keep-alive connections."""

import http.client
import os
import pathlib
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from served import Server, free_port  # noqa: E402

count, port, here = int(sys.argv[1]), free_port(), pathlib.Path.cwd()
(here / "nginx.conf").write_text(f"""
daemon off; worker_processes 2; pid {here}/pid; error_log {here}/error.log; user root;
events {{ worker_connections 64; }}
http {{
    access_log off; sendfile on; client_body_temp_path {here}/body; proxy_temp_path {here}/proxy;
    fastcgi_temp_path {here}/f; uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;
    server {{ listen 127.0.0.1:{port}; root {os.environ["CORPUS"]};
        location = /hello {{ return 200 "hello"; }} }}
}}
""")
server = Server(["nginx", "-c", str(here / "nginx.conf"), "-p", str(here), "-e", str(here / "error.log")], port)
expected = (pathlib.Path(os.environ["CORPUS"]) / "rows.csv").read_bytes()
right = []


def ask(requests):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for i in range(requests):
        path, status, body = [("/hello", 200, b"hello"), ("/missing", 404, None), ("/rows.csv", 200, expected)][2 if i % 100 == 99 else i % 10 == 9]
        link.request("GET", path)
        reply = link.getresponse()
        got = reply.read()
        right.append(reply.status == status and (body is None or got == body))
    link.close()


clients = [threading.Thread(target=ask, args=(count // 4,)) for _ in range(4)]
[one.start() for one in clients]
[one.join() for one in clients]
print(f"{sum(right)} requests answered right")
print("exit", server.stop())
