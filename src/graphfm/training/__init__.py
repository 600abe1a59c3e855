"""Training: the trainer, its loop over epochs and steps, settings, inference and CUDA graphs.

Imported by: `checkpointing` and every later room.
May import: every earlier room, methods and before.
"""
