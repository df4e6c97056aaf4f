"""Temperature, top-k, top-p and the draw: what they keep, and that the draw keeps to it."""

import numpy as np
import pytest

import gpt2


def rng(seed=0):
    return np.random.default_rng(seed)


def kept(logits):
    """The ids of the first row that may still be picked."""
    return np.flatnonzero(np.isfinite(logits[0])).tolist()


def logits_of(*probs):
    with np.errstate(divide="ignore"):
        return np.log(np.array([probs]))


def test_temperature_divides():
    """Low temperatures make the likely likelier, high ones less so; 1 changes no probability."""
    logits = rng().standard_normal((1, 50), dtype=np.float32)
    probs = gpt2.softmax(logits)

    def largest(temperature):
        return gpt2.softmax(gpt2.scale_by_temperature(logits, temperature)).max()

    assert largest(0.5) > probs.max() > largest(2.0)
    assert np.isclose(largest(1.0), probs.max())


@pytest.mark.parametrize("temperature", [0.0, 1e-320, 1e-45, 1e-40, 1e-8])
@pytest.mark.filterwarnings("error")
def test_temperature_0_and_next_to_0_take_the_likeliest(temperature):
    """No division by zero, no nan, no warning."""
    logits = np.array([[1.0, 3.0, 2.0]], dtype=np.float32)
    assert gpt2.sample(logits, [rng()], temperature, 0, 1.0).tolist() == [1]


def test_temperature_0_draws_nothing():
    """A greedy text leaves the random generators as they were."""
    generator, untouched = rng(), rng()
    gpt2.sample(np.ones((1, 9), dtype=np.float32), [generator], 0.0, 0, 1.0)
    assert generator.random() == untouched.random()


@pytest.mark.parametrize(
    ("logits", "k", "expected"),
    [
        ([1, 2, 2, 2, 0], 2, [1, 2]),  # of equals, the lowest ids
        ([1, 2, 2, 2, 0], 1, [1]),
        ([1, 2, 2, 2, 0], 4, [0, 1, 2, 3]),
        ([3, 1, 2, 9, 5], 3, [0, 3, 4]),
        ([3, 1, 2, 9, 5], 0, [0, 1, 2, 3, 4]),  # 0 is off
        ([3, 1, 2, 9, 5], 5, [0, 1, 2, 3, 4]),
        ([3, 1, 2, 9, 5], 99, [0, 1, 2, 3, 4]),  # so is more than there are
    ],
)
def test_top_k_keeps_exactly_k(logits, k, expected):
    """Whatever is equal to what."""
    assert kept(gpt2.keep_top_k(np.array([logits], dtype=np.float32), k)) == expected


@pytest.mark.parametrize(
    ("probs", "p", "expected"),
    [
        ([0.5, 0.3, 0.2], 0.7, [0, 1]),  # OpenAI's script keeps one token fewer
        ([0.4, 0.3, 0.2, 0.1], 0.69, [0, 1]),
        ([0.4, 0.3, 0.2, 0.1], 0.71, [0, 1, 2]),
        ([0.1, 0.5, 0.1, 0.3], 0.79, [1, 3]),
        ([0.1, 0.5, 0.1, 0.3], 0.81, [0, 1, 3]),  # of equals, the lowest id
        ([0.1, 0.9], 1e-9, [1]),  # never less than one
        ([0.4, 0.3, 0.2, 0.1], 1.0, [0, 1, 2, 3]),
    ],
)
def test_top_p_keeps_the_fewest_that_reach_p(probs, p, expected):
    """The token with which the sum reaches p belongs to them."""
    assert kept(gpt2.keep_top_p(logits_of(*probs), p)) == expected


def test_top_p_1_keeps_the_whole_vocabulary():
    """No rounding of a long sum cuts off its end."""
    assert len(kept(gpt2.keep_top_p(np.zeros((1, 50257), dtype=np.float32), 1.0))) == 50257


def test_top_p_counts_the_probabilities_among_the_k():
    """After top-k 2, [.4, .3] are [.57, .43]: one token reaches .5, where all four need two."""
    logits = logits_of(0.4, 0.3, 0.2, 0.1)
    assert kept(gpt2.keep_top_p(gpt2.keep_top_k(logits, 2), 0.5)) == [0]
    assert kept(gpt2.keep_top_p(logits, 0.5)) == [0, 1]


def test_filters_treat_rows_alone():
    """Each row of a batch keeps its own."""
    logits = np.array([[1, 2, 3], [3, 2, 1]], dtype=np.float32)
    only_largest = logits == 3
    assert np.array_equal(np.isfinite(gpt2.keep_top_k(logits, 1)), only_largest)
    assert np.array_equal(np.isfinite(gpt2.keep_top_p(logits, 0.1)), only_largest)


def test_top_k_1_is_the_likeliest_at_any_temperature():
    """Also where several are likeliest: the lowest id, as argmax picks."""
    logits = np.array([[1, 2, 2, 0]], dtype=np.float32)
    drawn = {int(gpt2.sample(logits, [rng(seed)], 5.0, 1, 1.0)[0]) for seed in range(200)}
    assert drawn == {1}


def test_no_filtered_id_is_drawn():
    """10,000 draws at a temperature that makes all nearly alike stay among the kept."""
    logits = np.tile(rng(1).standard_normal((1, 30), dtype=np.float32), (10_000, 1))
    drawn = gpt2.sample(logits, [rng(2)] * 10_000, 50.0, 3, 1.0)
    assert set(drawn.tolist()) == set(kept(gpt2.keep_top_k(logits, 3)))


def test_draws_follow_the_probabilities():
    """The share of each id in 20,000 draws is its probability, within five deviations."""
    probs = np.array([0.5, 0.3, 0.15, 0.05])
    drawn = gpt2.sample(np.tile(np.log(probs), (20_000, 1)), [rng(3)] * 20_000, 1.0, 0, 1.0)
    shares = np.bincount(drawn, minlength=4) / 20_000
    assert np.all(np.abs(shares - probs) < 5 * np.sqrt(probs * (1 - probs) / 20_000))


def test_a_last_bit_changes_no_draw():
    """Rounding differs with the number of rows; 300 draws over a real-sized vocabulary agree."""
    logits = 3 * rng(4).standard_normal((300, 50257), dtype=np.float32)
    nudged = logits * np.float32(1 + 2e-6)
    draws = [gpt2.sample(x, [rng(5)] * 300, 1.0, 0, 1.0) for x in (logits, nudged)]
    assert np.array_equal(*draws)


def test_logits_are_only_read():
    """A read-only array does."""
    logits = rng(6).standard_normal((2, 40), dtype=np.float32)
    logits.flags.writeable = False
    gpt2.sample(logits, [rng(), rng()], 0.8, 10, 0.9)
