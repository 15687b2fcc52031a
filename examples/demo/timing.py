# SPDX-License-Identifier: MIT
"""How each run of the demo says where it ran and how long one call took."""

import time

CALLS = 5


def report(where, call, wait=lambda: None, say=print):
    """Call a few times, say the best time, and return the last result.

    Ranks start and stop together by ``wait``, and only one of them does ``say`` anything.
    """
    result = call()  # the first call also fills caches
    times = []
    for _ in range(CALLS):
        wait()
        start = time.perf_counter()
        result = call()
        wait()
        times.append(time.perf_counter() - start)
    say(f"ran on {where} in {min(times) * 1e3:.1f} ms")
    return result
