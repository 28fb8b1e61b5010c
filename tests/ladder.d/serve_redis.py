"""Starts redis as the guest and sends it requests on two connections, in turn and pipelined."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from served import Server, free_port  # noqa: E402

count, port = int(sys.argv[1]), free_port()
server = Server(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--logfile", "log",
                 "--daemonize", "no"], port)


def send(stream, *words):
    stream.write(f"*{len(words)}\r\n".encode() + b"".join(f"${len(word)}\r\n{word}\r\n".encode() for word in words))


def answer(stream):
    line = stream.readline().strip()
    if line[:1] == b"$":
        return stream.read(int(line[1:]) + 2)[:-2] if line != b"$-1" else None
    return line


links = [server.connect().makefile("rwb") for _ in range(2)]
right = 0
for i in range(count // 4):
    link = links[i % 2]
    send(link, "SET", f"key{i % 500}", f"value{i}")
    send(link, "INCR", "counter")
    send(link, "LPUSH", "list", str(i))
    send(link, "GET", f"key{i % 500}")
    link.flush()
    answers = [answer(link) for _ in range(4)]
    right += answers[0] == b"+OK" and answers[1] == f":{i + 1}".encode() and answers[3] == f"value{i}".encode()
send(links[0], "EVAL", "local s = 0 for i = 1, 100000 do s = s + i end return s", "0")
send(links[0], "BGSAVE")
links[0].flush()
print("lua", answer(links[0]), answer(links[0]))
print(f"{right * 4} requests answered right")
print("exit", server.stop())
