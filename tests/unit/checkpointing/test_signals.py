import os
import signal
import threading

import pytest

from graphfm.checkpointing.signals import SIGNALS, StopSignal


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_and_the_second_interrupts(number, capfd):
    before = [signal.getsignal(each) for each in SIGNALS]
    stop_signal = StopSignal()
    with stop_signal:
        assert not stop_signal()
        os.kill(os.getpid(), number)
        assert stop_signal()
        assert stop_signal.number == number
        assert capfd.readouterr().err == (
            "graphfm: stopping at the next step; press Ctrl-C again to stop immediately (the last "
            "checkpoint is kept)\n"
        )
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        assert all(signal.getsignal(each) == signal.SIG_DFL for each in SIGNALS)  # the third ends
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_handlers_are_put_back_after_an_error():
    before = [signal.getsignal(each) for each in SIGNALS]
    with pytest.raises(ValueError, match="ours"), StopSignal():
        raise ValueError("ours")
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_a_thread_that_gets_no_signals_leaves_them_alone():
    found = []

    def work():
        with StopSignal() as stop_signal:
            found.append(stop_signal())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_was_ignored_stays_ignored(number):
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with StopSignal() as stop_signal:
            os.kill(os.getpid(), number)
            assert not stop_signal()
            (other,) = set(SIGNALS) - {number}
            os.kill(os.getpid(), other)
            assert stop_signal.number == other
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), other)
            assert signal.getsignal(number) == signal.SIG_IGN
        assert signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, before)
