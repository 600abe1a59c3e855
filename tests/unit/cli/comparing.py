"""graphfm compare in this process, with settings that take seconds."""

from tests.unit.cli.commands import graphfm

SMALL = ("--dataset", "synthetic:small:0.02", "--device", "cpu", "--hidden", "8")
FEW = (*SMALL, "--methods", "full,graphsage", "--seeds", "2")
OUT = "runs/compare-synthetic-small-0.02-sage"


def compare(*arguments) -> tuple[int, str, str]:
    ended = graphfm("compare", *arguments)
    return ended.code, ended.out, ended.err
