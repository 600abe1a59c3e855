"""Compiling kernels ahead: what is compiled on meta tensors, how often, and who waits for it."""

import sys
import threading
from contextlib import contextmanager
from itertools import product
from types import SimpleNamespace

import pytest
import torch

from graphfm.kernels import backend, precompile, triton_kernels
from graphfm.kernels.linear import linear

ROWS = torch.zeros(6, 4)[:, :3]
ROW_COUNT = {"gradient": 3, "turned_product": 3, "mask_and_turn": 4, "sum_parts": 2}  # arguments


class Kernel:
    """Writes down how it is called; `hold` keeps it from being compiled."""

    def __init__(self, name=""):
        self.name, self.compiled, self.loaded, self.launched = name, [], 0, []
        self.hold = threading.Event()
        self.hold.set()

    def warmup(self, *args, grid, **options):
        assert self.hold.wait(10)
        self.compiled.append((args, grid, options))
        return self

    @property
    def run(self):
        self.loaded += 1

    def __getitem__(self, grid):
        return lambda *args, **options: self.launched.append((args, grid, options))

    def variants(self, calls):
        """What Triton compiles apart: types, whether a number is a multiple of 16, constants."""
        free = ROW_COUNT[self.name]
        return {
            (
                tuple(
                    arg.dtype if isinstance(arg, torch.Tensor) else arg % 16 == 0
                    for place, arg in enumerate(args)
                    if place != free
                ),
                tuple(sorted(options.items())),
            )
            for args, _, options in calls
        }


@pytest.fixture
def entered(monkeypatch):
    """Devices that kernels were compiled for; there is no GPU to ask."""
    devices = []

    @contextmanager
    def device(found):
        devices.append(found)
        yield

    monkeypatch.setattr(torch.cuda, "device", device)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(backend, "INTERPRETED", False)
    monkeypatch.setattr(precompile, "_expected", set())
    return devices


def launching(kernel):
    return lambda *args: precompile.launch(kernel, (1,), *args)


def test_meta_tensors_compile_and_load_what_the_job_would_launch(entered):
    kernel = Kernel()

    def job(rows, bias):
        assert bias is None
        precompile.launch(kernel, (2, 1), rows, rows.stride(0), RELU=True)

    precompile.expect(job, ROWS.half(), None, key="any")
    precompile.settle()
    (((rows, stride), grid, options),) = kernel.compiled
    assert (rows.shape, rows.dtype, rows.device.type) == (ROWS.shape, torch.float16, "meta")
    assert (stride, grid, options) == (ROWS.half().stride(0), (2, 1), {"RELU": True})
    assert (kernel.loaded, kernel.launched, entered) == (1, [], [ROWS.device])


def test_strides_are_those_of_the_argument(entered):
    kernel = Kernel()
    precompile.expect(launching(kernel), ROWS, key="any")
    precompile.settle()
    assert kernel.compiled[0][0][0].stride() == (4, 1)


def test_a_job_is_compiled_once_for_each_key(entered):
    one, other = Kernel(), Kernel()
    jobs = [launching(one), launching(other)]
    for key in (1, 2, 1, 1):
        for job in jobs:
            precompile.expect(job, ROWS, key=key)
    precompile.settle()
    assert (len(one.compiled), len(other.compiled)) == (2, 2)
    assert not precompile._pending


def test_a_launch_waits_for_what_is_being_compiled(entered):
    kernel = Kernel()
    kernel.hold.clear()
    precompile.expect(launching(kernel), ROWS, key="any")
    threading.Timer(0.05, kernel.hold.set).start()
    precompile.launch(kernel, (3,), ROWS)
    assert len(kernel.compiled) == 1
    assert kernel.launched == [((ROWS,), (3,), {})]


def test_what_is_expected_while_another_thread_waits_is_not_forgotten(entered, monkeypatch):
    slow, late, waits, wait = Kernel(), Kernel(), threading.Event(), precompile.wait
    slow.hold.clear()
    late.hold.clear()
    monkeypatch.setattr(precompile, "wait", lambda futures: (waits.set(), wait(futures)))
    precompile.expect(launching(slow), ROWS, key="any")
    other = threading.Thread(target=precompile.settle)
    other.start()
    assert waits.wait(10)
    precompile.expect(launching(late), ROWS, key="any")
    slow.hold.set()
    other.join(10)
    threading.Timer(0.05, late.hold.set).start()
    precompile.settle()
    assert len(late.compiled) == 1


def test_nothing_is_compiled_while_a_graph_is_captured(entered, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    kernel = Kernel()
    precompile.expect(launching(kernel), ROWS, key="any")
    precompile.settle()
    assert not kernel.compiled


def test_a_failure_on_meta_tensors_leaves_the_error_to_the_launch(entered):
    def job(rows):
        raise ValueError("no such kernel")

    kernel = Kernel()
    precompile.expect(job, ROWS, key="any")
    precompile.launch(kernel, (1,), ROWS)
    assert len(kernel.launched) == 1
    precompile.expect(launching(kernel), ROWS, key="another")
    precompile.settle()
    assert len(kernel.compiled) == 1


def test_an_ablation_compiles_nothing_ahead(entered):
    kernel = Kernel()
    with backend.without("precompile"):
        precompile.expect(launching(kernel), ROWS, key="any")
    precompile.settle()
    assert not kernel.compiled


@pytest.fixture
def kernels(entered, monkeypatch):
    """In place of Triton's, which compute nothing."""
    found = {name: Kernel(name) for name in ROW_COUNT}
    steps = SimpleNamespace(sum_parts=found["sum_parts"])
    products = SimpleNamespace(product=Kernel("product"), **found)
    for name, module in {"step": steps, "matmul": products}.items():
        monkeypatch.setitem(sys.modules, f"graphfm.kernels.triton_kernels.{name}", module)
        monkeypatch.setattr(triton_kernels, name, module, raising=False)
    monkeypatch.setattr(backend, "available", lambda device: True)
    return found


@pytest.mark.parametrize(("width", "num_out"), [(1204, 256), (512, 256), (256, 41), (70, 67)])
def test_gradients_find_their_kernels_compiled(kernels, width, num_out):
    """The same layer with few rows, then more: other tiles, other sums; views of rows, too."""
    sizes = (num_out, width), (num_out,)
    weight, bias = (torch.zeros(*size, requires_grad=True) for size in sizes)
    for num_rows, relu in product((40, 65, 300, 3000, 20_000), (True, False)):
        table = torch.zeros(num_rows, width + 4, requires_grad=True)
        for x in (table[:, 4:].clone(), table[:, :width]):
            linear(x, weight, bias, relu=relu).sum().backward()
            for kernel in kernels.values():
                assert kernel.variants(kernel.launched) <= kernel.variants(kernel.compiled)
    assert kernels["gradient"].launched


def test_inference_expects_no_gradients(kernels):
    weight, bias = torch.zeros(80, 72, requires_grad=True), torch.zeros(80, requires_grad=True)
    with torch.no_grad():
        linear(torch.zeros(300, 72), weight, bias, relu=True)
    assert not precompile._expected


def test_rows_change_and_the_number_of_expected_kernels_does_not(kernels):
    weight, bias = torch.zeros(80, 72, requires_grad=True), torch.zeros(80, requires_grad=True)
    for num_rows in range(65, 200):
        linear(torch.zeros(num_rows, 72, requires_grad=True), weight, bias, relu=True)
    assert len(precompile._expected) == 3
