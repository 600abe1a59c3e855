"""Mean and deviation of features, fitted in pieces."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm.data.graph.standard import fit

TYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 40), st.integers(1, 5), st.integers(1, 30), st.integers(0, 999),
    st.sampled_from(TYPES),
)  # fmt: skip
def test_it_is_that_of_numpy_whatever_the_pieces(rows, columns, at_once, seed, dtype):
    rng = torch.Generator().manual_seed(seed)
    x = (3 + 2 * torch.randn(rows, columns, generator=rng)).to(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphfm.data.graph.standard.NUMBERS_AT_ONCE", at_once)
        center, scale = fit(x)
    double = x.double().numpy()
    np.testing.assert_allclose(center, double.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(1 / scale, double.std(axis=0, ddof=1), rtol=1e-6)


def test_a_constant_column_and_a_single_row_have_no_scale():
    assert fit(torch.full((9, 2), 0.1))[1].tolist() == [0, 0]
    assert fit(torch.tensor([[4.0, 5.0]]))[1].tolist() == [0, 0]
