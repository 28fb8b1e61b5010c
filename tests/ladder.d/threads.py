"""Threads, locks, queues, timers, signals to the main thread, thread pools."""

import concurrent.futures
import os
import queue
import signal
import threading

counter, lock = 0, threading.Lock()


def add():
    global counter
    for _ in range(3000):
        with lock:
            counter += 1


workers = [threading.Thread(target=add) for _ in range(8)]
[one.start() for one in workers]
[one.join() for one in workers]
print(counter)
jobs, results = queue.Queue(), queue.Queue()


def serve():
    while (job := jobs.get()) is not None:
        results.put(job * job)


servers = [threading.Thread(target=serve) for _ in range(4)]
[one.start() for one in servers]
[jobs.put(n) for n in range(500)]
[jobs.put(None) for _ in servers]
[one.join() for one in servers]
print(sum(results.get() for _ in range(500)))
caught = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: caught.set())
threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1)).start()
print(caught.wait(20))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(lambda n: n ** 3 % 7, range(20))))
barrier = threading.Barrier(4)
order = []
parties = [threading.Thread(target=lambda: (barrier.wait(), order.append(1))) for _ in range(4)]
[one.start() for one in parties]
[one.join() for one in parties]
print(len(order), threading.active_count() >= 1)
