import asyncio, importlib.util, inspect, json, os, sys

file, function, config = sys.argv[1:4]
path = os.path.join(os.environ.get("WAZA_SUITE_DIR", ""), file)
prompt = sys.stdin.read()
context = json.loads(os.environ.get("WAZA_CONTEXT") or "{}")

# What the provider prints goes to the standard error, so that only the answer is on the standard output.
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


# A provider that ends the program gave no answer: its exit code must not be 0. Processes that it forks end as they want.
def end(code, exit=os._exit, own=os.getpid()):
    exit(code or 1 if os.getpid() == own else code)


os._exit = end
sys.path.insert(0, os.path.dirname(path))
spec = importlib.util.spec_from_file_location("provider", path)
module = importlib.util.module_from_spec(spec)
try:
    spec.loader.exec_module(module)
    result = getattr(module, function)(prompt, {"id": "file://" + file, "config": json.loads(config)}, context)
    if inspect.isawaitable(result):
        result = asyncio.run(result)
except SystemExit as ended:
    sys.exit(ended.code or "the provider ended without an answer")
if not isinstance(result, dict):
    sys.exit("the provider must return a dict with output, got " + type(result).__name__)
if result.get("error"):
    sys.exit(str(result["error"]))
if not isinstance(result.get("output"), str):
    sys.exit("the output of the provider must be a text, got " + type(result.get("output")).__name__)


# JSON has no NaN and no infinity.
def plain(value):
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


if result.get("metadata") is not None:
    if not isinstance(result["metadata"], dict):
        sys.exit("the metadata of the provider must be a dict, got " + type(result["metadata"]).__name__)
    line = (json.dumps({"type": "metadata", "metadata": plain(result["metadata"])}, default=str) + "\n").encode()
    while line:
        line = line[os.write(3, line):]
usage = result.get("tokenUsage") or {}
if usage:
    event = {"type": "usage", "input_tokens": usage.get("prompt", 0), "output_tokens": usage.get("completion", 0), "total_tokens": usage.get("total", 0)}
    os.write(3, (json.dumps({**event, "cost_usd": result.get("cost") or 0}) + "\n").encode())
print(result["output"], file=answer, flush=True)
