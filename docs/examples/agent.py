"""An evaluation agent for `waza serve`, without any package. Replace chat with your agent.
  python3 docs/examples/agent.py ws://127.0.0.1:8080"""
import json, os, random, socket, struct, sys, threading, time, uuid
from urllib.parse import urlparse
url = urlparse(sys.argv[1] if len(sys.argv) > 1 else "ws://127.0.0.1:8080")
client_id = os.environ.get("AGENT_ID") or str(uuid.uuid4())  # the same after each reconnect

def chat(input, evaluation):
    return "You said: " + input["message"]
TOOLS = {"chat": chat}
CAPABILITIES = {"tools": list(TOOLS), "maxConcurrency": 4, "version": "1.0.0"}

class WebSocket:
    """The necessary part of RFC 6455. Methods raise OSError when the connection is closed."""
    def __init__(self):
        self.lock, self.socket = threading.Lock(), socket.create_connection((url.hostname, url.port or 80), 90)
        self.stream = self.socket.makefile("rb")
        self.socket.sendall((f"GET {url.path or '/'} HTTP/1.1\r\nHost: {url.netloc}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").encode())
        if b" 101 " not in self.stream.readline(): raise OSError("the server does not speak WebSocket")
        while self.stream.readline().strip(): pass
    def send(self, message, opcode=1):
        data, mask = message if opcode != 1 else json.dumps(message).encode(), os.urandom(4)
        size = struct.pack("!B", 128 | len(data)) if len(data) < 126 else struct.pack("!BQ", 255, len(data))
        with self.lock: self.socket.sendall(bytes([128 | opcode]) + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))
    def read(self, n):
        data = self.stream.read(n)
        if len(data) < n: raise OSError("the connection is closed")
        return data
    def messages(self):
        text = b""
        while True:
            first, n = self.read(2)
            data = self.read(n if n < 126 else int.from_bytes(self.read(2 if n == 126 else 8), "big"))
            if first & 15 == 8: raise OSError("the server closed the connection")
            if first & 15 == 9: self.send(data, 10)
            if first & 15 < 2: text += data
            if first & 15 < 2 and first & 128: text, whole = b"", text; yield json.loads(whole)

def evaluate(ws, id, params):
    try: result = {"result": {"status": "success", "output": TOOLS[params["tool"]](params["input"], params)}}
    except Exception as e: result = {"error": {"code": -32000, "message": "Tool execution failed", "data": {"error": repr(e)}}}
    ws.send({"jsonrpc": "2.0", "id": id, **result})

def pings(ws):
    while True: time.sleep(30); ws.send({"type": "ping"})

def connect():
    ws = WebSocket()
    threading.Thread(target=pings, args=(ws,), daemon=True).start()
    for m in ws.messages():
        if m.get("type") == "welcome": ws.send({"type": "register", "clientId": client_id, "secretKey": os.environ.get("WAZA_AGENT_KEY"), "capabilities": CAPABILITIES})
        if m.get("status") == "accepted": ws.send({"type": "ready"})
        if m.get("method") == "evaluate": threading.Thread(target=evaluate, args=(ws, m["id"], m["params"]), daemon=True).start()

threading.excepthook = lambda args: None  # the threads of a connection end with it
while True:
    try: connect()
    except (OSError, ValueError) as e: print(e, file=sys.stderr)
    time.sleep(random.uniform(1, 5))
