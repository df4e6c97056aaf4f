"""Options are checked alike, whether they come from the command line, main or generate."""


import numpy as np
import pytest

import checks
import gpt2

NO_WHOLE_NUMBERS = ["-1", "\u22121", "+5", "many", "True", "", "nan", "40.0", "40.5", "1e2"]
NO_WHOLE_NUMBERS += ["1_000", "0x10", " 5", "5\n", "\uff14\uff10", "\u00b2", "9" * 19, "9" * 10_000]
NO_WHOLE_NUMBERS += [-1, True, False, None, 1.0, 2.5, float("nan"), 10**18, np.float32(1), [1]]

NO_NUMBERS = ["-1", "\u22121", "0,7", "nan", "inf", "-inf", "1e999", "True", "", ".", "1_0"]
NO_NUMBERS += ["\u0660.\u0667", "1e-400", True, None, float("nan"), float("inf"), -1e-9, 10**400]
NO_NUMBERS += [1j, np.float64("nan"), np.bool_(True), [0.5]]

NO_FRACTIONS = [*NO_NUMBERS, "0", "0.0", "1.1", "90", "90%", 0, 0.0, 1.5, 90, np.float32(0)]


@pytest.mark.parametrize("value", NO_WHOLE_NUMBERS, ids=lambda value: repr(value)[:30])
def test_what_is_no_whole_number_is_refused(value):
    """The message names the argument, shows what was given, and says what is allowed."""
    with pytest.raises(checks.CallError, match="^top_k must be a whole number, 0 or") as refused:
        checks.integer("top_k", value, lowest=0)
    assert checks.shown(value) in str(refused.value) and len(str(refused.value)) < 160


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: repr(value)[:30])
def test_what_is_no_number_is_refused(value):
    """A number must be 0 or more, finite, and not so small that a float rounds it to 0."""
    with pytest.raises(checks.CallError, match="^temperature (must be a number|'1e-400' is too)"):
        checks.number("temperature", value)


@pytest.mark.parametrize("value", NO_FRACTIONS, ids=lambda value: repr(value)[:30])
def test_what_is_no_fraction_is_refused(value):
    """top_p = 0 would keep no token at all, and 90 is a percentage."""
    with pytest.raises(checks.CallError, match="^top_p (must be above 0|'1e-400' is too)"):
        checks.fraction("top_p", value)


def test_right_values_are_accepted():
    """Text and numbers, also those of NumPy, give the same int or float."""
    assert [checks.integer("k", value, lowest=0) for value in ["07", 7, np.int64(7)]] == [7] * 3
    for value in [".7", "0.7", "7e-1", 0.7, np.float64(0.7)]:
        assert checks.number("t", value) == checks.fraction("p", value) == 0.7
    assert [checks.number("t", value) for value in ["0", "0.0e5", "5e-324", "1e308", 3]] == [
        0, 0, 5e-324, 1e308, 3
    ]  # fmt: skip
    assert checks.fraction("p", 1) == checks.fraction("p", "1.") == 1
    assert type(checks.integer("k", np.uint8(7), lowest=7)) is int


# ---- generate ------------------------------------------------------------------------------

RIGHT = dict(n_vocab=9, n_ctx=4, n_tokens_to_generate=1, temperature=0.0, top_k=0, top_p=1.0)


@pytest.mark.parametrize(
    "name, value",
    [
        *[("inputs", ids) for ids in ([], [1] * 5, [9], [-1], [1.0], ["1"], "1", [[1]], [True])],
        ("inputs", np.array([[1, 2]])),
        ("n_tokens_to_generate", -1),
        ("temperature", -0.7),
        ("temperature", float("nan")),
        ("top_k", -1),
        ("top_p", 0),
        ("top_p", 90),
        ("stop_id", 9),
    ],
    ids=str,
)
def test_generate_refuses_what_the_command_line_refuses(name, value):
    """generate calls check_generate before the model runs. The error names the argument."""
    with pytest.raises(ValueError, match=f"^{name}"):
        checks.check_generate(**{"inputs": [1, 2], **RIGHT, name: value})


@pytest.mark.parametrize("inputs", [[0, 8], (1, 2, 3, 4), np.array([3], dtype=np.uint16)], ids=str)
def test_generate_takes_ids_of_every_kind(inputs):
    """The ids may be in a list, a tuple, or an array of whole numbers."""
    checks.check_generate(inputs, **RIGHT, stop_id=8)


# ---- main ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        dict(seed=True),
        dict(seed=-1),
        dict(nsamples=0),
        dict(batch_size=0),
        dict(n_tokens_to_generate=None),
        dict(temperature=float("nan")),
        dict(top_p=0),
        dict(top_k=2.5),
        dict(model_size="335M"),
    ],
    ids=str,
)
def test_main_refuses_from_python_what_the_command_line_refuses(option):
    """The error names the option, or says that there is no such model.

    CallError is a ValueError.
    """
    with pytest.raises(checks.CallError, match=f"^({[*option][0]}|there is no model '335M')"):
        gpt2.main("ROMEO:", **{"model_size": "tiny", **option})
