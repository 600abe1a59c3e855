"""Tables of the paper: which trainings, resumed how, printed how."""

import csv

import pytest

from graphfm import InputError
from graphfm.data.datasets import known_size
from graphfm.experiments.outcome import FAILED, FINISHED, Outcome
from graphfm.experiments.reproduce import ReproductionPlan, reproduce
from graphfm.experiments.reproduce.picture import curves_of
from graphfm.experiments.reproduce.report import describe, paper_table
from graphfm.experiments.reproduce.run import failures
from graphfm.experiments.runner import Observer
from graphfm.training.callbacks import Score


def score(test, **changes):
    values = {
        "val": 0.5, "test": test, "best_epoch": 1, "epochs": 2, "seconds_per_epoch": 0.25,
        "seconds_to_best": 1.0, "prepare_seconds": 0.1, "nodes_per_step": 10.0,
        "edges_per_step": 20.0, "peak_bytes": 2**28, "train_bytes": 2**27,
    }  # fmt: skip
    return Score(**values | changes)


class Said(Observer):
    """What a person would read."""

    def __init__(self):
        self.lines, self.ended = [], []

    def on_message(self, line):
        self.lines.append(line)

    def on_end(self, cell, outcome):
        self.ended.append(cell.label)


def table(plan, outcomes):
    """The cells, the header first."""
    found = paper_table(plan, outcomes)
    return [list(found.header), *map(list, found.rows)]


class Runner:
    def __init__(self, fail=()):
        self.ran, self.fail = [], set(fail)

    def __call__(self, cell, fingerprint, scratch):
        self.ran.append((cell.run.dataset, cell.label))
        if cell.label in self.fail:
            return Outcome(status=FAILED, error="it broke")
        layers = cell.run.backbone_settings["layers"] - 1
        stale = tuple({"depth": k, "score": 2.0, "relative": 0.5} for k in range(layers))
        test = 0.9 + 0.01 * cell.run.training.seed
        return Outcome(status=FINISHED, score=score(test, staleness=stale))


def test_a_substitute_runs_every_recipe_on_its_own_shape(tmp_path):
    plan = ReproductionPlan.make("table3", substitute="synthetic", scale=0.01)
    runner = Runner()
    outcomes = reproduce(plan, tmp_path, run_cell=runner)
    assert len(runner.ran) == 24 == len(set(runner.ran))
    assert {dataset for dataset, _ in runner.ran} == {
        "synthetic:reddit:0.01", "synthetic:flickr:0.01",
    }  # fmt: skip
    header, *rows = table(plan, outcomes)
    by_row = {(line[0], line[1]): dict(zip(header, line, strict=True)) for line in rows}
    line = by_row["GraphFM-IB [1,1]", "synthetic:reddit:0.01"]
    assert (line["paper"], line["ours"], line["difference"]) == ("0.9570", "0.9000", "-")
    assert (line["paper, s"], line["epoch, s"], line["paper, MiB"]) == ("3.9", "0.25", "2,300")
    assert (line["memory, MiB"], line["with evaluation, MiB"]) == ("128", "256")
    assert by_row["2-layer full batch", "synthetic:reddit:0.01"]["paper"] == "OOM"
    names = {path.name for path in tmp_path.iterdir()}
    written = {"table.md", "table.csv", "table.html", "table.tex"}
    assert written | {"cells.jsonl", "comparison.json"} == names
    with (tmp_path / "table.csv").open() as stream:
        assert list(csv.reader(stream)) == [header, *rows]
    for name in written - {"table.csv", "table.html"}:
        assert "NOT the paper's graphs" in (tmp_path / name).read_text()
    assert "<td class='left'>GraphFM-IB [1,1]</td>" in (tmp_path / "table.html").read_text()


def test_memory_of_steps_is_left_open_where_no_training_could_measure_it(tmp_path):
    plan = ReproductionPlan.make("table3", substitute="synthetic", datasets=["flickr"], seeds=2)

    def measured_once(cell, fingerprint, scratch):
        known = cell.run.method == "full" and cell.run.training.seed == 1
        return Outcome(status=FINISHED, score=score(0.9, train_bytes=2**26 if known else None))

    header, *rows = table(plan, reproduce(plan, tmp_path, run_cell=measured_once))
    found = {line[0]: line[header.index("memory, MiB")] for line in rows}
    assert (found["2-layer full batch"], found["GraphSAGE [1,1]"]) == ("64", "-")


def test_graphs_that_share_all_settings_are_not_mixed_up(tmp_path):
    """Reddit's cells must not count for Flickr's."""
    first = ReproductionPlan.make("table3", substitute="synthetic", datasets=["reddit"])
    runner = Runner()
    reproduce(first, tmp_path, run_cell=runner)
    both = ReproductionPlan.make("table3", substitute="synthetic")
    reproduce(both, tmp_path, run_cell=runner)
    assert len(runner.ran) == 24 == len(set(runner.ran))


def test_recipes_that_are_one_run_on_a_substitute_run_once(tmp_path):
    plan = ReproductionPlan.make("table3", substitute="debian")
    runner = Runner()
    outcomes = reproduce(plan, tmp_path, run_cell=runner)
    assert len(runner.ran) == 12  # Reddit's rows and Flickr's are the same
    assert all(line[3] == "0.9000" for line in table(plan, outcomes)[1:])


def test_a_killed_table_goes_on_and_failures_are_tried_again(tmp_path):
    plan = ReproductionPlan.make("table4", substitute="debian", datasets=["flickr"], seeds=2)
    broken = "table4-flickr-gas, seed 1"
    runner = Runner(fail=[broken])

    def killed(cell, fingerprint, scratch):
        if len(runner.ran) == 3:
            raise KeyboardInterrupt
        return runner(cell, fingerprint, scratch)

    with pytest.raises(KeyboardInterrupt):
        reproduce(plan, tmp_path, run_cell=killed)
    assert (tmp_path / "table.md").exists()  # of what there is
    outcomes = reproduce(plan, tmp_path, run_cell=runner)
    assert len(runner.ran) == len(set(runner.ran)) == 6
    assert failures(plan.lines, outcomes) == 1
    rows = table(plan, outcomes)[1:]
    assert [line[:5] for line in rows[:2]] == [
        ["GNNAutoScale", "debian", "1", "3.8929", "2.0000"],
        ["GNNAutoScale", "debian", "2", "3.2185", "2.0000"],
    ]
    assert "1 of 2 failed: it broke" in rows[0][-1]
    runner.fail.clear()
    runner.ran.clear()
    outcomes = reproduce(plan, tmp_path, run_cell=runner)
    assert runner.ran == [("debian", broken)]
    assert failures(plan.lines, outcomes) == 0


def test_before_anything_runs_the_largest_training_on_each_graph_is_told(tmp_path):
    plan, said = ReproductionPlan.make("table3", substitute="synthetic"), Said()
    reproduce(plan, tmp_path, run_cell=Runner(), observer=said)
    about, reddit, flickr = said.lines
    assert about == describe(plan)
    assert reddit.startswith(
        "synthetic:reddit:0.02, at most (table3-reddit-graphsage-25-10-10-10, seed 0): memory"
    )
    assert flickr.startswith("synthetic:flickr:0.02, at most (")
    assert len(said.ended) == 24
    again = Said()
    reproduce(plan, tmp_path, run_cell=Runner(), observer=again)
    assert (again.lines, again.ended) == ([describe(plan)], [])


def test_what_cannot_fit_is_not_run_says_what_to_do_and_is_tried_again(tmp_path, monkeypatch):
    plan = ReproductionPlan.make("table3", substitute="synthetic", scale=1, datasets=["reddit"])
    with monkeypatch.context() as context:
        context.setattr("graphfm.runs.memory_plan.available_memory", lambda: 2 * 2**30)
        runner = Runner()
        outcomes = reproduce(plan, tmp_path, run_cell=runner)
    notes = {line[0]: line[-1] for line in table(plan, outcomes)[1:]}
    refused = {row: note for row, note in notes.items() if "would take about" in note}
    assert refused.keys() == {
        "2-layer full batch", "4-layer full batch", "GraphSAGE [25,10,10,10]",
    }  # fmt: skip
    assert "use a method that samples" in refused["4-layer full batch"]
    assert "lower batch_size or hidden" in refused["GraphSAGE [25,10,10,10]"]
    assert (len(runner.ran), failures(plan.lines, outcomes)) == (9, 3)
    runner.ran.clear()
    reproduce(plan, tmp_path, run_cell=runner)
    assert len(runner.ran) == 3


def test_on_the_papers_own_graph_the_difference_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("graphfm.experiments.reproduce.plan.is_here", lambda dataset: True)
    monkeypatch.setattr(
        "graphfm.experiments.reproduce.run.known_size",
        lambda dataset, device: known_size(f"synthetic:{dataset}", device),
    )
    plan = ReproductionPlan.make("table2", datasets=["flickr"], backbones=["gcnii"], seeds=2)
    header, first, *_ = table(plan, reproduce(plan, tmp_path, run_cell=Runner()))
    line = dict(zip(header, first, strict=True))
    assert (line["paper"], line["difference"]) == ("0.5620", "+0.3430")
    assert line["ours"] == "0.9050 ± 0.0071"


def test_fewer_epochs_than_the_papers_are_told(monkeypatch):
    monkeypatch.setattr("graphfm.experiments.reproduce.plan.is_here", lambda dataset: True)
    assert "epochs" not in describe(ReproductionPlan.make("table2"))
    plan = ReproductionPlan.make("table2", epochs=3, seeds=1)
    assert describe(plan) == "table2, 1 seed at most, on cpu; NOT the paper's epochs but 3"


def test_what_is_not_here_is_a_row_that_says_so(tmp_path):
    plan = ReproductionPlan.make("table2", datasets=["flickr"], backbones=["gcnii"], seeds=1)
    runner, said = Runner(), Said()
    outcomes = reproduce(plan, tmp_path, run_cell=runner, observer=said)
    assert runner.ran == []
    assert all("graphfm datasets fetch flickr" in line[-1] for line in table(plan, outcomes)[1:])
    assert said.lines[1:] == [
        "3 of 3 recipes are not run: flickr is not on this machine; get it with: graphfm datasets "
        "fetch flickr"
    ]


def test_figure_2_is_a_picture_that_names_the_substitute_and_the_budget(tmp_path):
    plan = ReproductionPlan.make("figure2", substitute="synthetic", datasets=["reddit"], epochs=2)
    outcomes = reproduce(plan, tmp_path, run_cell=Runner())
    assert {title for title, _ in curves_of(plan, outcomes)} == {
        "synthetic:reddit:0.02 in place of reddit\nat most 2 epochs",
        "synthetic:reddit:0.02 in place of reddit\nat most 2 epochs, graphfm-ib",
    }
    assert (tmp_path / "figure2.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": "table9"}, "unknown table 'table9'; choose one of table2, table3, table4"),
        ({"substitute": "cora"}, "unknown substitute 'cora'; choose one of debian, synthetic"),
        ({"scale": 0.1}, "scale is 0.1, but it is the size of a synthetic substitute"),
        ({"substitute": "synthetic", "scale": 0.0}, "the scale is 0.0; expected a number above"),
        ({"seeds": 0}, "seeds is 0; expected 1 to 1000"),
        ({"datasets": ["cora"]}, "unknown dataset of table3 'cora'; choose one of reddit, flickr"),
        ({"backbones": ["gcn"]}, "unknown backbone of table3 'gcn'; choose one of sage"),
        ({"substitute": "debian", "epochs": 0}, "epochs is 0; expected 1 or more"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        ReproductionPlan.make(**{"table": "table3", **arguments})
