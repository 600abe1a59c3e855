"""The settings that operations read, and what is said when Triton does not work."""

import logging
import sys
from types import SimpleNamespace

import pytest
import torch

from graphfm import InputError
from graphfm.kernels import backend
from graphfm.kernels.side_stream import SideStream
from graphfm.kernels.side_stream import current as current_stream

CUDA = torch.device("cuda")


@pytest.fixture
def probe(monkeypatch):
    """A machine with a GPU, where the probe's kernel does as it is told to."""
    found = SimpleNamespace(error=None, launches=0)

    class Fill:
        def __getitem__(self, grid):
            return self

        def __call__(self, out, value, BLOCK):  # noqa: N803
            found.launches += 1
            if found.error is not None:
                raise found.error

    name = "graphfm.kernels.triton_kernels.probe"
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(fill=Fill()))
    monkeypatch.setattr(backend, "INTERPRETED", False)
    monkeypatch.setattr(backend, "find_spec", lambda name: object())
    monkeypatch.setattr(torch, "zeros", lambda *size, **options: None)
    backend._triton_works.cache_clear()
    yield found
    backend._triton_works.cache_clear()


def test_settings_are_set_at_once_and_restored():
    before = backend.current(), torch.get_float32_matmul_precision()
    with backend.execution(deterministic=False, kernels="plain", precision="tf32"):
        now = backend.current()
        assert (now.deterministic, now.triton, now.precision) == (False, False, "tf32")
        assert torch.get_float32_matmul_precision() == "high"
        with backend.execution():
            assert backend.current() == before[0]
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
    assert (backend.current(), torch.get_float32_matmul_precision()) == before


def test_an_error_restores_the_settings():
    before = backend.current(), torch.get_float32_matmul_precision()
    with pytest.raises(ValueError, match="stop"), backend.execution(precision="tf32"):
        raise ValueError("stop")
    assert (backend.current(), torch.get_float32_matmul_precision()) == before


def test_what_is_switched_off_stays_off_under_other_settings(probe):
    assert backend.available(CUDA)
    with backend.without("triton"), backend.execution(kernels="auto"):
        assert not backend.available(CUDA)
        with backend.without("three_pass"):
            assert backend.current().without == {"triton", "three_pass"}
    assert backend.available(CUDA)


def test_an_unknown_part_is_refused():
    with pytest.raises(InputError, match="unknown part 'tritn'; choose from triton, side_stream"):
        backend.without("tritn").__enter__()


def test_a_side_stream_can_be_switched_off():
    stream = SideStream.__new__(SideStream)
    with stream.active():
        assert current_stream() is stream
    with backend.without("side_stream"), stream.active():
        assert current_stream() is None


def test_a_cpu_has_no_kernels_and_is_not_probed(probe, caplog):
    assert not backend.available(torch.device("cpu"))
    assert (probe.launches, caplog.text) == (0, "")


def test_triton_is_tried_once(probe):
    assert all(backend.available(CUDA) for _ in range(3))
    assert probe.launches == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("Failed to find C compiler. Please specify"), "found no C compiler; install"),
        (OSError("libcuda.so not found\nand more"), "libcuda.so not found"),
        (ValueError(), "ValueError"),
    ],
)
def test_one_warning_says_why_kernels_are_off(probe, caplog, error, reason):
    probe.error = error
    with caplog.at_level(logging.INFO, logger="graphfm"):
        assert not any(backend.available(CUDA) for _ in range(3))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("Triton kernels are off")
    assert reason in record.getMessage()
    assert "\n" not in record.getMessage()


def test_a_missing_triton_is_told_apart(probe, monkeypatch, caplog):
    monkeypatch.setattr(backend, "find_spec", lambda name: None)
    assert not backend.available(CUDA)
    assert "Triton is not installed" in caplog.text
