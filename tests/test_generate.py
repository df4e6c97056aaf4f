"""generate continues one prompt in several samples, to the end of the text or past the window."""

import itertools

import numpy as np
import pytest
from conftest import random_params

import gpt2

V, N_CTX, C, H, L = 97, 40, 24, 4, 3
PARAMS = random_params(V, N_CTX, C, L)
PROMPT = [5, 17, 3, 96, 0, 41]


def rngs(n, seed=0):
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(n)]


def generate(prompt, n_tokens, n_rows=1, **options):
    """The generated ids, int [n_rows, n_steps]: a row for each sample."""
    steps = gpt2.generate(prompt, PARAMS, H, n_tokens, rngs(n_rows), **options)
    return np.array(list(steps)).reshape(-1, n_rows).T


def likeliest(ids):
    logits, _ = gpt2.gpt2(np.array([ids]), **PARAMS, n_head=H)
    return int(logits.argmax())


def count_calls(monkeypatch):
    """A list that gets the shape of the inputs of every call of gpt2.gpt2."""
    shapes, original = [], gpt2.gpt2
    monkeypatch.setattr(
        gpt2, "gpt2", lambda inputs, **rest: shapes.append(inputs.shape) or original(inputs, **rest)
    )
    return shapes


def test_greedy_text_is_the_same_without_a_cache():
    """Each id is the likeliest one when all ids before it go through the model anew."""
    ids = list(PROMPT)
    for _ in range(30):
        ids.append(likeliest(ids))
    assert generate(PROMPT, 30).tolist() == [ids[len(PROMPT) :]]


def test_the_prompt_is_computed_once_and_the_last_token_never(monkeypatch):
    """Three samples of four tokens take one call for the prompt, then three for one token each."""
    shapes = count_calls(monkeypatch)
    generate(PROMPT, 4, n_rows=3, temperature=1.0)
    assert shapes == [(1, 6), (3, 1), (3, 1), (3, 1)]


def test_no_tokens_take_no_work(monkeypatch):
    """If no token is asked for, the model is not called."""
    shapes = count_calls(monkeypatch)
    assert generate(PROMPT, 0).size == 0
    assert shapes == []


def test_a_long_prompt_is_read_in_pieces(monkeypatch):
    """The pieces do not change the token that follows the prompt."""
    params = random_params(V, 600, C, 1)
    prompt = np.random.default_rng(1).integers(0, V, 550).tolist()
    whole, _ = gpt2.gpt2(np.array([prompt]), **params, n_head=H)
    shapes = count_calls(monkeypatch)
    [first] = gpt2.generate(prompt, params, H, 1, rngs(1))
    assert first.tolist() == [whole.argmax()]
    assert shapes == [(1, 256), (1, 256), (1, 38)]


def test_samples_differ_from_the_first_token_on():
    """Each sample draws for itself. If all shared one draw, the 50 first tokens would be alike."""
    ids = generate(PROMPT, 1, n_rows=50, temperature=3.0)
    assert len(set(ids[:, 0].tolist())) > 5


@pytest.mark.parametrize("batch_size", [1, 2, 5, 7])
def test_a_sample_does_not_depend_on_its_batch(batch_size):
    """The same five random generators give the same five texts, however they are batched."""
    together = generate(PROMPT, 12, n_rows=5, temperature=0.9, top_k=20, top_p=0.9)
    generators = rngs(5)
    texts = []
    for first in range(0, 5, batch_size):
        batch = generators[first : first + batch_size]
        steps = gpt2.generate(PROMPT, PARAMS, H, 12, batch, 0.9, 20, 0.9)
        texts.extend(np.array(list(steps)).T.tolist())
    assert texts == together.tolist()


def test_the_prompt_is_only_read():
    """generate does not append to the caller's list."""
    prompt = list(PROMPT)
    generate(prompt, 5)
    assert prompt == PROMPT


def test_a_sample_that_ended_waits_for_the_others(monkeypatch):
    """The sample repeats stop_id. The step in which the last sample ends is the last step."""
    script = iter([1, 2, 3] + [9, 2, 3] + [4, 9, 3] + [4, 4, 9] + [4, 4, 4])
    monkeypatch.setattr(gpt2, "sample", lambda *_: next(script))
    ids = generate(PROMPT, 10, n_rows=3, stop_id=9)
    assert ids.tolist() == [[1, 9, 9, 9], [2, 2, 9, 9], [3, 3, 3, 9]]


def test_stop_id_in_the_prompt_ends_nothing():
    """Only a stop_id that the model has produced ends a text."""
    free = generate(PROMPT, 5)
    [stop_id, *_] = set(PROMPT) - set(free[0].tolist())
    assert np.array_equal(generate(PROMPT, 5, stop_id=stop_id), free)


def test_without_stop_id_no_token_ends_the_text(monkeypatch):
    """Not even the last id of the vocabulary does, which is <|endoftext|> in OpenAI's."""
    monkeypatch.setattr(gpt2, "sample", lambda *_: V - 1)
    assert generate(PROMPT, 5).tolist() == [[V - 1] * 5]


@pytest.mark.parametrize("n_rows", [1, 3])
def test_past_the_window_the_last_half_is_a_new_prompt(n_rows):
    """The greedy ids equal those of a plain loop without a cache."""
    ids = list(PROMPT)
    window = list(PROMPT)
    for _ in range(100):
        window.append(likeliest(window))
        ids.append(window[-1])
        if len(window) > N_CTX:
            window = window[-(N_CTX // 2) :]

    assert generate(PROMPT, 100, n_rows=n_rows).tolist() == [ids[len(PROMPT) :]] * n_rows


def test_the_first_window_does_not_depend_on_the_second():
    """If more tokens are asked for, the first tokens stay the same."""
    longer = generate(PROMPT, 90, temperature=1.0)
    shorter = generate(PROMPT, N_CTX - len(PROMPT) + 1, temperature=1.0)
    assert np.array_equal(longer[:, : shorter.shape[1]], shorter)


def test_a_prompt_may_fill_the_window():
    """The token after it depends on the whole prompt."""
    prompt = list(itertools.islice(itertools.cycle(PROMPT), N_CTX))
    assert generate(prompt, 1).tolist() == [[likeliest(prompt)]]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.filterwarnings("error")
def test_logits_that_are_not_finite_stop_the_run(wrong):
    """Otherwise the text would be "!", id 0, again and again: argmax takes nan for the largest."""
    params = {**PARAMS, "ln_f": {**PARAMS["ln_f"], "b": np.full(C, wrong, dtype=np.float32)}}
    with pytest.raises(ValueError, match="not finite.*utils.py verify"):
        next(gpt2.generate(PROMPT, params, H, 1))


@pytest.mark.parametrize(
    "change, name",
    [
        ({"inputs": []}, "inputs"),
        ({"inputs": [-1]}, "inputs"),
        ({"inputs": [V]}, "inputs"),
        ({"inputs": [0] * (N_CTX + 1)}, "inputs"),
        ({"inputs": [1.5]}, "inputs"),
        ({"n_tokens_to_generate": -1}, "n_tokens_to_generate"),
        ({"temperature": -0.7}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": -1}, "top_k"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 90}, "top_p"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(change, name):
    """generate raises a ValueError that names the argument, before the model runs."""
    arguments = {"inputs": PROMPT, "n_tokens_to_generate": 1, "temperature": 1.0} | change
    with pytest.raises(ValueError, match=f"^{name}"):
        next(gpt2.generate(params=PARAMS, n_head=H, **arguments))


def test_one_sample_is_the_default():
    """Without random generators, generate yields one id per step."""
    assert [len(ids) for ids in gpt2.generate(PROMPT, PARAMS, H, 2)] == [1, 1]
