"""The model gives the logits of transformers, and the same ones however it is called."""

import copy

import numpy as np
import pytest
from conftest import ROOT, random_params

import gpt2
import utils

# No two dimensions are alike, so that none can stand in for another.
V, N_CTX, C, H, L = 97, 40, 24, 4, 3
PARAMS = random_params(V, N_CTX, C, L)
IDS = np.random.default_rng(1).integers(0, V, size=(2, N_CTX))
TOLERANCE = 2e-5  # of the largest logit


def run(ids, cache=None):
    return gpt2.gpt2(ids, **PARAMS, n_head=H, cache=cache)


def same(logits, expected):
    return np.abs(logits - expected).max() <= TOLERANCE * np.abs(expected).max()


def arrays_in(tree):
    """All arrays in nested dicts and lists."""
    if isinstance(tree, np.ndarray):
        return [tree]
    branches = tree.values() if isinstance(tree, dict) else tree
    return [array for branch in branches for array in arrays_in(branch)]


def test_logits_are_those_of_transformers():
    """Hugging Face's GPT-2 with the same weights gives the same logits at every position."""
    golden = np.load(ROOT / "tests" / "goldens" / "transformers.npz")
    _, hparams, params = utils.load_encoder_hparams_and_params("small", golden_models())
    ids, expected = golden["ids"], golden["logits"]

    cache = None
    for position in range(ids.shape[1]):
        new_ids = ids[:, position : position + 1]
        logits, cache = gpt2.gpt2(new_ids, **params, n_head=hparams["n_head"], cache=cache)
        whole, _ = gpt2.gpt2(ids[:, : position + 1], **params, n_head=hparams["n_head"])

        assert same(logits, expected[:, position])
        assert same(whole, expected[:, position])


def golden_models():
    return ROOT / "tests" / "checkpoints"


@pytest.mark.parametrize("sizes", [[1] * 40, [40], [7, 1, 1, 20, 2, 9], [1, 39], [39, 1]], ids=str)
def test_pieces_give_the_logits_of_the_whole(sizes):
    """However a text is cut into calls, the logits are those of one call with the whole text."""
    cache, n_past = None, 0
    for size in sizes:
        logits, cache = run(IDS[:, n_past : n_past + size], cache)
        n_past += size
        whole, _ = run(IDS[:, :n_past])
        assert same(logits, whole)


def test_a_cache_that_grows_changes_no_logits():
    """The cache has room for 256 tokens at first, and is copied into a larger one twice."""
    params = random_params(V, 600, C, 1)
    ids = np.random.default_rng(2).integers(0, V, size=(1, 600))
    whole, _ = gpt2.gpt2(ids, **params, n_head=H)

    cache = None
    for start in range(0, 600, 100):
        logits, cache = gpt2.gpt2(ids[:, start : start + 100], **params, n_head=H, cache=cache)

    assert same(logits, whole)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 5, 9])
def test_a_sample_in_a_batch_has_the_logits_it_has_alone(n_rows):
    """`linear` multiplies up to 3 vectors one at a time, and more at once. Both ways are tried."""
    ids = np.random.default_rng(3).integers(0, V, size=(n_rows, 5))
    logits, cache = run(ids)
    next_logits, _ = run(ids[:, :1], cache)

    for row in range(n_rows):
        alone, cache_alone = run(ids[[row]])
        assert same(logits[[row]], alone)
        next_alone, _ = run(ids[[row], :1], cache_alone)
        assert same(next_logits[[row]], next_alone)


def test_the_cache_of_one_sample_serves_a_batch():
    """A prompt that was computed once can be continued by several samples."""
    _, cache = run(IDS[:1, :6])
    logits, _ = run(np.array([[5], [6], [7]]), cache)

    for row, id in enumerate([5, 6, 7]):
        alone, _ = run(np.append(IDS[:1, :6], [[id]], axis=1))
        assert same(logits[[row]], alone)


def test_a_later_token_changes_nothing_before_it():
    """The keys and values of a token do not depend on the tokens after it."""
    _, (kv, _) = run(IDS[:1, :9])
    changed = IDS[:1, :9].copy()
    changed[0, 8] = (changed[0, 8] + 1) % V
    _, (changed_kv, _) = run(changed)

    assert np.array_equal(kv[..., :8, :], changed_kv[..., :8, :])
    assert not np.array_equal(kv[..., 8, :], changed_kv[..., 8, :])


def test_a_cache_can_be_continued_twice():
    """The second time gives what a fresh run gives. What the cache held before is unharmed."""
    _, cache = run(IDS[:, :6])
    kv, n_past = cache
    before = kv[..., :n_past, :].copy()
    run(IDS[:, 6:10], cache)
    second, _ = run(IDS[:, 20:23], cache)
    fresh, _ = run(np.append(IDS[:, :6], IDS[:, 20:23], axis=1))

    assert same(second, fresh)
    assert np.array_equal(kv[..., :n_past, :], before)


def test_weights_and_ids_are_only_read():
    """Read-only arrays are enough. A checkpoint that is mapped into memory has such weights."""
    params, ids = copy.deepcopy(PARAMS), IDS.copy()
    for array in [*arrays_in(params), ids]:
        array.flags.writeable = False

    logits, cache = gpt2.gpt2(ids[:, :5], **params, n_head=H)
    gpt2.gpt2(ids[:, 5:6], **params, n_head=H, cache=cache)

    assert same(logits, run(IDS[:, :5])[0])


def test_the_window_ends_at_n_ctx():
    """wpe has no position after the last one, so one more token raises IndexError."""
    with pytest.raises(IndexError):
        run(np.zeros((1, N_CTX + 1), dtype=int))


def test_everything_is_float32():
    """In NumPy 2, one float64 number turns each array that it meets into float64.

    This would take twice the memory, and more time.
    """
    x = np.ones((2, 3, C), dtype=np.float32)
    block = PARAMS["blocks"][0]
    logits, (kv, _) = run(IDS)

    assert logits.dtype == kv.dtype == np.float32
    assert gpt2.gelu(x).dtype == gpt2.softmax(x).dtype == np.float32
    assert gpt2.layer_norm(x, **block["ln_1"]).dtype == np.float32
    assert gpt2.linear(x, **block["attn"]["c_proj"]).dtype == np.float32
    assert gpt2.mlp(x, **block["mlp"]).dtype == np.float32


def test_gelu_is_the_tanh_form():
    """Near x = -2.7, this form and the form with erf differ by 4.7e-4."""
    x = np.array([-2.7, -1.0, 0.0, 1.0, 3.0], dtype=np.float32)
    expected = [-0.008889, -0.158808, 0.0, 0.841192, 2.996363]
    assert np.allclose(gpt2.gelu(x), expected, rtol=0, atol=2e-6)


def test_layer_norm_divides_by_the_biased_deviation():
    """The variance of [1, 2, 3, 4] is 5 / 4, not 5 / 3. A vector of equal numbers becomes b."""
    one, zero = np.ones(4, dtype=np.float32), np.zeros(4, dtype=np.float32)
    ramp = np.array([1, 2, 3, 4], dtype=np.float32)

    assert np.isclose(gpt2.layer_norm(ramp, one, zero)[0], -1.341635, rtol=0, atol=1e-6)
    assert np.array_equal(gpt2.layer_norm(7 * one, one, ramp), ramp)


def test_softmax_takes_large_scores_and_minus_infinity():
    """The largest score is subtracted first, so nothing overflows. -inf becomes the share 0."""
    x = np.array([[1000.0, 1000.0, -np.inf]], dtype=np.float32)
    assert np.array_equal(gpt2.softmax(x), [[0.5, 0.5, 0.0]])
