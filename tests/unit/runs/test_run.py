import json

import pytest

from graphfm import InputError
from graphfm.backbones import BACKBONES
from graphfm.runs.run import Run


def test_options_go_to_whom_they_belong():
    run = Run.make(backbone="gcnii", hidden=16, alpha=0.3, lr=0.5, seed=None)
    assert run.backbone_settings["hidden"] == 16
    assert run.backbone_settings["alpha"] == 0.3
    assert run.training.lr == 0.5
    assert run.training.seed == 0  # None is not given


@pytest.mark.parametrize("backbone", BACKBONES)
def test_a_run_survives_json(backbone):
    run = Run.make(backbone=backbone, layers=3, epochs=3, schedule="step")
    assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run


def test_nothing_is_left_to_a_default():
    run = Run.make(backbone="pna")
    assert set(run.backbone_settings) == set(BACKBONES["pna"].Settings.__dataclass_fields__)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backbone": "gat"}, "unknown backbone 'gat'; choose one of sage, gcn"),
        ({"method": "nope"}, "unknown method 'nope'; choose one of full, graphsage"),
        ({"device": "tpu"}, "unknown device 'tpu'; choose one of auto"),
        ({"alpha": 0.1}, "alpha is not a setting of backbone sage .* it belongs to backbone gcnii"),
        ({"metod": "gas"}, r"there is no such option \(did you mean method\?\)"),
        ({"beta": 0.1}, "beta is not a setting .* it belongs to method graphfm-ib"),
        ({"layers": "2"}, "layers is '2'; expected a whole number"),
        ({"epochs": 2.5}, "epochs is 2.5; expected a whole number"),
        ({"batch_norm": "no"}, "batch_norm is 'no'; expected true or false"),
        ({"hidden": 1 << 40}, "hidden is 1099511627776; expected at most"),
        ({"method": "graphsage", "history": "bf16"}, "history applies to histories"),
        ({"method": "graphfm-ib", "beta": 2.0}, "beta is 2.0; expected numbers from 0 to 1"),
        ({"method": "graphsage", "fanout": 1.5}, "fanout is 1.5; expected a whole number"),
        ({"layers": 0}, "layers is 0; expected 1 or more"),
        ({"hidden": -3}, "hidden is -3"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"backbone": "gcnii", "alpha": 2.0}, "alpha is 2.0"),
        ({"backbone": "gcnii", "theta": 0.0}, "theta is 0.0"),
        ({"backbone": "sign", "residual": True}, "residual is not a setting of backbone sign"),
        ({"backbone": "sign", "layers": 0}, "layers is 0; expected 1 or more"),
        ({"method": "sgc", "hidden": 8}, "hidden is not a setting of backbone sgc or method sgc"),
        ({"method": "sgc", "layers": 0}, "layers is 0; expected 1 or more"),
        ({"method": "sign", "batch_size": 0}, "batch_size is 0; expected 1 or more"),
        ({"method": "sign", "backbone": "sage"}, "sign has its own network .* leave out"),
        ({"backbone": "pna", "aggregators": ("mean", "sum")}, "aggregators is mean,sum"),
        ({"backbone": "pna", "scalers": ()}, "scalers is empty"),
    ],
)
def test_a_wrong_option_is_refused_with_advice(options, message):
    with pytest.raises(InputError, match=message):
        Run.make(**options)
