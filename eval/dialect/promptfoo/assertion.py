# waza: an assertion in Python
import asyncio, copy, importlib.util, inspect, json, os, sys, traceback

# The verdict goes to a channel that only this process can use, so that programs that the assertion starts cannot give one. Elsewhere
# than on Linux it is the last line of the standard output. The standard output of the assertion is the standard error.
channel = os.environ.get("WAZA_RESULT_FD")
line = "%s" if channel else "\n%s\n"
channel = int(channel) if channel else os.dup(1)
own = os.getpid()
os.dup2(2, 1)


def say(verdict, write=os.write, dumps=json.dumps):
    write(channel, (line % dumps(verdict)).encode())


def undecided(reason):
    return {"score": None, "error": str(reason)[:4000]}


def stop(reason, exit=os._exit):
    say(undecided(reason))
    exit(0)


# An assertion that ends the program leaves this verdict, which makes the grader an error.
say(undecided("the assertion ended the program"))


class Guarded(dict):
    """A dict whose missing parts end the program as an error: waza does not know their values."""

    def __init__(self, parts, name, missing):
        super().__init__(parts)
        self._check = lambda key: stop("its code needs %s[%r], which waza does not have" % (name, key)) if key not in parts and missing(key) else None
        self._list = lambda: stop("its code lists the parts of %s, and waza does not have all of them" % name)

    def __getitem__(self, key):
        self._check(key)
        return super().__getitem__(key)

    def get(self, key, other=None):
        self._check(key)
        return super().get(key, other)

    def __contains__(self, key):
        self._check(key)
        return super().__contains__(key)

    def pop(self, key, *other):
        self._check(key)
        return super().pop(key, *other)

    def setdefault(self, key, value=None):
        self._check(key)
        return super().setdefault(key, value)

    def __iter__(self):
        return self._list()

    keys = values = items = copy = __len__ = __reversed__ = __or__ = __ror__ = __eq__ = lambda self, *other: self._list()
    __bool__ = lambda self: True


def context_of(output):
    context, missing = call["context"], call["missing"]["context"]
    context["test"].setdefault("vars", copy.deepcopy(context["vars"]))
    context["test"] = Guarded(context["test"], 'context["test"]', lambda key: key in call["missing"]["test"])
    if "response" in call:
        missing = [key for key in missing if key not in ("metadata", "providerResponse")]
        response = {"output": output, "cached": False} if call["response"] else {}
        with open(os.environ["WAZA_TRANSCRIPT_FILE"], encoding="utf-8") as transcript:
            for entry in json.load(transcript):
                if entry["type"] == "metadata":
                    response["metadata"] = context["metadata"] = json.loads(entry["text"])
        context["providerResponse"] = Guarded(response, 'context["providerResponse"]', lambda key: key != "metadata")
    return Guarded(context, "context", lambda key: key in missing)


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
    called = getattr(module, call["function"], None)
    if not callable(called):
        raise TypeError(file + " has no function " + call["function"])
    return called


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
        if result != result:
            raise ValueError("an assertion must return True, False, a number or a dict, got NaN")
        passed = result > 0 if threshold is None else result >= threshold
        return {"score": result, "passed": passed, "feedback": "the assertion is " + str(result)}
    if isinstance(result, dict):
        passed = result.get("pass", result.get("pass_"))
        score = result["score"]
        if not isinstance(passed, bool) or isinstance(score, bool) or score != score or not isinstance(result.get("reason"), str):
            raise ValueError("pass must be True or False, score a number, and reason a text")
        if threshold is not None and score < threshold:
            passed = False
        return {"score": score, "passed": passed, "feedback": result["reason"]}
    raise ValueError("an assertion must return True, False, a number or a dict, got " + repr(result)[:200])


def reason_of(fault):
    return traceback.format_exception_only(type(fault), fault)[-1].strip()


def verdict_of():
    try:
        called = function_of()
    except BaseException as fault:
        if file or not isinstance(fault, SyntaxError):
            return undecided(reason_of(fault))
        return {"score": 0, "passed": False, "feedback": reason_of(fault)}
    try:
        result = called(output, context)
        if inspect.isawaitable(result):
            result = asyncio.run(result)
        score = score_of(result)
        score["score"] = min(1, max(0, score["score"]))
        if call.get("inverse"):  # only of a result: an assertion that fails to decide never passes
            score["score"], score["passed"] = 1 - score["score"], not score["passed"]
        score["feedback"] = score["feedback"][:4000]
        return score
    except ImportError as fault:
        return undecided(reason_of(fault))
    except BaseException as fault:
        return {"score": 0, "passed": False, "feedback": reason_of(fault)[:2000]}


file, call = sys.argv[1], json.loads("".join(sys.argv[2:]))
output = sys.stdin.read()
if "wrapped" in call:
    output = json.loads(output)["output"]
suite = os.environ.get("WAZA_SUITE_DIR") or "."
context = context_of(output)
os.chdir(suite)
verdict = verdict_of()
if os.getpid() == own:
    say(verdict)
