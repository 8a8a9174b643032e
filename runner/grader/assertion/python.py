"""Evaluates assertions: reads JSON requests from stdin and writes JSON replies to stdout, one per line."""
import builtins, json, math, os, re, sys, types


def take_streams():
    """Moves stdin and stdout to descriptors that assertions cannot print to or read from.

    Closes other descriptors that the program which started waza left open.
    """
    os.closerange(3, 1024)
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    return requests, replies


def set_limits():
    """Limits memory, and forbids core files and writing to files."""
    try:
        import resource
    except ImportError:
        return
    for name, most in (("RLIMIT_CORE", 0), ("RLIMIT_FSIZE", 0), ("RLIMIT_AS", 1 << 30)):
        try:
            limit = getattr(resource, name)
            hard = resource.getrlimit(limit)[1]
            if hard != resource.RLIM_INFINITY:
                most = min(most, hard)
            resource.setrlimit(limit, (most, most))
        except (AttributeError, ValueError, OSError):
            pass


def limit_cpu(seconds):
    """Lets this process use that many more seconds of processor time, in case nobody stops it."""
    try:
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(used.ru_utime + used.ru_stime) + seconds + 1
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))
    except (ImportError, AttributeError, ValueError, OSError):
        pass


requests, replies = take_streams()

SAFE = """abs all any ascii bin bool bytearray bytes callable chr complex dict dir divmod enumerate filter float format
frozenset getattr hasattr hash hex id int isinstance issubclass iter len list map max min next object oct ord pow print
range repr reversed round set slice sorted str sum tuple type zip""".split()
BUILTINS = {name: getattr(builtins, name) for name in SAFE}
BUILTINS.update(
    (name, value)
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, Exception)
)
MODULES = {"re": re, "json": json, "math": math}


def copy_module(name):
    """Returns a copy of the public names of a module, so that changes to it do not last."""
    own = MODULES[name]
    names = getattr(own, "__all__", None) or [n for n in dir(own) if not n.startswith("_")]
    return types.SimpleNamespace(**{n: getattr(own, n) for n in names})


class Record(dict):
    """A dict whose keys are also attributes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


# Names that older versions of the format used.
OLDER = {
    "tool_name": "name", "toolName": "name", "tool": "name", "args": "arguments", "input": "arguments",
    "parameters": "arguments", "content": "text", "message": "text", "output": "result", "event_type": "type",
}


class Entry(Record):
    """A tool call or an entry of the transcript, which also accepts older names."""

    def __missing__(self, key):
        newer = OLDER.get(key)
        if newer in self:
            return self[newer]
        raise KeyError(key)

    def get(self, key, default=None):
        try:
            return self[key]
        except KeyError:
            return default


def fresh(value, kind=Record):
    """Returns a copy that an assertion can change without effect on others."""
    if isinstance(value, dict):
        return kind((k, fresh(v)) for k, v in value.items())
    if isinstance(value, list):
        return [fresh(v, kind) for v in value]
    return value


USUAL_DEPTH = sys.getrecursionlimit()


def copy_part(subject, name):
    """Returns a part of the trial as assertions see it, however deeply the agent's output is nested."""
    sys.setrecursionlimit(12000)
    try:
        return fresh(subject[name], Entry if name in ("tool_calls", "transcript") else Record)
    finally:
        sys.setrecursionlimit(USUAL_DEPTH)


class Compiled:
    """An assertion ready to run, and the names it uses."""

    def __init__(self, source):
        text = source.strip()
        try:
            self.code = compile(text, "<assertion>", "eval", dont_inherit=True)
        except SyntaxError as fault:
            if "\n" not in text:
                raise
            try:
                self.code = compile("(" + text + "\n)", "<assertion>", "eval", dont_inherit=True)
            except SyntaxError:
                raise fault
        self.text = text
        self.names = set()
        pending = [self.code]
        while pending:
            code = pending.pop()
            self.names.update(code.co_names)
            pending.extend(c for c in code.co_consts if isinstance(c, types.CodeType))


cache = {}


def compiled(source):
    found = cache.get(source)
    if found is None:
        if len(cache) >= 1024:
            cache.clear()
        found = cache[source] = Compiled(source)
    return found


def scope(assertion, subject):
    names = {"__builtins__": dict(BUILTINS)}
    for name in assertion.names:
        if name in subject:
            names[name] = copy_part(subject, name)
        elif name in MODULES:
            names[name] = copy_module(name)
    return names


def clip(text, most=160):
    return text if len(text) <= most else text[:most] + "…"


FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)


def describe_values(node, names):
    """Describes the values in a false comparison, to show with the complaint."""
    import ast

    def value(n):
        return eval(compile(ast.Expression(n), "<assertion>", "eval", dont_inherit=True), names)

    if isinstance(node, ast.Expression):
        return describe_values(node.body, names)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for operand in node.values:
            if not value(operand):
                return describe_values(operand, names)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return describe_value(node.operand, value, always=False)
    if isinstance(node, ast.Compare):
        return ", ".join(filter(None, (describe_value(n, value) for n in [node.left] + node.comparators)))
    return ""


def describe_value(node, value, always=True):
    import ast

    if isinstance(node, (ast.Constant, ast.List, ast.Tuple, ast.Set)) or not hasattr(ast, "unparse"):
        return ""
    return ast.unparse(node) + " is " + clip(repr(value(node)))


def explain(assertion, subject):
    try:
        import ast

        return describe_values(ast.parse(assertion.text, mode="eval"), scope(assertion, subject))
    except BaseException:
        return ""


def evaluate(source, subject):
    """Returns the reason why an assertion failed, or an empty text if it is true."""
    try:
        assertion = compiled(source)
        value = eval(assertion.code, scope(assertion, subject))
        if isinstance(value, types.GeneratorType):
            return "is a generator, which is always true: put it into any(...) or all(...)"
        if hasattr(type(value), "__next__") or hasattr(type(value), "__anext__"):
            return "is an iterator, which is always true: put it into any(...) or all(...)"
        if isinstance(value, FUNCTIONS):
            return "is a function, which is always true: call it"
        if value:
            return ""
        why = explain(assertion, subject)
        return "is " + clip(repr(value)) + (" (" + clip(why, 400) + ")" if why else "")
    except BaseException as fault:
        return describe_fault(fault)


def describe_fault(fault):
    try:
        text = str(fault)
    except BaseException:
        text = ""
    name = type(fault).__name__
    return clip(name + ": " + text if text else name, 500)


def syntax_fault(source):
    try:
        Compiled(source)
        return None
    except SyntaxError as fault:
        line, column = fault.lineno or 0, fault.offset or 0
        if line == 1:
            column += len(source) - len(source.lstrip())
        line += source[: len(source) - len(source.lstrip())].count("\n")
        return {"message": clip(fault.msg or "invalid syntax", 300), "line": line, "column": column}
    except BaseException as fault:
        return {"message": describe_fault(fault), "line": 0, "column": 0}


def send(reply):
    data = (json.dumps(reply) + "\n").encode("ascii")
    while data:
        data = data[os.write(replies, data):]


def grade(request):
    for source in request["assertions"]:
        limit_cpu(request["cpuSeconds"])
        send({"complaint": evaluate(source, request["subject"])})


def main():
    set_limits()
    send({"ready": True, "executable": sys.executable or "", "version": list(sys.version_info[:3])})
    for line in requests:
        try:
            sys.setrecursionlimit(5000)
            request = json.loads(line.decode("utf-8", "replace"))
        except BaseException as fault:
            send({"fault": describe_fault(fault)})
            continue
        finally:
            sys.setrecursionlimit(USUAL_DEPTH)
        if "check" in request:
            send({"faults": [syntax_fault(source) for source in request["check"]]})
        else:
            grade(request)
    os._exit(0)


main()
