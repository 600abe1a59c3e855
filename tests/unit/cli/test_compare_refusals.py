"""graphfm compare names its options, and refuses wrong ones with one line."""

import re

import pytest

from graphfm.methods import METHODS
from graphfm.options import options_in
from graphfm.training.settings import Training
from tests.unit.cli.comparing import FEW, OUT, compare

pytestmark = pytest.mark.usefixtures("here")


def test_help_names_every_option():
    code, out, err = compare("--help")
    assert (code, err) == (0, "")
    shown = set(re.findall(r"--(?:\[no-\])?([a-z-]+)", out))
    promised = "dataset backbone methods seeds layers hidden dropout lr budget-epochs"
    promised += " budget-seconds patience sweep columns device out json"
    assert set(promised.split()) <= shown
    training = options_in(Training).keys() - {"seed", "epochs", "max_seconds"}
    assert {name.replace("_", "-") for name in training} <= shown


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--methods", "full,nope"), "unknown method 'nope'; choose one of full, graphsage"),
        (("--backbone", "gat"), "unknown backbone 'gat'"),
        (("--device", "tpu"), "unknown device 'tpu'"),
        (("--dataset", "nowhere"), "unknown dataset 'nowhere'"),
        (("--dataset", "nowhere.npz"), "nowhere.npz: no such file"),
        (("--seeds", "0"), "seeds is 0; expected 1 to 1000"),
        (("--budget-epochs", "0"), "epochs is 0; expected 1 or more"),
        (("--budget-seconds", "0"), "budget_seconds is 0.0; expected a number above 0"),
        (("--budget-seconds", "1", "--budget-epochs", "1"), "two budgets"),
        (("--sweep", "fanout"), "sweep is 'fanout'; expected a name and its values"),
        (("--sweep", "lr=1,2", "--sweep", "lr=3"), "lr is swept 2 times; give all values at once"),
        (("--columns", "tset"), "unknown column 'tset'; choose one of best, test"),
        (("--history", "bf16"), "history applies to histories, but none of the methods"),
        (("--sweep", "nope=1"), "nope is not a setting of backbone sage or of full, graphsage"),
        (("--sweep", "lr=1,x"), "lr is 'x'; expected a number"),
        (("--lr", "0"), "lr is 0.0; expected"),
        (("--patience", "-1"), "patience is -1"),
        (("--out", "file"), "cannot write to file: it is a file"),
        (("--out", "full"), "full is not empty and holds no results of this command; choose an"),
        (("--fanuot", "1"), "No such option: --fanuot"),
        (("--methods", "full", "--fanout", "1"), "fanout is not a setting of backbone sage"),
        (("--fanout", "few"), "--fanout is 'few'; expected"),
    ],
)
def test_a_wrong_option_is_one_line_and_leaves_nothing(fake, here, arguments, reason):
    (here / "file").write_text("mine")
    (here / "full").mkdir()
    (here / "full" / "mine.txt").write_text("mine")
    before = set(here.rglob("*"))
    code, out, err = compare(*FEW, *arguments)
    assert (code, out) == (2, ""), err
    assert err.startswith("graphfm: ")
    assert err.count("\n") == 1, err
    assert re.search(reason, err), err
    assert set(here.rglob("*")) == before


def test_other_settings_in_the_same_folder_are_one_line(fake):
    compare(*FEW)
    code, out, err = compare(*FEW, "--lr", "0.5")
    assert (code, out) == (2, "")
    lr = METHODS["full"].trains_with["lr"]
    assert err == (
        f"graphfm: {OUT} holds results with training lr {lr}, but this command has 0.5; "
        "choose another --out, or give the same settings\n"
    )
