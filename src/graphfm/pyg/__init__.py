"""Networks of PyG, unmodified, under our samplers and estimators.

A network of `MessagePassing` modules is run by its own `forward`. Hooks that exist only while it
runs hand each convolution the edges of its layer, complete the rows of a halo, and let the
estimator act on the aggregate. This package alone imports `torch_geometric`.
Imported by: `runs`, `api`.
May import: `methods` and what is above it.
"""
