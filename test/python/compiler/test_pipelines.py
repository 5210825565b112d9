"""Pipeline files become what MLIR's parser takes."""

from __future__ import annotations

import pytest

from lego_mlir.compiler.pipelines import pipeline
from lego_mlir.diagnostics import LegoError


def test_comments_and_lines_go_and_values_come() -> None:
    text = """
    // what it does
    builtin.module(
      canonicalize {top-down=true},   // why
      gpu.module(
        cse
      )
    )
    """
    assert pipeline("index", {"index": text}) == (
        "builtin.module(canonicalize{top-down=true},gpu.module(cse))"
    )


def test_options_of_stages_do_not_mix() -> None:
    """A list's closing brace is followed by the next option, not joined to it."""
    text = "builtin.module(cse{ x={1, 2} y=${y} z=3 })"
    assert pipeline("nvvm", {"nvvm": text}, y=7) == "builtin.module(cse{x={1,2} y=7 z=3})"


def test_a_value_that_there_is_none_of() -> None:
    with pytest.raises(LegoError, match="wants the value 'chap', known are: "):
        pipeline("nvvm", {"nvvm": "builtin.module(cse{x=${chap}})"}, chip="sm_80")
