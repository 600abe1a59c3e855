"""What one should know before a training: labels that make its score look better than it is."""

import logging

from graphfm.data.graph import Graph
from graphfm.data.graph.summary import class_shares, label_warning
from graphfm.training.question import Question

log = logging.getLogger("graphfm")


def warn_of_labels(graph: Graph, question: Question) -> None:
    """Warn of labels nearly all of one class, where the best epoch is chosen by micro-F1."""
    if question.metric != "micro-f1":
        return
    if (text := label_warning(graph, class_shares(graph))) is not None:
        log.warning("%s", text)
