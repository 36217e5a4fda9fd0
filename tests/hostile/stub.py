"""The hostile server on standard streams, as a client starts it: hands its streams to the harness and ends with it.

stub.py SOCKET
"""

import os
import socket
import sys

there = socket.socket(socket.AF_UNIX)
there.connect(sys.argv[1])
socket.send_fds(there, [str(os.getpid()).encode()], [0, 1, 2])
null = os.open(os.devnull, os.O_RDWR)
for stream in (0, 1, 2):
    os.dup2(null, stream)
there.recv(1)
