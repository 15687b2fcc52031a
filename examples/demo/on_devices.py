# SPDX-License-Identifier: MIT
"""The saved network on one or many devices, in one process: on_devices.py DEVICES."""

import sys

import numpy as np
from timing import report

import torchspan


def main():
    columns = np.load("columns.npy")
    with torchspan.load("net.pt2", devices=sys.argv[1]) as net:
        where = " + ".join(str(device) for device in net.devices)
        heating = report(where, lambda: net(columns))
    np.save("heating.npy", heating)


if __name__ == "__main__":
    main()
