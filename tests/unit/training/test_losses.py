"""The losses of classes, labels and numbers, against torch's own and by hand."""

import json

import pytest
import torch
from torch.nn import functional

from graphfm import Graph, InputError, train
from graphfm.runs.run import Run, build
from graphfm.training.class_weights import as_weights, weights_of
from graphfm.training.losses import Loss, gradient_norms, node_losses
from graphfm.training.settings import Training

NAN = float("nan")


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(0)


def classes(rng, rows=12, number=4):
    y = torch.randint(number, (rows,), generator=rng)
    y[3] = -1
    return torch.randn(rows, number, generator=rng), y


def labels(rng, rows=12, number=4):
    y = torch.randint(2, (rows, number), generator=rng).to(torch.int8)
    y[3], y[5, 1] = -1, -1
    return torch.randn(rows, number, generator=rng), y


def test_weights_and_smoothing_are_those_of_torch(rng):
    logits, y = classes(rng)
    weight = torch.tensor([1.0, 0.0, 3.0, 0.5])
    plain = functional.cross_entropy(
        logits, y, ignore_index=-1, reduction="none", label_smoothing=0.2
    )
    found = Loss(class_weight=weight, smoothing=0.2).rows(logits, y)
    torch.testing.assert_close(found, plain * weight[y.clamp(min=0)] * (y >= 0))
    torch.testing.assert_close(Loss(smoothing=0.2).rows(logits, y), plain)


@pytest.mark.parametrize("make", [classes, labels])
def test_focal_loss_of_gamma_zero_is_cross_entropy(rng, make):
    logits, y = make(rng)
    torch.testing.assert_close(Loss("focal", gamma=0.0).rows(logits, y), node_losses(logits, y))


def test_focal_loss_by_hand(rng):
    logits, y = classes(rng)
    chance = logits.softmax(dim=1).gather(1, y.clamp(min=0).unsqueeze(1)).squeeze(1)
    want = -((1 - chance) ** 3) * chance.log() * (y >= 0)
    torch.testing.assert_close(Loss("focal", gamma=3.0).rows(logits, y), want)
    logits, y = labels(rng)
    chance = torch.where(y > 0, logits.sigmoid(), (-logits).sigmoid())
    each = -((1 - chance) ** 3) * chance.log() * (y >= 0)
    want = each.sum(dim=1) / (y >= 0).sum(dim=1).clamp(min=1)
    torch.testing.assert_close(Loss("focal", gamma=3.0).rows(logits, y), want)


def test_focal_loss_of_a_certain_node_has_a_finite_gradient():
    logits = torch.tensor([[200.0, -200.0]], requires_grad=True)
    Loss("focal", gamma=0.5).rows(logits, torch.tensor([0])).sum().backward()
    assert bool(logits.grad.isfinite().all())


def test_labels_have_weights_for_having_and_not_having_each(rng):
    logits, y = labels(rng)
    weight = torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    found = Loss(class_weight=weight).rows(logits, y)
    each = functional.binary_cross_entropy_with_logits(
        logits, y.clamp(min=0).float(), reduction="none"
    )
    each = each * torch.where(y > 0, weight[1], weight[0]) * (y >= 0)
    torch.testing.assert_close(found, each.sum(dim=1) / (y >= 0).sum(dim=1).clamp(min=1))


def test_a_row_with_gaps_is_the_mean_of_what_is_known(rng):
    logits, y = labels(rng)
    known = y[5] >= 0
    want = functional.binary_cross_entropy_with_logits(logits[5, known], y[5, known].float())
    torch.testing.assert_close(node_losses(logits, y)[5], want)
    assert float(node_losses(logits, y)[3]) == 0.0


@pytest.mark.parametrize(
    ("kind", "oracle"),
    [
        ("mse", functional.mse_loss),
        ("mae", functional.l1_loss),
        ("huber", lambda a, b: functional.huber_loss(a, b, delta=0.7)),
    ],
)
def test_of_a_regression_in_standard_deviations(rng, kind, oracle):
    y = torch.tensor([[10.0, 5.0], [NAN, 7.0], [NAN, NAN]])
    center, scale = torch.tensor([8.0, 6.0]), torch.tensor([2.0, 0.5])
    outputs = torch.randn(3, 2, generator=rng)
    loss = Loss(kind, delta=0.7, center=center, scale=scale)
    found, aims = loss.rows(outputs, y), (y - center) / scale
    torch.testing.assert_close(found[0], oracle(outputs[0], aims[0]))
    torch.testing.assert_close(found[1], oracle(outputs[1, 1], aims[1, 1]))
    assert float(found[2]) == 0.0
    torch.testing.assert_close(loss.values(aims[0]), y[0])


@pytest.mark.parametrize("kind", ["plain", "weighted", "focal", "mae"])
def test_gradient_norms_are_those_of_autograd(rng, kind):
    logits, y = classes(rng)
    loss = {
        "plain": Loss(), "weighted": Loss(class_weight=torch.rand(4, generator=rng)),
        "focal": Loss("focal"), "mae": Loss("mae", center=torch.zeros(4), scale=torch.ones(4)),
    }[kind]  # fmt: skip
    y = torch.randn(12, 4, generator=rng) if kind == "mae" else y
    asked = logits.clone().requires_grad_()
    loss.rows(asked, y).sum().backward()
    torch.testing.assert_close(loss.gradient_norms(logits, y), asked.grad.norm(dim=1))
    if kind != "plain" and kind != "mae":
        assert not torch.allclose(loss.gradient_norms(logits, y), gradient_norms(logits, y))


# ---- weights of classes


def with_names(y, **options):
    mask = torch.tensor([True] * len(y))
    mask[-1] = False
    graph = dict(train_mask=mask, val_mask=~mask, **options)
    return Graph.from_edges([[0], [1]], torch.ones(len(y), 1), y, **graph)


def test_balanced_weights_give_every_class_the_same_total():
    graph = with_names([0, 0, 0, 1, 3, 3, 0], num_classes=4)
    weights = weights_of(graph, ("balanced",))
    torch.testing.assert_close(weights, torch.tensor([6 / 9, 2.0, 0.0, 1.0]))
    assert float(weights[graph.y[graph.train_mask]].mean()) == pytest.approx(1.0)
    many = with_names([[1, 0], [0, 0], [0, -1], [0, 0], [1, 1]])
    torch.testing.assert_close(
        weights_of(many, ("balanced",)), torch.tensor([[4 / 6, 1.0], [2.0, 0.0]])
    )


def test_weights_from_a_file_are_kept_as_values(tmp_path):
    graph = with_names([0, 1, 2], class_names=["a,b", "c=d", "e"])
    files = {
        "w.json": json.dumps({"a,b": 2, "c=d": 0.5}),
        "w.csv": 'class,weight\n"a,b",2\nc=d,0.5\n',
        "bare.csv": '"a,b",2\nc=d,0.5\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        training = Training(class_weights=(str(tmp_path / name),))
        assert training.class_weights == ("a,b=2", "c=d=0.5")
        (tmp_path / name).unlink()  # no longer needed
        assert weights_of(graph, training.class_weights).tolist() == [2.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("even", "class_weights is 'even'; expected balanced, CLASS=WEIGHT"),
        ("a=x", "gives class a the weight x; expected 0 to a million"),
        ("a=-1", "weight -1; expected 0"),
        ("a=nan", "weight nan"),
        ("none.json", "cannot read none.json: No such file"),
        ("none.csv", "cannot read none.csv"),
    ],
)
def test_bad_weights_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        as_weights((given,))


@pytest.mark.parametrize(
    "content", ["", "[1]", "{", "a,b,c\n", '{"a": "x"}', '{"a": [1]}', "\x00", '{"a": 1e999}']
)
@pytest.mark.parametrize("name", ["w.json", "w.csv"])
def test_bad_files_are_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match="class_weights"):
        Training(class_weights=(str(tmp_path / name),))


def test_weights_are_not_rounded():
    given = ("a=20", "b=0.1", "c=0.333333333333", "d=123456.789")
    assert as_weights(given) == given


def test_a_class_given_twice_or_unknown_is_refused():
    with pytest.raises(InputError, match="gives class a twice"):
        as_weights(("a=1", "a=2"))
    with pytest.raises(InputError, match="names class 'b'.*does not have"):
        weights_of(with_names([0, 1, 0], class_names=["a", "c"]), ("b=1",))


# ---- in a training


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "mae"}, "loss is mae, but y holds classes; expected cross-entropy or focal"),
        ({"metric": "r2"}, "metric is r2, but y holds classes"),
        ({"metric": "best"}, "metric is best; expected auto"),
        ({"positive": "1"}, "does not have two classes"),
        ({"label_smoothing": 1.0}, "label_smoothing is 1.0; expected 0 to below 1"),
        ({"focal_gamma": 3.0}, "focal_gamma belongs to the focal loss"),
        ({"huber_delta": 3.0}, "huber_delta belongs to the huber loss"),
        ({"loss": "huber", "huber_delta": 0.0}, "huber_delta is 0.0"),
    ],
)
def test_settings_that_do_not_fit_are_refused(make_graph, options, message):
    with pytest.raises(InputError, match=message):
        train(make_graph(), epochs=1, **options)


def test_a_metric_that_validation_does_not_define_is_refused():
    graph = with_names([0, 1, 0, 1, 0])
    with pytest.raises(
        InputError, match="ROC-AUC is not defined on the validation nodes.*micro-f1"
    ):
        train(graph, epochs=1, metric="roc-auc")
    assert train(graph, epochs=1, metric="average-precision", positive="0").score.val == 1.0
    with pytest.raises(InputError, match="R² is not defined.*mae or rmse"):
        train(with_names([0.5, 1.5, 2.5, 3.5]), epochs=1)


@pytest.mark.parametrize("method", ["graphsaint", "mvs-gcn", "graphsage", "gas"])
def test_a_weighted_loss_of_all_is_the_weighted_mean(make_graph, method):
    """Whoever weighs the nodes, a class of weight 0 has no gradient."""
    graph = make_graph()
    trainer = build(Run.make(method=method, class_weights=("0=0", "1=0", "2=0", "3=0")), graph)
    trainer.epoch()
    assert float(trainer.totals[0]) == 0.0
    twice = ("0=2", "1=2", "2=2", "3=2")
    again = build(Run.make(method=method, class_weights=twice, dropout=0.0), graph)
    once = build(Run.make(method=method, dropout=0.0), graph)
    seeds = next(iter(once.method.sampler.epoch(once.rng)))
    next(iter(again.method.sampler.epoch(again.rng)))
    losses = [t.batch_loss(t.method.sampler.sample(seeds, t.rng)) for t in (again, once)]
    assert losses[0].item() == pytest.approx(2 * losses[1].item(), rel=1e-5)
