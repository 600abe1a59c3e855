import pytest
import torch

from graphfm.data.graph.fingerprint import fingerprint


def of(*tensors):
    return fingerprint("text", [("name", tensor) for tensor in tensors])


def test_it_does_not_depend_on_how_much_is_read_at_a_time(monkeypatch):
    numbers = torch.arange(1003, dtype=torch.int32)
    want = of(numbers)
    monkeypatch.setattr("graphfm.data.graph.fingerprint.WORDS", {"cpu": 7})
    assert of(numbers) == want


@pytest.mark.parametrize("place", [0, 500, 1001, 1002])
def test_every_number_counts(place):
    numbers = torch.arange(1003.0).half()
    changed = numbers.clone()
    changed[place] += 1
    assert of(changed) != of(numbers)


def test_so_does_its_place():
    numbers = torch.arange(40_000)
    for shift in (1, 1 << 14):
        assert of(numbers.roll(shift)) != of(numbers)


def test_type_shape_name_and_text_count():
    zeros = torch.zeros(4, 2)
    others = [zeros.int(), zeros.view(2, 4), zeros.view(8)]
    texts = [fingerprint("other", [("name", zeros)]), fingerprint("text", [("other", zeros)])]
    assert len({of(zeros), of(zeros, zeros), of(), *map(of, others), *texts}) == 8


def test_a_part_of_a_tensor_is_as_good_as_a_copy():
    numbers = torch.arange(99, dtype=torch.int16)
    for part in (numbers[1:], numbers[::3], numbers[:0], numbers.view(9, 11).t()):
        assert of(part) == of(part.clone())
