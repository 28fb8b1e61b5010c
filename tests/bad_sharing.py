"""Programs that share memory with processes that are not recorded: refused with one line before they do,
or told of afterwards, unless the others can only read. This script is the other process.

The guest says that it is ready, so that what is made then is younger than the recording, waits for a
line, and shares what the line names.
"""

import array
import ctypes
import os
import pathlib
import socket
import subprocess

import recordings

LIMIT = 60
REFUSED = 2
LIBC = ctypes.CDLL(None, use_errno=True)

BEGIN = "import array, ctypes, mmap, os, socket, sys; print('ready', flush=True); name = sys.stdin.readline().strip(); "
GUESTS = {
    "file": BEGIN + "file = open(name, 'r+b'); memory = mmap.mmap(file.fileno(), 4096)",
    "descriptor": BEGIN + "peer = socket.socket(socket.AF_UNIX); peer.connect(name); "
                          "memory = mmap.mmap(socket.recv_fds(peer, 1, 1)[1][0], 4096)",
    "segment": BEGIN + "libc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p; "
                       "libc.shmat(int(name), None, 0)",
    "own segment twice": BEGIN + "libc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p; "
                                 "number = libc.shmget(0, 4096, 0o1600); libc.shmat(number, None, 0); "
                                 "libc.shmctl(number, 0, None); libc.shmat(number, None, 0)",
    "opened later": "import mmap, os, sys; file = open('/dev/shm/whydunit-test-guest', 'w+b'); file.truncate(4096); "
                    "memory = mmap.mmap(file.fileno(), 4096); print('ready', flush=True); "
                    "sys.stdin.readline(); memory[0] = 1; sys.stdin.readline(); print(memory[0])",
    "handed over": BEGIN + "memory = os.memfd_create('guest'); os.ftruncate(memory, 4096); "
                           "view = mmap.mmap(memory, 4096); peer = socket.socket(socket.AF_UNIX); peer.connect(name); "
                           "socket.send_fds(peer, [b'x'], [memory])",
    "handed over before": BEGIN + "memory = os.memfd_create('guest'); os.ftruncate(memory, 4096); "
                                  "peer = socket.socket(socket.AF_UNIX); peer.connect(name); "
                                  "socket.send_fds(peer, [b'x'], [memory]); view = mmap.mmap(memory, 4096)",
    "handed over to read": BEGIN + "import fcntl; memory = os.memfd_create('guest', os.MFD_ALLOW_SEALING); "
                                   "os.ftruncate(memory, 4096); view = mmap.mmap(memory, 4096); "
                                   "fcntl.fcntl(memory, fcntl.F_ADD_SEALS, 0x10); "
                                   "peer = socket.socket(socket.AF_UNIX); peer.connect(name); "
                                   "socket.send_fds(peer, [b'x'], [memory])",
    "private file": "import mmap, sys; file = open('mapped', 'rb'); "
                    "memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ); "
                    "print('ready', flush=True); sys.stdin.readline()",
}


def check(tool, folder, tally):
    for name, (words, share) in SHARED.items():
        tally.say(f"shared with outsiders: {name}", problem(tool, folder, name, words, share))


def problem(tool, folder, name, words, share):
    """What is wrong with how a recording of a guest that shares something ended, or None."""
    command = recordings.record_words(tool, folder / "shared.whydunit") + ["python3", "-I", "-c", GUESTS[name]]
    (folder / "mapped").write_bytes(b"before" * 1000)
    guest = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with guest:
        if guest.stdout.readline() != b"ready\n":
            guest.kill()
            return f"did not start: {guest.stderr.read().decode()[-300:]}"
        try:
            _, said = share(folder, lambda line: guest.communicate(line.encode() + b"\n", LIMIT))
        except subprocess.TimeoutExpired:
            guest.kill()
            return "out of time"
    said = said.decode(errors="replace")
    lines = [line for line in said.splitlines() if line.startswith("whydunit: ")]
    expected = 0 if words is None or name == "private file" else REFUSED
    if guest.returncode != expected:
        return f"ended with {guest.returncode}, not {expected}: {said[-300:]}"
    if words is None:
        return f"says {lines}" if lines else None
    if len(lines) != 1 or words not in lines[0]:
        return f"does not say '{words}' in one line: {lines}"
    return None


# ---- what the other process does ---------------------------------------------------------------

def share_file(_, tell):
    path = pathlib.Path("/dev/shm") / f"whydunit-test-{os.getpid()}"
    path.write_bytes(bytes(4096))
    try:
        return tell(str(path))
    finally:
        path.unlink()


def share_descriptor(folder, tell):
    memory = os.memfd_create("outside")
    os.ftruncate(memory, 4096)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "peer"))
    listener.listen()
    child = os.fork()
    if child == 0:
        peer, _ = listener.accept()
        peer.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory]))])
        os._exit(0)
    try:
        return tell(str(folder / "peer"))
    finally:
        listener.close()
        os.close(memory)
        os.waitpid(child, 0)


def take_descriptor(folder, tell):
    path = folder / "taker"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        return tell(str(path))


def share_segment(_, tell):
    number = LIBC.shmget(0, 4096, 0o1600)
    try:
        return tell(str(number))
    finally:
        LIBC.shmctl(number, 0, None)


def share_nothing(_, tell):
    return tell("")


def open_later(_, tell):
    path = pathlib.Path("/dev/shm/whydunit-test-guest")
    try:
        with path.open("r+b") as file:
            file.write(b"x")
            return tell("")
    finally:
        path.unlink()


def change_file(folder, tell):
    with open(folder / "mapped", "r+b") as file:
        file.write(b"after")
    return tell("")


SHARED = {
    "file": ("which they can write at any time", share_file),
    "descriptor": ("which they can write at any time", share_descriptor),
    "segment": ("which they can write at any time", share_segment),
    "own segment twice": ("at a second place", share_nothing),
    "opened later": ("has opened /dev/shm/", open_later),
    "handed over": ("through a socket", take_descriptor),
    "handed over before": ("which they can write at any time", take_descriptor),
    "handed over to read": (None, take_descriptor),
    "private file": ("was changed by another process while it was mapped", change_file),
}
