"""Every metric is scikit-learn's, on random, skewed and degenerate inputs; gaps are left out."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from sklearn import metrics as sk

from graphfm.metrics.names import OF_CLASSES, OF_REGRESSION, bounds, gain, names_for, rounded
from graphfm.metrics.scores import all_scores, is_defined, micro_f1, score

MARGIN = 1e-6
FEW = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.fixture(autouse=True)
def quiet_oracle():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns of classes that do not occur
        yield


def same(found, want):
    if want is None:
        assert found is None
    else:
        assert found == pytest.approx(want, abs=MARGIN)


def mean(values):
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def auc(actual, scores):
    return sk.roc_auc_score(actual, scores) if 0 < actual.sum() < len(actual) else None


def precision(actual, scores):
    return sk.average_precision_score(actual, scores) if actual.any() else None


RANKINGS = {"roc-auc": auc, "average-precision": precision}


@some.composite
def cases(draw, most_classes=5):
    """Logits on a coarse grid, so that many are equal, and labels of which some may be rare."""
    rng = np.random.default_rng(draw(some.integers(0, 2**32)))
    rows, outputs = draw(some.integers(1, 40)), draw(some.integers(2, most_classes))
    logits = rng.integers(-draw(some.integers(0, 8)), 9, (rows, outputs)) / 4
    skew = draw(some.sampled_from([0.0, 0.03, 0.5, 1.0]))
    return rng, torch.tensor(logits, dtype=torch.float32), skew


@FEW
@given(cases())
def test_of_one_class_per_node(case):
    rng, logits, skew = case
    rows, number = logits.shape
    y = np.where(rng.random(rows) < skew, rng.integers(number, size=rows), 0)
    found = all_scores(OF_CLASSES, "classes", logits, torch.tensor(y))
    predicted = logits.argmax(dim=1).numpy()
    same(found["micro-f1"], sk.accuracy_score(y, predicted))
    same(found["micro-f1"], sk.f1_score(y, predicted, average="micro"))
    same(found["macro-f1"], sk.f1_score(y, predicted, average="macro"))
    same(found["balanced-accuracy"], sk.balanced_accuracy_score(y, predicted))
    for name, oracle in RANKINGS.items():
        if number == 2:
            same(found[name], oracle(y == 1, (logits[:, 1] - logits[:, 0]).numpy()))
            other = score(name, "classes", logits, torch.tensor(y), positive=0)
            same(other, oracle(y == 0, (logits[:, 0] - logits[:, 1]).numpy()))
        else:
            chances = logits.double().softmax(dim=1).float().numpy()
            same(found[name], mean(oracle(y == c, chances[:, c]) for c in np.unique(y)))


@FEW
@given(cases())
def test_of_many_labels_with_gaps(case):
    rng, logits, skew = case
    y = (rng.random(logits.shape) < skew).astype(np.int8)
    y[rng.random(y.shape) < 0.2] = -1
    found = all_scores(OF_CLASSES, "labels", logits, torch.tensor(y))
    known, predicted = y >= 0, (logits > 0).numpy()
    same(
        found["micro-f1"], sk.f1_score(y[known], predicted[known], zero_division=1.0)
    )  # nothing to find and nothing claimed is right
    columns = [(y[k, c] > 0, predicted[k, c], logits[k, c].numpy()) for c, k in enumerate(known.T)]
    f1 = [sk.f1_score(a, p, zero_division=0.0) if len(a) else 0.0 for a, p, _ in columns]
    same(found["macro-f1"], sum(f1) / len(f1))
    balanced = [sk.balanced_accuracy_score(a, p) if len(a) else None for a, p, _ in columns]
    same(found["balanced-accuracy"], mean(balanced))
    for name, oracle in RANKINGS.items():
        same(found[name], mean(oracle(a, s) if len(a) else None for a, _, s in columns))


def test_of_many_labels_without_gaps_macro_f1_is_one_call_of_the_oracle():
    rng = np.random.default_rng(0)
    y, logits = rng.integers(2, size=(50, 6)), torch.tensor(rng.normal(size=(50, 6)))
    found = all_scores(OF_CLASSES, "labels", logits, torch.tensor(y, dtype=torch.int8))
    predicted = (logits > 0).numpy()
    same(found["macro-f1"], sk.f1_score(y, predicted, average="macro"))
    same(found["micro-f1"], sk.f1_score(y, predicted, average="micro"))
    same(found["roc-auc"], sk.roc_auc_score(y, logits.numpy(), average="macro"))
    same(found["average-precision"], sk.average_precision_score(y, logits.numpy()))


@FEW
@given(some.integers(0, 2**32), some.integers(1, 30), some.integers(1, 3), some.booleans())
def test_of_a_regression(seed, rows, targets, constant):
    rng = np.random.default_rng(seed)
    y = np.full((rows, targets), 3.0) if constant else rng.normal(5, 100, (rows, targets))
    values = y + rng.normal(size=y.shape)
    found = all_scores(OF_REGRESSION, "regression", torch.tensor(values), torch.tensor(y))
    same(found["mae"], sk.mean_absolute_error(y, values))
    same(found["rmse"], sk.root_mean_squared_error(y, values))
    defined = rows > 1 and not constant  # the oracle says 0 or 1 of targets that are all equal
    same(found["r2"], sk.r2_score(y, values) if defined else None)


def test_a_gap_of_a_regression_is_not_scored():
    y = torch.tensor([[1.0, 2.0], [float("nan"), 4.0], [3.0, float("nan")]])
    values = torch.tensor([[2.0, 2.0], [99.0, 7.0], [3.0, 99.0]])
    same(score("mae", "regression", values, y), (0.5 + 1.5) / 2)
    same(score("rmse", "regression", values, y), (0.5**0.5 + 4.5**0.5) / 2)


def test_what_is_not_defined_is_none():
    ones, zeros = torch.ones(4, dtype=torch.long), torch.zeros(4, dtype=torch.long)
    for y in (ones, zeros):
        assert not is_defined("roc-auc", "classes", y, 2)
        assert is_defined("macro-f1", "classes", y, 2)
    assert is_defined("average-precision", "classes", ones, 2)
    assert not is_defined("average-precision", "classes", zeros, 2)
    assert is_defined("average-precision", "classes", zeros, 2, positive=0)
    assert not is_defined("r2", "regression", torch.ones(4), 1)
    for task in ("classes", "labels", "regression"):
        y = torch.ones(0) if task == "regression" else ones[:0]
        found = all_scores(names_for(task), task, torch.ones(0, 2), y)
        assert set(found.values()) == {None}


def test_higher_is_better_after_the_sign():
    assert gain("mae", 2.0) < gain("mae", 1.0)
    assert gain("rmse", 2.0) < gain("rmse", 1.0)
    for name in (*OF_CLASSES, "r2", "auto"):
        assert gain(name, 0.5) == 0.5
    assert bounds("micro-f1") == (0, 1)
    assert bounds("r2")[1] == 1
    assert bounds("mae")[0] == 0


def test_a_small_error_is_not_shown_as_zero():
    shown = [rounded(value) for value in (0.0, 0.85, 0.00123456, 0.000123456, -4.1811e-06, 445.5)]
    assert shown == ["0.0000", "0.8500", "0.0012", "0.0001235", "-4.181e-06", "445.5000"]
    assert rounded(0.0001, like=0.85) == "0.0001"
    assert rounded(0.5, like=1e-6) == "0.5"


def test_a_gap_among_labels_is_neither_claimed_nor_missed():
    y = torch.tensor([[1, -1, 0]], dtype=torch.int8)
    assert micro_f1(torch.tensor([[1.0, 9.0, -1.0]]), y) == 1.0
