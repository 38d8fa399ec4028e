"""Row products: correct, and each row's bits are independent of the other rows."""

import numpy as np
import pytest

from aggrevated.kernels.linear_algebra import add_product, affine


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (4, 16), (16, 2), (64, 64), (300, 7), (0, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_affine_row_does_not_depend_on_the_other_rows(inputs, outputs, dtype):
    draw = np.random.default_rng(inputs).normal
    x, w, b = (draw(size=shape).astype(dtype) for shape in ((50, inputs), (inputs, outputs), (outputs,)))
    all_rows = affine(x, w, b)
    assert all_rows.dtype == dtype
    np.testing.assert_allclose(all_rows, x.astype(float) @ w.astype(float) + b, rtol=0, atol=2e-4)
    for rows in ([7], [3, 49], list(range(50))[::-1], list(range(0, 50, 3))):
        np.testing.assert_array_equal(affine(x[rows], w, b), all_rows[rows])
    np.testing.assert_array_equal(affine(np.asfortranarray(x)[:, ::1], w, b), all_rows)
    np.testing.assert_array_equal(affine(np.repeat(x, 2, axis=1)[:, ::2], w, b), all_rows)


def test_affine_sums_in_the_order_of_the_inputs():
    """In float32 (1e8 + 1) − 1e8 = 0, but (1e8 − 1e8) + 1 = 1."""
    w = np.ones((3, 1), np.float32)
    b = np.zeros(1, np.float32)
    assert affine(np.float32([[1e8, 1, -1e8], [1e8, -1e8, 1]]), w, b).ravel().tolist() == [0, 1]


def test_add_product_adds_in_place():
    out = np.ones((2, 2))
    assert add_product(out, np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]])) is out
    assert out.tolist() == [[2, 3], [4, 5]]
