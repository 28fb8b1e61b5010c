"""multiprocessing by fork and spawn, pools, pipes, shared memory, process pools."""

import concurrent.futures
import multiprocessing
import os
import sys


def cube(n):
    return n ** 3


def talk(pipe):
    while (word := pipe.recv()) != "end":
        pipe.send(word.upper())
    pipe.close()


def bump(value, times):
    for _ in range(times):
        with value.get_lock():
            value.value += 1


def main():
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        with context.Pool(3) as pool:
            print(method, sum(pool.map(cube, range(200))))
        ours, theirs = context.Pipe()
        process = context.Process(target=talk, args=(theirs,))
        process.start()
        for word in ("one", "two"):
            ours.send(word)
            print(ours.recv())
        ours.send("end")
        process.join()
        print(process.exitcode)
    value = multiprocessing.Value("i", 0)
    workers = [multiprocessing.Process(target=bump, args=(value, 200)) for _ in range(4)]
    [one.start() for one in workers]
    [one.join() for one in workers]
    print(value.value)
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        print(list(pool.map(cube, range(10))))
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
