#!/usr/bin/env -S python3 -E
# A `#!` line with arguments, through env, into an interpreter found on PATH.
import os
import sys
print(os.path.basename(sys.argv[0]), sys.flags.ignore_environment, sum(range(1000)))
print(os.path.basename(open("/proc/self/cmdline").read().split("\0")[2]))
