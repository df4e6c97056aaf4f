"""The tracer notes every name that a line makes, when it makes it, and nothing that it does not."""

from page.tracer import trace

PROGRAM = '''
import numpy as np

def outer(n):
    """Doc."""
    a = np.zeros(
        n,
    )
    a += 1
    np.add(a, 1, out=a)
    b, (c, *d) = a, [inner(a), 2, 3]
    b[0] = 7.0
    for i in range(2):
        e = i
    with np.errstate(over="ignore"):
        return a if c else None

def inner(x):
    try:
        y = 1 / 0
    except ZeroDivisionError:
        y = 5
    return (z := y)

def steps():
    for i in range(2):
        yield i * 10
    last = [j for j in range(3)]
'''


def test_the_tracer_notes_each_line(tmp_path):
    """The program changes arrays in place, unpacks, loops, catches an exception, and yields."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    names = {}
    exec(compile(PROGRAM, str(path), "exec"), names)

    def run():
        names["outer"](2)
        list(names["steps"]())

    calls = trace(run, str(path), lambda call, name, value: repr(value))
    outer, inner, steps = calls
    assert (inner.caller, inner.line, inner.nth) == (outer, 11, 0)
    changed = "array([7., 2.])"
    assert outer.made == [
        (4, "n", "2"),
        (6, "a", "array([0., 0.])"),
        (9, "a", "array([1., 1.])"),
        (10, "a", "array([2., 2.])"),
        (11, "b", "array([2., 2.])"),
        (11, "c", "5"),
        (11, "d", "[2, 3]"),
        (12, "b", changed),
        (13, "i", "0"),
        (14, "e", "0"),
        (13, "i", "1"),
        (14, "e", "1"),
        (16, "return", changed),
    ]
    assert inner.made[1:] == [(22, "y", "5"), (23, "z", "5"), (23, "return", "5")]
    assert steps.made == [
        (26, "i", "0"),
        (27, "yield", "0"),
        (26, "i", "1"),
        (27, "yield", "10"),
        (28, "last", "[0, 1, 2]"),
    ]
