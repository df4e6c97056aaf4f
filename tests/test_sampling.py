"""Temperature, top-k and top-p change the probabilities as they should, and draws follow these."""

import numpy as np
import pytest

import gpt2

# What NumPy 1.26.0 and 2.4.6 both give.
GOLDEN_DRAWS = [483, 228, 834, 646, 919, 932, 626, 660]


def rng(seed=0):
    return np.random.default_rng(seed)


def kept(logits):
    """The ids that may still be picked."""
    return np.flatnonzero(np.isfinite(logits)).tolist()


def logits_of(*probs):
    return np.log(np.array(probs))


def draws(logits, n, seed, *options):
    """The ids of n draws with one random generator."""
    generator = rng(seed)
    return np.array([gpt2.sample(logits, generator, *options) for _ in range(n)])


def test_temperature_changes_the_probabilities():
    """Below 1 the likeliest token gets likelier, above 1 less likely. 1 changes nothing."""
    logits = rng().standard_normal(50, dtype=np.float32)
    probs = gpt2.softmax(logits)

    def largest(temperature):
        return gpt2.softmax(gpt2.scale_by_temperature(logits, temperature)).max()

    assert largest(0.5) > probs.max() > largest(2.0)
    assert np.isclose(largest(1.0), probs.max())


@pytest.mark.parametrize("temperature", [0.0, 1e-320, 1e-45, 1e-40, 1e-8])
@pytest.mark.filterwarnings("error")
def test_temperature_0_and_next_to_0_take_the_likeliest(temperature):
    """Nothing is divided by zero, no nan appears, and there is no warning."""
    logits = np.array([1.0, 3.0, 2.0], dtype=np.float32)
    assert gpt2.sample(logits, rng(), temperature, 0, 1.0) == 1


def test_temperature_0_draws_nothing():
    """A greedy text leaves the random generators as they were."""
    generator, untouched = rng(), rng()
    gpt2.sample(np.ones(9, dtype=np.float32), generator, 0.0, 0, 1.0)
    assert generator.random() == untouched.random()


@pytest.mark.parametrize(
    ("logits", "k", "expected"),
    [
        ([1, 2, 2, 2, 0], 2, [1, 2]),  # of equals, the lowest ids
        ([1, 2, 2, 2, 0], 1, [1]),
        ([1, 2, 2, 2, 0], 4, [0, 1, 2, 3]),
        ([3, 1, 2, 9, 5], 3, [0, 3, 4]),
        ([3, 1, 2, 9, 5], 0, [0, 1, 2, 3, 4]),  # 0 keeps all
        ([3, 1, 2, 9, 5], 5, [0, 1, 2, 3, 4]),
        ([3, 1, 2, 9, 5], 99, [0, 1, 2, 3, 4]),  # more than there are keep all too
    ],
)
def test_top_k_keeps_exactly_k(logits, k, expected):
    """Where logits are equal, the lowest ids are kept."""
    assert kept(gpt2.keep_top_k(np.array(logits, dtype=np.float32), k)) == expected


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
    """The token with which the sum reaches p is kept too."""
    assert kept(gpt2.keep_top_p(logits_of(*probs), p)) == expected


def test_top_p_1_keeps_the_whole_vocabulary():
    """The sum of so many probabilities is rounded, but this costs no token."""
    assert len(kept(gpt2.keep_top_p(np.zeros(50257, dtype=np.float32), 1.0))) == 50257


def test_top_p_counts_the_probabilities_among_the_k():
    """After top-k 2, [.4, .3] are [.57, .43]: one token reaches .5. Without top-k, it takes two."""
    logits = logits_of(0.4, 0.3, 0.2, 0.1)
    assert kept(gpt2.keep_top_p(gpt2.keep_top_k(logits, 2), 0.5)) == [0]
    assert kept(gpt2.keep_top_p(logits, 0.5)) == [0, 1]


def test_top_k_1_is_the_likeliest_at_any_temperature():
    """If several are likeliest, it is the one with the lowest id, as argmax picks it."""
    logits = np.array([1, 2, 2, 0], dtype=np.float32)
    assert {int(gpt2.sample(logits, rng(seed), 5.0, 1, 1.0)) for seed in range(200)} == {1}


def test_no_filtered_id_is_drawn():
    """Temperature 50 makes all tokens nearly alike. Still, 5,000 draws give only the kept ones."""
    logits = rng(1).standard_normal(30, dtype=np.float32)
    drawn = draws(logits, 5_000, 2, 50.0, 3, 1.0)
    assert set(drawn.tolist()) == set(kept(gpt2.keep_top_k(logits, 3)))


def test_draws_follow_the_probabilities():
    """The share of each id in 20,000 draws is its probability, within five deviations."""
    probs = np.array([0.5, 0.3, 0.15, 0.05])
    shares = np.bincount(draws(np.log(probs), 20_000, 3, 1.0, 0, 1.0), minlength=4) / 20_000
    assert np.all(np.abs(shares - probs) < 5 * np.sqrt(probs * (1 - probs) / 20_000))


def test_a_last_bit_changes_no_draw():
    """Logits are rounded differently in a batch of another size.

    300 draws from 50,257 tokens still agree.
    """
    logits = 3 * rng(4).standard_normal((300, 50257), dtype=np.float32)
    nudged = logits * np.float32(1 + 2e-6)
    for options in [(1.0, 0, 1.0), (0.8, 40, 0.9)]:
        first, second = rng(5), rng(5)
        for row, nudged_row in zip(logits, nudged):
            drawn = gpt2.sample(row, first, *options)
            assert drawn == gpt2.sample(nudged_row, second, *options)


def test_a_seed_gives_the_same_draws_with_every_numpy():
    """The noise is computed from rng.random(), so it does not depend on NumPy's own formulas."""
    logits = np.linspace(0, 3, 1000)
    drawn = draws(logits, 8, 7, 1.0, 0, 1.0)
    assert drawn.tolist() == GOLDEN_DRAWS


def test_logits_are_only_read():
    """A read-only array is enough."""
    logits = rng(6).standard_normal(40, dtype=np.float32)
    logits.flags.writeable = False
    gpt2.sample(logits, rng(), 0.8, 10, 0.9)
