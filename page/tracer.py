"""The tracer: runs a function and notes what each line of one source file makes.

Python calls a function of ours before each line that it runs (sys.settrace). When the next line
is about to run, the line before has done its work, and the names that it assigns to are looked up.
"""

import ast
import collections
import dataclasses
import sys


@dataclasses.dataclass(eq=False)
class Call:
    """One call of a function, with everything that its lines made, in order."""

    function: str
    caller: "Call | None"
    line: int  # the line of the caller that made the call; 0 without a caller
    nth: int  # 0 for the first call of this function by this caller, 1 for the second, ...
    made: list = dataclasses.field(default_factory=list)  # (line, name, summary) of each value
    running: "ast.stmt | None" = None  # the statement that runs now
    returning: "ast.Return | None" = None  # the return statement that was reached

    def summaries(self, name):
        """The summaries of all values that were given this name, in order."""
        return [summary for _, made_name, summary in self.made if made_name == name]

    @property
    def first_argument(self):
        return self.made[0][2]

    @property
    def returned(self):
        return self.summaries("return")[0]


def statements_by_line(tree):
    """The innermost statement that each line belongs to: dict line -> ast.stmt.

    A statement with a body, such as `for`, owns only the lines before the body.
    """
    owner = {}
    for node in ast.walk(tree):  # from the outside in, so that inner statements win
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno
            owner.update(dict.fromkeys(range(node.lineno, last + 1), node))
    return owner


def target_names(target):
    """The names that an assignment to `target` binds, or whose array it changes."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for element in target.elts for name in target_names(element)]
    if isinstance(target, ast.Name):
        return [target.id]
    return target_names(target.value)  # keys[...], *rest


def names_made(statement):
    """The names that a statement binds, or whose array it changes in place."""
    targets = list(getattr(statement, "targets", []))
    if isinstance(statement, (ast.For, ast.AugAssign, ast.AnnAssign)):
        targets.append(statement.target)
    if isinstance(statement, ast.With):
        targets += [item.optional_vars for item in statement.items if item.optional_vars]
    if not hasattr(statement, "body"):
        for node in ast.walk(statement):
            if isinstance(node, ast.keyword) and node.arg == "out":  # np.tanh(y, out=y)
                targets.append(node.value)
            if isinstance(node, ast.NamedExpr):
                targets.append(node.target)
    return list(dict.fromkeys(name for target in targets for name in target_names(target)))


def trace(run, path, summarize):
    """Calls run(), and returns a list of Call: what the lines of the file at `path` made.

    summarize(call, name, value) is called for each argument, for each name that a line binds or
    whose array it changes, and with the names "return" and "yield" for what a function returns or
    yields. What it returns is kept, unless it is None. It is called at once, because a later line
    may overwrite the array.
    """
    with open(path, encoding="utf-8") as file:
        owner = statements_by_line(ast.parse(file.read()))
    calls, call_of, times = [], {}, collections.Counter()

    def note(call, line, name, value):
        summary = summarize(call, name, value)
        if summary is not None:
            call.made.append((line, name, summary))

    def finish(call, frame, next_line):
        """Notes what the statement that has just run made. The next one is at next_line."""
        made = call.running
        if isinstance(made, ast.For) and not made.lineno < next_line <= made.end_lineno:
            return  # the loop is over, and its names were not bound again
        for name in names_made(made) if made else ():
            if name in frame.f_locals:
                note(call, made.lineno, name, frame.f_locals[name])

    def on_line(frame, event, value):  # "line" comes before a line runs
        call, statement = call_of[frame], owner.get(frame.f_lineno)
        if event == "exception":
            call.running = call.returning = None
        elif event == "line" and statement is not call.running:
            finish(call, frame, frame.f_lineno)
            call.running = statement
            call.returning = statement if isinstance(statement, ast.Return) else call.returning
        elif event == "return":
            if any(isinstance(node, ast.Yield) for node in own_expressions(call.running)):
                note(call, call.running.lineno, "yield", value)
                return on_line
            del call_of[frame]
            finish(call, frame, 0)
            if call.returning:
                note(call, call.returning.lineno, "return", value)
        return on_line

    def on_call(frame, event, _):
        code = frame.f_code
        if code.co_filename != path or code.co_name.startswith("<"):
            return None
        if frame not in call_of:  # else a generator that goes on
            outer = frame.f_back
            while outer and outer not in call_of:
                outer = outer.f_back
            caller, line = call_of.get(outer), outer.f_lineno if outer else 0
            nth = times[caller, code.co_name]
            times[caller, code.co_name] += 1
            call = call_of[frame] = Call(code.co_name, caller, line, nth)
            calls.append(call)
            for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
                note(call, code.co_firstlineno, name, frame.f_locals[name])
        return on_line

    previous = sys.gettrace()
    sys.settrace(on_call)
    try:
        run()
    finally:
        sys.settrace(previous)
    return calls


def own_expressions(statement):
    """The expressions in a statement; none for a statement with a body, or for None."""
    return ast.walk(statement) if statement and not hasattr(statement, "body") else ()
