"""Runs a program on a terminal, answers its first question, and prints what it said: answer.py ANSWER PROGRAM WORD..."""

import os
import pty
import sys

answer, words = sys.argv[1], sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execv(words[0], words)
said, answered = b"", False
while True:
    try:
        more = os.read(terminal, 4096)
    except OSError:  # the other side is closed
        break
    if not more:
        break
    said += more
    if not answered and b"[y/N]" in said:
        answered = True
        os.write(terminal, answer.encode() + b"\n")
status = os.waitpid(child, 0)[1]
print(said.decode(errors="replace").replace("\r\n", "\n"))
print(f"exit {os.waitstatus_to_exitcode(status)}")
