"""All recorded programs, by name."""

from __future__ import annotations

from recorded import asynchronous, matrices, scalar, warps
from recorded.program import Program

PROGRAMS: dict[str, Program] = {
    p.name: p
    for p in (*scalar.PROGRAMS, *warps.PROGRAMS, *matrices.PROGRAMS, *asynchronous.PROGRAMS)
}
