"""The page of walkthrough.py: whole, self-contained, and with the numbers of an untraced run."""

import dataclasses
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from conftest import ROOT

import cli
import gpt2
import utils
import walkthrough

GOLDEN_MODELS = str(ROOT / "tests" / "checkpoints")
PROMPTS = ["The king said", "", "a", "naïve 🤗", "<&\"'></b>", "\n\t\0 x"]
OPTIONS = {"temperature": 0.7, "top_k": 40, "top_p": 0.9, "seed": 1}


def text_of(element):
    return "".join(element.itertext())


@dataclasses.dataclass
class Page:
    """A page that walkthrough.main wrote, and its elements."""

    source: str
    root: ElementTree.Element

    def chapter(self, id):
        return self.root.find(f".//*[@id='{id}']")

    def all(self, path, class_):
        found = self.root.findall(f".//{path}") if isinstance(path, str) else path
        return [element for element in found if class_ in element.get("class", "").split()]

    def value(self, function, name, step):
        """What the listing says of the first value with this name in a function and a step."""
        columns = [e for e in self.chapter(function).iter("div") if e.get("class") == "seen"]
        for element in (e for column in columns[step::2] for e in column.iter("div")):
            if element.get("class", "").startswith("value") and element[0].text == name:
                return text_of(element)

    def rows(self, caption):
        """The cells of the table with this caption, each row a list of text."""
        for table in self.root.iter("table"):
            if text_of(table.find("caption")) == caption:
                return [[text_of(cell) for cell in row] for row in table.find("tbody")]


def write(folder, prompt, **options):
    path = folder / "page.html"
    walkthrough.main(prompt, output=str(path), **options)
    source = path.read_text(encoding="utf-8")
    return Page(source, ElementTree.fromstring(source))


@pytest.fixture(scope="module", params=PROMPTS, ids=ascii)
def prompt(request):
    return request.param


@pytest.fixture(scope="module")
def page(prompt, tmp_path_factory):
    return write(tmp_path_factory.mktemp("page"), prompt)


@pytest.fixture(scope="module")
def tiny():
    return utils.load_encoder_hparams_and_params("tiny", utils.MODELS_DIR)


@pytest.fixture(scope="module")
def ids(prompt, tiny):
    return cli.encode_prompt(prompt, tiny[0], 256)


@pytest.fixture(scope="module")
def new_ids(ids, tiny):
    """What gpt2.generate makes of the prompt, untraced, with the seed as gpt2.main spreads it."""
    _, hparams, params = tiny
    rngs = [np.random.default_rng(np.random.SeedSequence(1).spawn(1)[0])]
    steps = gpt2.generate(ids, params, hparams["n_head"], 4, rngs, 0.7, top_k=40, top_p=0.9)
    return [int(row[0]) for row in steps]


def test_the_page_needs_nothing_else(page):
    """No script, no address but of a place in the page, or of data that the address holds."""
    assert not list(page.root.iter("script"))
    for element in page.root.iter():
        for name in ("src", "href", "action", "data", "srcset", "poster", "background"):
            assert re.match("#|data:", element.get(name, "#"))
    style = text_of(page.root.find("head/style"))
    assert "url(" not in style and "@import" not in style
    policies = [e.get("content") for e in page.root.iter("meta") if e.get("http-equiv")]
    assert policies == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]
    assert len(page.source.encode()) < 2e6


def test_the_page_can_be_read_without_seeing_it(page):
    """Headings in order, ids once, images and tables named, a language, landmarks."""
    levels = [int(e.tag[1]) for e in page.root.iter() if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:]))
    ids = [e.get("id") for e in page.root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    targets = [e.get("href")[1:] for e in page.root.iter("a")]
    assert set(targets) <= set(ids)
    assert all(e.get("alt") for e in page.root.iter("img"))
    assert all(e.get("aria-label") for e in page.root.iter("svg"))
    assert all(e.find("caption") is not None for e in page.root.iter("table"))
    assert page.root.get("lang") == "en"
    assert all(page.root.find(f"body//{name}") is not None for name in ("header", "nav", "main"))


def test_every_line_of_gpt2_is_there_once_and_in_order(page):
    lines = [e for e in page.root.iter("span") if e.get("data-n")]
    source = (ROOT / "gpt2.py").read_text(encoding="utf-8").split("\n")
    shown = {int(e.get("data-n")): text_of(e).removesuffix("\n") for e in lines}
    assert [int(e.get("data-n")) for e in lines] == sorted(shown)
    for number, line in enumerate(source, 1):
        ruled = re.match("# -{4} (.*?) -+$", line)
        assert f"<h3>{ruled[1]}</h3>" in page.source if ruled else shown.get(number, "") == line


def test_tokens_are_those_of_the_prompt_and_of_generate(page, ids, new_ids, tiny):
    items = page.chapter("text").findall(".//li")
    assert [int(item.find("small").text) for item in items] == ids + new_ids
    assert [item.get("class") == "new" for item in items] == [False] * len(ids) + [True] * 4
    labels = [item.find("bdi").text for item in items]
    assert labels == [walkthrough.label(tiny[0].tokens[id]) for id in ids + new_ids]
    assert all(label.isprintable() and " " not in label for label in labels)


def test_candidates_are_the_likeliest_of_an_untraced_run(page, ids, new_ids, tiny):
    """Ids, logits and probabilities of all steps, each computed at once without a cache."""
    _, hparams, params = tiny
    for step, drawn in enumerate(new_ids):
        so_far = np.array([ids + new_ids[:step]])
        [logits] = gpt2.gpt2(so_far, **params, n_head=hparams["n_head"])[0]
        probs = gpt2.softmax(logits)
        rows = page.rows(f"Token {step + 1}")
        listed = [int(row[1]) for row in rows]
        assert logits[listed[:10]] == pytest.approx(np.sort(logits)[::-1][:10], abs=1e-4)
        assert [float(row[2]) for row in rows] == pytest.approx(logits[listed], abs=6e-3)
        shown = [float(row[3].rstrip("%")) for row in rows]
        assert shown == pytest.approx(100 * probs[listed], abs=0.06)
        assert [int(row[1]) for row in rows if row[0].endswith(" drawn")] == [drawn]

        in_order = sorted((row for row in rows if row[-1] != "–"), key=lambda row: float(row[-1]))
        assert int(in_order[-1][1]) == drawn or in_order[-1][-1] == in_order[-2][-1]
        assert all((row[-1] == "–") == (row[-4] == "–") for row in rows)


def test_attention_rows_add_up_to_one(page, ids, new_ids):
    """In every head, for every token that looks; and no token looks at a later one."""
    if len(ids) + 3 > 12:
        pytest.skip("numbers are given for short texts only")
    for layer in range(1, 6):
        for head in range(1, 5):
            rows = page.rows(f"Layer {layer}, head {head}: row looks at column")
            assert len(rows) == len(ids) + 3
            for i, (_, *weights) in enumerate(rows):
                assert sum(map(float, weights[: i + 1])) == pytest.approx(1, abs=6e-4 * (i + 1))
                assert not any(weights[i + 1 :])


def test_the_last_row_of_the_lens_is_the_answer_of_the_model(page, ids):
    tokens = f"{len(ids)} tokens" if len(ids) > 1 else "one token"
    best = page.rows("Token 1")
    last = page.rows(f"Step 1: {tokens}")[-1]
    assert last[0] == "layer 5"
    assert last[5:8] == [row[0].removesuffix(" drawn") + row[3] for row in best[:3]]
    assert last[8] == next(row[3] for row in best if row[0].endswith(" drawn"))


def test_values_beside_lines_are_those_of_an_untraced_run(page, ids, new_ids, tiny):
    """Shape, type, range and mean, in both steps, of logits, of x, and of a layer's keys."""
    _, hparams, params = tiny
    logits, cache = gpt2.gpt2(np.array([ids]), **params, n_head=hparams["n_head"])
    assert page.value("gpt2", "return[0]", 0) == described("return[0]", logits)
    next_logits, (kv, S) = gpt2.gpt2(
        np.array([new_ids[:1]]), **params, n_head=hparams["n_head"], cache=cache
    )
    assert page.value("gpt2", "return[0]", 1) == described("return[0]", next_logits)
    assert page.value("gpt2", "return[1][1]", 1) == f"return[1][1] = {S}"
    x = params["wte"][ids][None] + params["wpe"][None, : len(ids)]
    assert page.value("block", "x", 0) == described("x", x)
    [k] = kv[0, 0, :, :, len(ids) : S, :][None]
    assert page.value("attention", "k", 1) == described("k", k)


def described(name, array):
    low, high, mean = (f"{n:.4g}" for n in (array.min(), array.max(), array.mean()))
    return f"{name} {list(array.shape)} {array.dtype} {low} to {high}, mean {mean}"


def test_the_command_on_the_page_makes_the_text_on_the_page(page, prompt, capsys, new_ids, tiny):
    gpt2.main(prompt, 4, "tiny", **OPTIONS)
    printed = capsys.readouterr().out
    assert printed == tiny[0].decode(new_ids) + "\n"
    assert text_of(page.root.find(".//h1/em")) == walkthrough.readable(printed[:-1])
    command = text_of(page.all("pre", "command")[0])
    assert command.startswith("python gpt2.py ") and command.endswith(
        " --n_tokens_to_generate 4 --model_size tiny --temperature 0.7 --top_k 40 --top_p 0.9"
        " --seed 1"
    )


def test_at_temperature_0_nothing_is_drawn(tmp_path):
    page = write(tmp_path, "The king said", temperature=0, n_tokens_to_generate=2)
    assert "leaves nothing to chance" in text_of(page.chapter("words"))
    assert len(page.rows("Token 1")[0]) == 4
    assert page.rows("Token 1")[0][0].endswith(" drawn")
    assert "not called in this run" in text_of(page.chapter("keep_top_k"))


def test_only_chosen_layers_are_shown(tmp_path):
    page = write(tmp_path, "a", layer="2,4", n_tokens_to_generate=1)
    titles = [text_of(title) for title in page.chapter("heads").findall(".//h3")]
    assert titles == ["Layer 2", "Layer 4"]
    assert "No second step" in text_of(page.chapter("cached"))
    radios = [e.get("id") for e in page.root.iter("input")]
    assert radios == ["layer-2", "layer-4"]
    assert page.all("div", "layer-2") and not page.all("div", "layer-1")


def test_a_text_that_outgrows_the_window(tmp_path):
    """64 tokens fill the window of this model; the second step starts from the last half."""
    prompt = "0123456789" * 6 + "abcd"
    page = write(tmp_path, prompt, model_size="small", models_dir=GOLDEN_MODELS, seed=2)
    assert len(page.chapter("text").findall(".//li")) > 64
    assert page.value("gpt2", "T", 1) == "T = 33" or "T = 32" in page.value("gpt2", "T", 1)
    assert "the window was full" in text_of(page.chapter("heads"))
    assert "No second step went on" in text_of(page.chapter("cached"))


def test_a_path_on_this_machine_is_not_told(page):
    assert str(ROOT) not in page.source


@pytest.mark.parametrize(
    "options, message",
    [
        ({"layer": "0"}, "--layer names layers from 1 to 5"),
        ({"layer": "2,x"}, "--layer names layers"),
        ({"n_tokens_to_generate": 0}, "--n_tokens_to_generate"),
        ({"n_tokens_to_generate": 33}, "at most 32"),
        ({"prompt": "x" * 90}, "at most 64"),
        ({"top_p": 2}, "--top_p"),
    ],
)
def test_a_wrong_call_is_refused(tmp_path, options, message):
    output = tmp_path / "page.html"
    with pytest.raises(cli.CallError, match=message):
        walkthrough.main(**{"prompt": "a", "output": str(output), **options})
    assert not output.exists()


def test_from_the_command_line(tmp_path):
    """A page is written and told of; a misspelt flag ends with status 2 and one line."""

    def run(*words):
        command = [sys.executable, str(ROOT / "walkthrough.py"), *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    done = run("Hello, world", "--n_tokens_to_generate", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "walkthrough.html" in done.stdout
    assert "Hello, world" in (tmp_path / "walkthrough.html").read_text(encoding="utf-8")
    wrong = run("a", "--lair", "2")
    assert wrong.returncode == 2 and "--layer" in wrong.stderr
    assert "--layer LAYERS" in run("--help").stdout


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
    """In-place changes, unpacking, several lines, loops, exceptions, `with`, generators."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    names = {}
    exec(compile(PROGRAM, str(path), "exec"), names)

    def run():
        names["outer"](2)
        list(names["steps"]())

    calls = walkthrough.trace(run, str(path), lambda call, name, value: repr(value))
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
