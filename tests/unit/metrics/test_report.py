"""The report: per class, confusion, calibration and degrees, against scikit-learn and by hand."""

import numpy as np
import pytest
import torch
from sklearn import metrics as sk

from graphfm.metrics.report import (
    BINS,
    MOST_CONFUSED,
    by_class,
    by_degree,
    calibration,
    confusion,
    report,
)


@pytest.fixture
def outputs():
    rng = torch.Generator().manual_seed(0)
    y = torch.randint(4, (200,), generator=rng)
    logits = torch.randn(200, 4, generator=rng) + 2 * torch.nn.functional.one_hot(y, 4)
    return logits, y


def test_per_class_and_confusion_are_those_of_the_oracle(outputs):
    logits, y = outputs
    predicted = logits.argmax(dim=1)
    want = sk.precision_recall_fscore_support(y, predicted)
    rows = by_class("classes", logits, y)
    for name, values in zip(("precision", "recall", "f1", "support"), want, strict=True):
        np.testing.assert_allclose([row[name] for row in rows], values, atol=1e-6)
    assert confusion(logits, y) == sk.confusion_matrix(y, predicted).tolist()


def test_labels_per_class_are_those_of_the_oracle():
    rng = torch.Generator().manual_seed(0)
    y = torch.randint(2, (100, 5), generator=rng).to(torch.int8)
    logits = torch.randn(100, 5, generator=rng)
    want = sk.precision_recall_fscore_support(y.numpy(), (logits > 0).numpy())
    rows = by_class("labels", logits, y)
    for name, values in zip(("precision", "recall", "f1", "support"), want, strict=True):
        np.testing.assert_allclose([row[name] for row in rows], values, atol=1e-6)


def test_calibration_by_hand():
    chance = torch.tensor([0.95, 0.95, 0.65, 0.65])
    logits = torch.stack([(chance / (1 - chance)).log(), torch.zeros(4)], dim=1)
    found = calibration("classes", logits, torch.tensor([0, 1, 0, 0]))
    assert len(found["bins"]) == BINS
    assert [row["nodes"] for row in found["bins"]] == [0] * 6 + [2, 0, 0, 2]
    assert found["bins"][6]["accuracy"] == 1.0
    assert found["bins"][9]["accuracy"] == 0.5
    assert found["bins"][9]["certainty"] == pytest.approx(0.95)
    assert found["ece"] == pytest.approx((0.35 + 0.45) / 2, abs=1e-6)


def test_every_node_is_in_one_degree_bucket(outputs):
    logits, y = outputs
    degree = torch.arange(200) ** 2
    rows = by_degree("classes", logits, y, degree)
    assert sum(row["nodes"] for row in rows) == 200
    assert [row["from"] for row in rows][:3] == [0, 1, 4]
    assert rows[-1]["to"] is None
    right = (logits.argmax(dim=1) == y).double()
    weighed = sum(row["nodes"] * row["micro-f1"] for row in rows)
    assert weighed == pytest.approx(float(right.sum()), abs=1e-4)


def test_a_regression_is_reported_by_target_and_degree():
    y = torch.tensor([[0.0, 1.0], [2.0, float("nan")], [4.0, 3.0]])
    found = report("regression", y.nan_to_num(7.0) + 1, y, torch.tensor([0, 1, 1]))
    assert found.keys() == {"task", "targets", "degrees"}
    assert [row["support"] for row in found["targets"]] == [3, 2]
    assert [row["mae"] for row in found["targets"]] == [1.0, 1.0]
    assert [row["mae"] for row in found["degrees"]] == [1.0, 1.0]


def test_pairs_of_very_many_classes_are_not_counted():
    y = torch.arange(3)
    for classes, counted in ((MOST_CONFUSED, True), (MOST_CONFUSED + 1, False)):
        found = report("classes", torch.eye(3, classes), y, torch.ones(3))
        assert ("confusion" in found) == counted
