"""A picture shows an array cell by cell, and says which number each cell stands for."""

import base64
import re

import numpy as np
import pytest

from page.pictures import CELLS, WIDTH, as_matrix, full_colour, picture, shared
from page.values import describe


def numbers_in(image):
    """The matrix that a picture's data-cells hold."""
    width = int(re.search(r'data-panel="\d+ \d+ \d+ (\d+)"', image)[1])
    data = base64.b64decode(re.search('data-cells="(.*?)"', image)[1])
    return np.frombuffer(data, "<f2").reshape(-1, width)


def test_a_small_array_is_drawn_whole():
    """The first axis becomes panels side by side, with a gap of one cell between them."""
    array = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    matrix, panel = as_matrix(array)
    assert panel == (3, 4, 2)
    assert np.array_equal(matrix[:, :4], array[0]) and np.array_equal(matrix[:, 5:], array[1])
    assert not matrix[:, 4].any()


@pytest.mark.parametrize("shape", [(1000,), (700, 900), (3, 1, 4, 41, 32), (1, 4, 512), (64, 2)])
def test_a_large_array_is_thinned_and_keeps_its_outliers(shape):
    """However large, a picture has few cells, and the number farthest from 0 is in one of them."""
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    array[(-1,) * len(shape)] = -50
    matrix, _ = as_matrix(array)
    assert matrix.size <= 1.5 * CELLS and matrix.shape[1] <= WIDTH + 4
    assert matrix.min() == -50


def test_numbers_can_be_read_from_a_picture():
    """The numbers have three digits. -inf and nan are kept."""
    array = np.random.default_rng(0).standard_normal((4, 9)).astype(np.float32)
    array[0, 1], array[0, 2] = -np.inf, np.nan
    image = picture(array, "scores", full_colour(array))
    assert 'data-name="scores" data-shape="4 9" data-panel="4 9 1 9"' in image
    assert numbers_in(image) == pytest.approx(array, rel=5e-4, nan_ok=True)


def test_numbers_of_two_equal_pictures_are_written_once():
    """The later picture names the place of the first one."""
    one, two = (f'<i data-cells="{cells}"/>' for cells in ("AAAA", "BBBB"))
    assert shared(one + two + two + one) == (
        one + two + '<i data-cells="#2"/>' + '<i data-cells="#1"/>'
    )


@pytest.mark.parametrize(
    "array, words",
    [
        (np.array([-np.inf] * 3 + [1.0, 2, 3, 4]), "1 to 4, mean 2.5"),
        (np.array([-np.inf] * 3 + [1.0, 2, 3, 4]), "3 of 7 are -inf"),
        (np.full(9, np.nan), "nothing yet"),
        (np.array([np.nan, *range(8)]), "1 of 9 are free"),
        (np.arange(5), "0, 1, 2, 3, 4"),
        (np.arange(40), "0 to 39"),
        (np.arange(40) > 9, "30 of 40 True"),
    ],
)
def test_the_words_beside_a_picture_are_about_the_numbers(array, words):
    """Range and mean leave out -inf and memory that is not written yet. Both are counted."""
    assert words in describe("x", array)
