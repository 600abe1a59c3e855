"""graphfm bench in this process, with cases that take seconds."""

from graphfm.experiments.bench.case import Case
from tests.unit.cli.commands import graphfm

SMALL = "synthetic:small:0.02"
SAGE = {"layers": 2, "hidden": 8, "dropout": 0.0, "batch_size": 32, "fanout": (2, 2)}
GCN = {"backbone": "gcn", "layers": 3, "hidden": 8, "parts": 4, "parts_per_batch": 2}
TINY = (
    Case(name="sage", dataset=SMALL, options={"method": "graphsage", **SAGE}, rival="loader",
         device="cpu"),
    Case(name="ib", dataset=SMALL, options={"method": "graphfm-ib", **SAGE}, device="cpu"),
    Case(name="delta", dataset=SMALL, options={"method": "graphfm-delta", **GCN}, rival="full",
         device="cpu"),
)  # fmt: skip
DELTA_OF_MAXIMA = {"method": "graphfm-delta", "backbone": "pna", "parts": 4}
BROKEN = Case(name="broken", dataset=SMALL, options=DELTA_OF_MAXIMA, device="cpu")


def bench(*arguments) -> tuple[int, str, str]:
    ended = graphfm("bench", *arguments)
    return ended.code, ended.out, ended.err
