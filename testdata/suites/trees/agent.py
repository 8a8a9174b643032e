"""Starts a child that sleeps in its own session and holds on to every pipe, and says its number."""
import json
import os
import subprocess
import sys

prompt = sys.stdin.read()
child = subprocess.Popen(["sleep", "600"], start_new_session=True, pass_fds=[3])
print("child", child.pid, flush=True)
with os.fdopen(3, "w") as events:
    events.write(json.dumps({"type": "message", "text": f"child {child.pid}"}) + "\n")
if "wait" in prompt:
    child.wait()
os._exit(0)
