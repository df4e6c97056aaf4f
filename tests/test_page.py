"""The page needs no other file, can be read without seeing it, and shows the numbers of a run."""

import base64
import hashlib
import re

import numpy as np
import pytest
from conftest import ROOT
from page_reader import text_of, write

import gpt2
import model_names
import prompts
import utils
from page import chapter_vectors
from page.markup import label

GOLDEN_MODELS = str(ROOT / "tests" / "checkpoints")
PROMPTS = ["The king sings", "", "naïve 🤗", "<&\"'></b>\n\t\0 x"]
TERMS = ["token", "vocabulary", "id", "vector", "embedding", "wte", "wpe", "layer", "attention",
         "mlp", "logit", "head", "query", "key", "value", "score", "softmax", "attention weight",
         "causal mask", "residual stream", "norm", "temperature", "top-k", "top-p", "nucleus",
         "noise", "tempered", "cache"]


@pytest.fixture(scope="module", params=PROMPTS, ids=ascii)
def prompt(request):
    return request.param


@pytest.fixture(scope="module")
def page(prompt, tmp_path_factory):
    return write(tmp_path_factory.mktemp("page"), prompt)


@pytest.fixture(scope="module")
def tiny():
    return utils.load_encoder_hparams_and_params("tiny", model_names.MODELS_DIR)


@pytest.fixture(scope="module")
def ids(prompt, tiny):
    return prompts.encode_prompt(prompt, tiny[0], 256)


@pytest.fixture(scope="module")
def new_ids(ids, tiny):
    """What gpt2.generate makes of the prompt, untraced, with the random generator of gpt2.main."""
    _, hparams, params = tiny
    rngs = [np.random.default_rng(np.random.SeedSequence(1).spawn(1)[0])]
    steps = gpt2.generate(ids, params, hparams["n_head"], 4, rngs, 0.7, top_k=40, top_p=0.9)
    return [int(row[0]) for row in steps]


def test_every_number_is_filled_in(page, prompt, new_ids, tiny):
    """No sentence of the page still has the braces of the program that wrote it."""
    written = prompt + tiny[0].decode(new_ids)
    sentences = [text_of(element) for element in page.root.iter("p")]
    sentences += [text_of(element) for element in page.all("div", "look")]
    assert written.count("{") or not [text for text in sentences if re.search("[{}]", text)]


def test_the_page_needs_nothing_else(page):
    """Each address is a place in the page, or holds its data itself. There is one script."""
    for element in page.root.iter():
        for name in ("src", "href", "action", "data", "srcset", "poster", "background"):
            assert re.match("#|data:", element.get(name, "#"))
    style = text_of(page.root.find("head/style"))
    assert "url(" not in style and "@import" not in style
    [script] = page.root.iter("script")
    digest = base64.b64encode(hashlib.sha256(text_of(script).encode()).digest()).decode()
    [policy] = [e.get("content") for e in page.root.iter("meta") if e.get("http-equiv")]
    assert policy == (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'"
    )
    assert not any(name.startswith("on") for e in page.root.iter() for name in e.attrib)
    assert len(page.source.encode()) < 2e6


def test_the_page_can_be_read_without_seeing_it(page):
    """Headings are in order, ids are unique, images and tables have names. There are landmarks."""
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


def test_a_term_is_explained_where_it_comes_first(page):
    """In the order of the chapters, the first use of each term is the one in italics."""
    parts = []
    for section in page.root.findall(".//section")[:-1]:
        for element in section.iter():
            for dfn in element.findall("dfn"):
                dfn.text = f"={dfn.text}="
        parts += section.itertext()
    text = "".join(parts)
    first_uses = [re.search(rf"(?i).?\b{term}.*", text)[0][:60] for term in TERMS]
    assert [use for use in first_uses if use[0] != "="] == []


def test_every_line_of_gpt2_is_there_once_and_in_order(page):
    lines = [e for e in page.root.iter("span") if e.get("data-n")]
    source = (ROOT / "gpt2.py").read_text(encoding="utf-8").split("\n")
    shown = {int(e.get("data-n")): text_of(e).removesuffix("\n") for e in lines}
    assert [int(e.get("data-n")) for e in lines] == sorted(shown)
    for number, line in enumerate(source, 1):
        ruled = re.match("# -{4} (.*?) -+$", line)
        assert f"<h3>{ruled[1]}</h3>" in page.source if ruled else shown.get(number, "") == line


def test_tokens_are_those_of_the_prompt_and_of_generate(page, ids, new_ids, tiny):
    items = page.all("ol", "tokens")[0].findall("li")
    assert [int(item.find("small").text) for item in items] == ids + new_ids
    assert [item.get("class") == "new" for item in items] == [False] * len(ids) + [True] * 4
    labels = [item.find("bdi").text for item in items]
    assert labels == [label(tiny[0].tokens[id]) for id in ids + new_ids]
    assert all(label.isprintable() and " " not in label for label in labels)


def test_candidates_are_the_likeliest_of_an_untraced_run(page, ids, new_ids, tiny):
    """Their ids, logits and probabilities in all steps are those computed without a cache."""
    _, hparams, params = tiny
    for step, drawn in enumerate(new_ids):
        so_far = np.array([ids + new_ids[:step]])
        [logits] = gpt2.gpt2(so_far, **params, n_head=hparams["n_head"])[0]
        probs = gpt2.softmax(logits)
        rows = page.rows(f"New token {step + 1}")
        listed = [int(row[1]) for row in rows]
        assert logits[listed[:10]] == pytest.approx(np.sort(logits)[::-1][:10], abs=1e-4)
        assert [float(row[2]) for row in rows] == pytest.approx(logits[listed], abs=6e-3)
        shown = [float(row[3].rstrip("%")) for row in rows]
        assert shown == pytest.approx(100 * probs[listed], abs=0.06)
        assert [int(row[1]) for row in rows if row[0].endswith(" drawn")] == [drawn]

        left = [row for row in rows if row[-1] != "–"]
        [drawn_row] = [row for row in left if row[0].endswith(" drawn")]
        assert float(drawn_row[-1]) == max(float(row[-1]) for row in left)
        assert all(float(row[-1]) == pytest.approx(float(row[-3]) + float(row[-2]), abs=0.02)
                   for row in left)
        assert all((row[-1] == "–") == (row[-4] == "–") for row in rows)

        kept = gpt2.keep_top_p(gpt2.keep_top_k(gpt2.scale_by_temperature(logits, 0.7), 40), 0.9)
        n_kept = np.isfinite(kept).sum()
        assert set(gpt2.ranked(logits)[n_kept - 1 : n_kept + 1]) <= set(listed)


def test_attention_rows_add_up_to_one(page, ids, new_ids):
    """This holds in every head, for every token that looks. No token looks at a later one."""
    if len(ids) + 3 > 12:
        pytest.skip("numbers are given for short texts only")
    for layer in range(1, 6):
        for head in range(1, 5):
            rows = page.rows(f"Layer {layer}, head {head}: row looks at column")
            assert len(rows) == len(ids) + 3
            for i, (_, *weights) in enumerate(rows):
                assert sum(map(float, weights[: i + 1])) == pytest.approx(1, abs=6e-4 * (i + 1))
                assert not any(weights[i + 1 :])


def test_the_last_row_of_the_lens_is_the_answer_of_the_model(page):
    """The lens shows what the model would answer after each layer.

    Its last row is the real answer.
    """
    best, last = page.rows("New token 1"), page.rows("Step 1")[-1]
    assert last[0] == "after layer 5"
    assert last[5:8] == [row[0].removesuffix(" drawn") + row[3] for row in best[:3]]
    assert last[8] == next(row[3] for row in best if row[0].endswith(" drawn"))


def test_values_beside_lines_are_those_of_an_untraced_run(page, ids, new_ids, tiny):
    """Shape, type, range and mean are compared, for the logits, for x, and for a layer's keys."""
    _, hparams, params = tiny
    logits, cache = gpt2.gpt2(np.array([ids]), **params, n_head=hparams["n_head"])
    assert page.value("gpt2", "return[0]", 0).startswith(described("return[0]", logits))
    next_logits, (kv, S) = gpt2.gpt2(
        np.array([new_ids[:1]]), **params, n_head=hparams["n_head"], cache=cache
    )
    assert page.value("gpt2", "return[0]", 1).startswith(described("return[0]", next_logits))
    assert page.value("gpt2", "return[1][1]", 1) == f"return[1][1] = {S}"
    x = params["wte"][ids][None] + params["wpe"][None, : len(ids)]
    assert page.value("block", "x", 0).startswith(described("x", x))
    [k] = kv[0, 0, :, :, len(ids) : S, :][None]
    assert page.value("attention", "k", 1).startswith(described("k", k))


def described(name, array):
    low, high, mean = (f"{n:.4g}" for n in (array.min(), array.max(), array.mean()))
    return f"{name} {list(array.shape)} {array.dtype} {low} to {high}, mean {mean}; full colour "


def test_at_temperature_0_nothing_is_drawn(tmp_path):
    page = write(tmp_path, "The king sings", temperature=0, n_tokens_to_generate=2)
    assert "greedy decoding" in text_of(page.chapter("words"))
    assert len(page.rows("New token 1")[0]) == 4
    assert page.rows("New token 1")[0][0].endswith(" taken")
    parts = [text_of(page.chapter(id)) for id in ("text", "layers", "words")]
    assert "drawn" not in "".join(parts)
    assert "not called in this run" in text_of(page.chapter("keep_top_k"))


def test_the_page_of_one_token_does_not_speak_of_more(tmp_path):
    """The page counts no step that was not made, and explains no line that is not drawn."""
    page = write(tmp_path, "", n_tokens_to_generate=1)
    text = text_of(page.root.find("body/main"))
    assert "The model added 1 token, in colour." in text
    assert not re.search("colour, one|Below a line|Later steps|likeliest token was drawn", text)
    assert all(text_of(item).strip() for item in page.root.iter("li"))


def test_words_fit_the_numbers(tmp_path, monkeypatch):
    """The 2nd likeliest token is not called the likeliest, and a fall is not called a gain.

    A minus before a negative number becomes a plus.
    """
    shares, whole = iter(np.arange(0.9, 0, -0.01)), gpt2.gpt2

    def lower(*args, **options):
        logits, cache = whole(*args, **options)
        return logits - 100, cache

    second = write(tmp_path, "The", n_tokens_to_generate=1)
    assert "much like The itself, which is the 2nd likeliest token" in text_of(second.root)
    monkeypatch.setattr(chapter_vectors, "lens", lambda *_: np.full(1024, next(shares)))
    monkeypatch.setattr(gpt2, "gpt2", lower)
    page = write(tmp_path, "The", n_tokens_to_generate=1)
    assert "Before any layer it has 90.0%, and no layer gives it more." in text_of(page.root)
    assert "(logit + 96.09) / 0.7" in text_of(page.root)


def test_a_text_may_outgrow_the_window(tmp_path):
    """64 tokens fill the window of this model. The second step starts from the last half."""
    prompt = "0123456789" * 6 + "abcd"
    page = write(tmp_path, prompt, model_size="small", models_dir=GOLDEN_MODELS, seed=2)
    assert len(page.all("ol", "tokens")[0]) > 64
    assert page.value("gpt2", "T", 1) == "T = 33" or "T = 32" in page.value("gpt2", "T", 1)
    assert len(page.source.encode()) < 2e6
    assert "the window was full" in text_of(page.chapter("heads"))
    assert "no second step went on" in text_of(page.chapter("cached"))


def test_the_page_does_not_contain_a_path_of_this_machine(page):
    assert str(ROOT) not in page.source
