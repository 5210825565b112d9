"""The stages of a compilation, by name; `driver` says what each holds."""

from __future__ import annotations

STAGES = ("placed", "index", "scheduled", "nvvm", "llvm", "ptx", "cubin", "bundle")
"""All stages, in order."""

BINARY = ("cubin", "bundle")
"""The stages that are no text."""

PIPELINED = ("index", "scheduled", "nvvm", "ptx")
"""The stages that have a pass pipeline."""

DEFAULT_TARGET = "sm_90a"
