# SPDX-License-Identifier: MIT
"""Ctrl-C ends a wait of the library, and other signals do not."""

import signal
import unittest

import support
from iris_c import _interrupt

# Rank 0 waits for rank 1, which waits for a line of input.
PROGRAM = """
try:
    print("begun", flush=True)
    if os.environ["IRIS_RANK"] == "0":
        {}
    else:
        input()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


class Interrupt(unittest.TestCase):
    def interrupt(self, program):
        processes = support.start(program, 2)
        for process in processes:
            self.assertEqual(process.stdout.readline(), "begun\n")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.stdout.readline(), "interrupted\n")
        self.assertEqual(support.finish(processes), ([0, 0], ["", ""]))

    def test_the_wait_for_ranks_that_do_not_come_ends(self):
        self.interrupt(PROGRAM.format("iris()"))

    def test_a_barrier_ends(self):
        self.interrupt("ctx = iris()\n" + PROGRAM.format("ctx.barrier()"))

    def test_a_handler_that_returns_lets_the_wait_go_on(self):
        ranks = support.start(
            """
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"handled\\n"))
ctx = iris()
print("begun", flush=True)
if ctx.get_rank() == 1: input()
ctx.barrier()
""",
            2,
        )
        self.assertEqual(ranks[0].stdout.readline(), "begun\n")
        ranks[0].send_signal(signal.SIGUSR1)
        self.assertEqual(ranks[0].stdout.readline(), "handled\n")
        self.assertEqual(ranks[1].communicate("\n")[0], "begun\n")
        self.assertEqual(support.finish(ranks[:1]), ([0], [""]))

    def test_no_place_in_the_check_loses_a_signal(self):
        def interrupt(_, frame):
            if frame.f_code.co_name == "_answers":
                raise KeyboardInterrupt

        check, ended = _interrupt._answers(), 0
        next(check)
        before = signal.signal(signal.SIGALRM, interrupt)
        for turn in range(100000):
            if turn % 40 == 0:
                signal.setitimer(signal.ITIMER_REAL, (1 + turn % 17) * 1e-6)
            ended += check.send(None)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        self.assertEqual(ended, len(_interrupt._raised))
        _interrupt._raised.clear()


if __name__ == "__main__":
    unittest.main()
