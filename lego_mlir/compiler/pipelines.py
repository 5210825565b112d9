"""Pass pipelines: text that ships with the package, one file a stage, and may be replaced.

A pipeline is what mlir-opt's `--pass-pipeline` takes, over several lines, with `//` comments and
with `${name}` where the compiler fills something in. In one that a user gives, only the passes of
`allowed_passes` may stand: its file may be a stranger's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from string import Template

from lego_mlir import data
from lego_mlir.compiler import allowed_passes
from lego_mlir.diagnostics import LegoError, Location


def pipeline(stage: str, overrides: Mapping[str, str], **values: object) -> str:
    """Return the pass pipeline of a stage on one line, with its values filled in.

    Args:
        stage: one of `stages.PIPELINED`.
        overrides: for some stages a pipeline's text, or the path of a file that holds one.
        values: what stands for `${name}`.

    Raises:
        LegoError: the file cannot be read, names a value that there is none of, or has a pass that
            may not run.
    """
    text, file = pipeline_text(stage, overrides)
    without_comments = _COMMENT.sub("", text)
    try:
        filled = Template(without_comments).substitute({k: str(v) for k, v in values.items()})
    except (KeyError, ValueError) as e:
        names = ", ".join(f"${{{name}}}" for name in values) or "none"
        raise LegoError(
            f"the pipeline of stage '{stage}' wants the value {e}, known are: {names}",
            location=Location(file),
        ) from None
    # The space behind a closing brace may part it from the next option: {a={1,2} b=3}.
    tight = re.sub(r"\s*([,()])\s*|\s*(\{)\s*|\s*(\})", r"\1\2\3", filled)
    line = re.sub(r"\s+", " ", tight).strip()
    if stage in overrides:
        _check_passes(line, stage, text, file)
    return line


_COMMENT = re.compile(r"//[^\n]*")


def _check_passes(line: str, stage: str, text: str, file: str) -> None:
    """Refuse passes that may not run.

    Args:
        line: the pipeline, filled in.
        stage: that it is for.
        text: the pipeline as it was given, to show where the pass is.
        file: that the text is from.

    Raises:
        LegoError: at the first such pass.
    """
    for name, options in allowed_passes.passes_in(line):
        refusal = allowed_passes.refusal(name, options, stage)
        if refusal is not None:
            message, hint = refusal
            blank = _COMMENT.sub(lambda comment: " " * len(comment[0]), text)
            before = blank[: max(blank.find(name), 0)]
            location = Location(file, before.count("\n") + 1, len(before) - before.rfind("\n"))
            raise LegoError(message, location=location, source=text, hint=hint)


def pipeline_text(stage: str, overrides: Mapping[str, str]) -> tuple[str, str]:
    """Return the text of a stage's pipeline as it is written, and the name of its file.

    Arguments and errors are those of `pipeline`.
    """
    override = overrides.get(stage)
    if override is not None and "(" in override:
        return override, "<pass pipeline>"
    path = Path(override) if override is not None else data.pipelines() / f"{stage}.pipeline"
    try:
        return path.read_text(), str(path)
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is no text"
        raise LegoError(
            f"the pass pipeline cannot be read: {reason}",
            location=Location(str(path)),
            hint="give a file, or the pipeline itself: 'builtin.module(canonicalize,cse)'",
        ) from None
