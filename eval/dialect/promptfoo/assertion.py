import importlib.util, inspect, asyncio, json, os, sys, traceback

# What the assertion prints goes to the standard error, so that only the score is on the standard output.
# An assertion that ends the program leaves the first line, which is no score, so the grader is in error.
verdict = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
print(json.dumps({"score": "the assertion ended the program"}), file=verdict, flush=True)

call = json.loads(sys.argv[1])
file = sys.argv[2] if len(sys.argv) > 2 else None
output, context = sys.stdin.read(), call["context"]
if "wrapped" in call:
    output = json.loads(output)["output"]
suite = os.environ.get("WAZA_SUITE_DIR") or "."
if "response" in call:
    response = {"output": output, "cached": False} if call["response"] else {}
    with open(os.environ["WAZA_TRANSCRIPT_FILE"], encoding="utf-8") as transcript:
        for entry in json.load(transcript):
            if entry["type"] == "metadata":
                response["metadata"] = context["metadata"] = json.loads(entry["text"])
    context["providerResponse"] = response


def function_of():
    if not file:
        code = call["code"].strip("\n")
        lines = code.split("\n") if "\n" in code else ["return " + code.strip()]
        names = {"__name__": "assertion", "json": json}
        exec("def get_assert(output, context):\n" + "\n".join("    " + line for line in lines), names)
        return names["get_assert"]
    full = os.path.join(suite, file)
    sys.path.insert(0, os.path.dirname(full))
    spec = importlib.util.spec_from_file_location("assertion", full)
    module = importlib.util.module_from_spec(spec)
    sys.modules["assertion"] = module
    spec.loader.exec_module(module)
    return getattr(module, call["function"])


def score_of(result):
    threshold = call.get("threshold")
    if isinstance(result, str):
        word = result.strip()
        if word.lower() in ("true", "false"):
            result = word.lower() == "true"
        else:
            result = json.loads(word)
    if isinstance(result, bool):
        return {"score": 1 if result else 0, "passed": result, "feedback": "the assertion is " + str(result)}
    if isinstance(result, (int, float)):
        passed = result > 0 if threshold is None else result >= threshold
        return {"score": result, "passed": passed, "feedback": "the assertion is " + str(result)}
    if isinstance(result, dict):
        passed = result.get("pass", result.get("pass_"))
        score = result["score"]
        if not isinstance(passed, bool) or isinstance(score, bool) or not isinstance(result.get("reason"), str):
            raise ValueError("pass must be True or False, score a number, and reason a text")
        if threshold is not None and score < threshold:
            passed = False
        return {"score": score, "passed": passed, "feedback": result["reason"]}
    raise ValueError("an assertion must return True, False, a number or a dict, got " + repr(result)[:200])


try:
    os.chdir(suite)
    result = function_of()(output, context)
    if inspect.isawaitable(result):
        result = asyncio.run(result)
    score = score_of(result)
    score["score"] = min(1, max(0, score["score"]))
    if call.get("inverse"):  # only of a result: an assertion that fails to decide never passes
        score["score"], score["passed"] = 1 - score["score"], not score["passed"]
except ImportError as fault:
    score = {"score": type(fault).__name__ + ": " + str(fault)}  # no score, so the grader is in error
except BaseException as fault:
    score = {"score": 0, "passed": False, "feedback": traceback.format_exception_only(type(fault), fault)[-1].strip()}
print("\n" + json.dumps(score), file=verdict, flush=True)
