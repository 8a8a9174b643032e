import asyncio, importlib.util, inspect, json, os, sys, traceback

file, function = sys.argv[1:3]
path = os.path.abspath(file)

# What the program prints goes to the standard error, so that only answers are on the standard output.
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
mark, *lines = [line for line in sys.stdin.buffer.read().decode().split("\n") if line]

sys.path.insert(0, os.path.dirname(path))
spec = importlib.util.spec_from_file_location("program", path)
module = importlib.util.module_from_spec(spec)
sys.modules["program"] = module
spec.loader.exec_module(module)
called = getattr(module, function, None)
if not callable(called):
    sys.exit("it has no function " + function)

# A program that ends this process leaves calls without an answer.
for number, line in enumerate(lines):
    try:
        result = called(*json.loads(line))
        if inspect.isawaitable(result):
            result = asyncio.run(result)
        answer = json.dumps({"output": result}, ensure_ascii=False, allow_nan=False)
        answer.encode()
    except Exception as fault:
        answer = json.dumps({"error": traceback.format_exception_only(type(fault), fault)[-1].strip()})
    print("\n" + mark, number, len(answer.encode()), answer, file=answers, flush=True)
