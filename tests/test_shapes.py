"""Every shape comment of gpt2.py is compared with the arrays that its line really makes.

The tracer of walkthrough.py runs gpt2.py in the situations of `everything`, with the bundled
model and with a random one in which no two dimensions are alike. A comment is true if the array
had its shape each time; a letter means the same number all through one call of the function that
it stands in (in `generate`, all through one step: from one yield to the next).

    # [B, H, T, 4C]         letters of the legend at the top of gpt2.py, numbers, multiples
    # [..., C]              any axes, then C
    # [1, S], later [B, S]  the first shape, and from some time on the second
"""

import ast
import dataclasses
import importlib.util
import io
import re
import tokenize

import numpy as np
import pytest
from conftest import ROOT, random_params

import model_names
import utils
from page.tracer import statements_by_line, trace

SOURCE = (ROOT / "gpt2.py").read_text(encoding="utf-8")
SIZES = {"V": 41, "C": 28, "L": 2, "H": 4, "D": 7}  # B, T and S are chosen in `everything`
N_CTX = 24


# ---- What gpt2.py says ---------------------------------------------------------------------


@dataclasses.dataclass
class Claim:
    """The shapes that a comment or the first line of a docstring gives."""

    line: int  # of the comment
    text: str
    made_at: int  # line of the statement that makes the array
    names: str | None  # the only name it is about, None for all that the statement makes

    @property
    def forms(self):
        """The shapes in the order they take turns, each a list such as ["B", "T", "4C"]."""
        first, *rest = re.split(r", later (?=\[)", self.text)
        brackets = [re.search(r"\[(.*?)\]", part)[1] for part in [first, *rest]]
        return [[axis.strip() for axis in inside.split(",") if axis.strip()] for inside in brackets]


def claims_of(source):
    """All shape comments of a program, and the shapes at the end of docstrings' first lines."""
    owner = statements_by_line(ast.parse(source))
    claims = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and re.match(r"#\s*\[.*\]", token.string):
            line = token.start[0]
            claims.append(Claim(line, token.string, owner[line].lineno, None))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            docstring = (ast.get_docstring(node) or "").split("\n")[0]
            stated = re.search(r"[:,] (?:int |bool )?(\[[^\]]*\])\.$", docstring)
            if stated:
                claims += [
                    Claim(node.body[0].lineno, stated[1], inner.lineno, "return")
                    for inner in ast.walk(node)
                    if isinstance(inner, ast.Return)
                ]
    return claims


def legend_of(source):
    """The letters that the module's docstring explains."""
    return set(re.findall(r"(?m)(?:^    |  )([A-Z])  (?=\w)", ast.get_docstring(ast.parse(source))))


COMMENTS = [claim for claim in claims_of(SOURCE) if claim.names is None]


# ---- What gpt2.py does ---------------------------------------------------------------------


def load(path):
    """A module from a file of any name."""
    spec = importlib.util.spec_from_file_location("traced_gpt2", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def everything(gpt2, params, n_head):
    """Runs all of gpt2.py in all situations that can give an array another shape."""
    n_vocab, n_ctx = len(params["wte"]), len(params["wpe"])
    ids = np.random.default_rng(0).integers(n_vocab, size=(3, 20))
    model = dict(params, n_head=n_head)

    _, cache = gpt2.gpt2(ids[:1, :5], **model)
    _, cache = gpt2.gpt2(ids[:1, 5:6], **model, cache=cache)
    _, longer = gpt2.gpt2(ids[:1, 6:11], **model, cache=cache)  # a chunk: T = 5, S = 11
    _, batch = gpt2.gpt2(ids[:, 6:11], **model, cache=cache)  # three samples continue one
    gpt2.gpt2(ids[:, 11:16], **model, cache=batch)
    gpt2.gpt2(ids, **model)

    def rngs(n):
        return [np.random.default_rng(i) for i in range(n)]

    prompt = np.resize(ids[0], n_ctx - 3).tolist()
    for _ in gpt2.generate(prompt, params, n_head, 8, rngs(3), 0.9, top_k=20, top_p=0.9):
        pass  # with eight more tokens, past the window
    for _ in gpt2.generate(prompt[:5], params, n_head, 3, rngs(1)):
        pass


def shapes_in(call, name, value):
    """What the tracer keeps of a value: shapes of the arrays in it, and whole numbers in it."""
    if isinstance(value, (tuple, list)):
        parts = [shapes_in(call, name, item) for item in value]
        return sum((part[0] for part in parts), []), sum((part[1] for part in parts), [])
    if isinstance(value, (np.ndarray, np.generic)):
        return [value.shape], []
    return [], [value] if isinstance(value, int) else []


def traced(path, sizes, params):
    """Runs the gpt2.py at `path` on a model.

    Returns what the letters have to mean, and a list of Call.
    """
    gpt2 = load(path)

    def run():
        everything(gpt2, params, sizes["H"])

    return sizes, trace(run, str(path), shapes_in)


def random_model():
    return SIZES, random_params(SIZES["V"], N_CTX, SIZES["C"], SIZES["L"])


def bundled_model():
    _, hparams, params = utils.load_encoder_hparams_and_params("tiny", model_names.MODELS_DIR)
    C, H = hparams["n_embd"], hparams["n_head"]
    sizes = {"V": hparams["n_vocab"], "C": C, "L": hparams["n_layer"], "H": H, "D": C // H}
    return sizes, params


def letters_of(call, sizes, legend):
    """What letters mean in a call: the model's sizes, B, T, S of gpt2, and its own names."""
    letters = dict(sizes)
    outer = call
    while outer and outer.function != "gpt2":
        outer = outer.caller
    if outer:
        (_, _, ([(B, T)], _)), (_, _, (_, [S])) = outer.made[0], outer.made[-1]
        letters |= {"B": B, "T": T, "S": S}
    for _, name, (_, numbers) in call.made:
        if name in legend and numbers:  # B, T, C = x.shape
            letters[name] = numbers[0]
    return letters


# ---- The comparison ------------------------------------------------------------------------


def fits(form, shape, letters):
    """Whether a shape has this form. Learns the letters that it meets for the first time."""
    if "..." in form:
        assert form[0] == "...", f"{form}: the dots come first"
        form = form[1:]
        shape = shape[max(len(shape) - len(form), 0) :]
    if len(form) != len(shape):
        return False
    for axis, size in zip(form, shape):
        factor, letter = re.fullmatch(r"(\d*)([A-Z]?)", axis).groups()
        factor = int(factor or 1)
        if letter and letter not in letters and size % factor == 0:
            letters[letter] = size // factor
        if size != factor * (letters.get(letter, -1) if letter else 1):
            return False
    return True


def complaints(claims_made, runs):
    """What is wrong with the shapes that a program claims: a list of lines of text."""
    legend, wrong, reached, claims = legend_of(SOURCE), {}, set(), {}
    for claim in claims_made:
        unknown = [
            axis
            for axis in sum(claim.forms, [])
            if not re.fullmatch(r"\.\.\.|\d+|\d*[A-Z]", axis)
            or axis[-1].isalpha() and axis[-1] not in legend
        ]
        if unknown:
            wrong[claim.line] = f"line {claim.line}: {claim.text}: no legend for {unknown[0]}"
        else:
            claims.setdefault(claim.made_at, []).append(claim)

    for sizes, calls in runs:
        for call in calls:
            known = letters_of(call, sizes, legend)
            letters, turns = dict(known), {}
            for made_at, name, (shapes, _) in call.made:
                if name == "yield":
                    letters = dict(known)
                for claim in claims.get(made_at, []):
                    if claim.names not in (None, name):
                        continue
                    reached.add(claim.line)
                    turn = turns.get(claim.line, 0)
                    while turn + 1 < len(claim.forms) and not all(
                        fits(claim.forms[turn], shape, dict(letters)) for shape in shapes
                    ):
                        turn += 1
                    turns[claim.line] = turn
                    if not shapes or not all(
                        fits(claim.forms[turn], shape, letters) for shape in shapes
                    ):
                        truth = f"{name} has {', '.join(map(str, shapes)) or 'no shape'}"
                        wrong.setdefault(
                            claim.line, f"line {claim.line}: {claim.text}: {truth}, where {letters}"
                        )
    for claim in sum(claims.values(), []):
        if claim.line not in reached:
            wrong[claim.line] = f"line {claim.line}: {claim.text}: this line never ran"
    return [wrong[line] for line in sorted(wrong)]


@pytest.fixture(scope="module")
def random_run():
    return traced(ROOT / "gpt2.py", *random_model())


def test_every_shape_comment_is_true(random_run):
    """All comments are checked, in all situations, with both models. There are at least 40."""
    runs = [random_run, traced(ROOT / "gpt2.py", *bundled_model())]
    assert complaints(claims_of(SOURCE), runs) == []
    assert len(COMMENTS) >= 40


def test_the_legend_explains_each_letter():
    """The legend at the top of gpt2.py has these nine letters and no other."""
    assert legend_of(SOURCE) == set("BTSVKCHDL")


def test_all_dimensions_differ(random_run):
    """Otherwise a wrong letter could have the right number.

    In at least one call, no two are alike.
    """
    sizes, calls = random_run
    seen = [letters_of(call, sizes, "") for call in calls if call.function == "gpt2"]
    assert any(len(set(letters.values())) == 8 for letters in seen)


def altered(source, claim, text):
    """The program with another comment in the place of this one."""
    lines = source.split("\n")
    lines[claim.line - 1] = lines[claim.line - 1].replace(claim.text, text)
    return "\n".join(lines)


@pytest.mark.parametrize("claim", COMMENTS, ids=lambda claim: f"line {claim.line}")
def test_each_comment_would_fail_if_it_were_wrong(random_run, claim):
    """The comment is tried with each letter replaced, one more axis, and T and S swapped."""
    sizes, calls = random_run
    calls = [call for call in calls if any(line == claim.made_at for line, _, _ in call.made)]
    wrongs = [claim.text.replace("]", ", 1]", 1)]
    for axis in claim.forms[0]:
        wrongs.append(claim.text.replace(axis, "L" if axis == "V" else "V", 1))
    if ", T, S]" in claim.text:
        wrongs.append(claim.text.replace("T, S]", "S, T]"))
    for wrong in wrongs:
        [found] = complaints([dataclasses.replace(claim, text=wrong)], [(sizes, calls)])
        assert f": {wrong}: " in found and "never ran" not in found


@pytest.mark.parametrize(
    "text, problem",
    [("[B, T, Q]", "no legend for Q"), ("[B, n]", "no legend for n"), ("[V, V]", "has (")],
)
def test_a_wrong_or_unknown_letter_is_found_in_a_copy(tmp_path, text, problem):
    """The copy of gpt2.py has one wrong comment. It is run, and this comment is reported."""
    claim = COMMENTS[0]
    copy = tmp_path / "gpt2.py"
    copy.write_text(altered(SOURCE, claim, f"# {text}"), encoding="utf-8")
    [found] = new_complaints(copy)
    assert found.startswith(f"line {claim.line}: # {text}: ") and problem in found


def test_a_comment_that_is_never_reached_is_found(tmp_path):
    """A comment in a function that nobody calls proves nothing."""
    copy = tmp_path / "gpt2.py"
    copy.write_text(f"{SOURCE}\n\ndef idle(x):\n    return x  # [B, T]\n", encoding="utf-8")
    [found] = new_complaints(copy)
    assert found.endswith("# [B, T]: this line never ran")


def new_complaints(copy):
    """What is found in a copy of gpt2.py and not in gpt2.py itself."""
    source = copy.read_text(encoding="utf-8")
    found = complaints(claims_of(source), [traced(copy, *random_model())])
    before = complaints(claims_of(SOURCE), [traced(ROOT / "gpt2.py", *random_model())])
    return [line for line in found if line not in before]


def test_a_wrong_docstring_shape_is_found(random_run):
    """A shape at the end of a docstring's first line is the shape of the result."""
    claim = next(claim for claim in claims_of(SOURCE) if claim.names == "return")
    [found] = complaints([dataclasses.replace(claim, text="[B, T, V]")], [random_run])
    assert "[B, T, V]: return has (" in found
