"""The Triton kernels themselves. Only `graphfm.kernels` imports them, and only where Triton works.

Each module is imported inside the function that launches its kernels, because Triton may be absent.
"""
