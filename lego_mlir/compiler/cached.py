"""Compiles what the cache does not have.

A module's text, with all that is done to it, determines the code. So `compiled` needs no MLIR for
what was compiled before, by this process or another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lego_mlir.cache import entries
from lego_mlir.cache.builds import builds
from lego_mlir.cache.entries import Entry
from lego_mlir.cache.keys import ModuleKey
from lego_mlir.compiler.options import Options
from lego_mlir.compiler.pipelines import pipeline_text
from lego_mlir.compiler.schedule_files import read
from lego_mlir.limits import current
from lego_mlir.mlir.context import Source
from lego_mlir.sources import NO_SOURCES, Sources

if TYPE_CHECKING:
    from lego_mlir.compiler.driver import Compilation

PRODUCTS = ("ptx", "cubin", "bundle")
"""The stages that are kept; the others are made as fast as they would be read."""


def key_of(
    source: Source,
    options: Options,
    product: str,
    *,
    is_assembled: bool = True,
    sources: Sources = NO_SOURCES,
) -> ModuleKey | None:
    """Return what a product of a module depends on; `None` if the cache is off.

    Args:
        source: the module's text, and its name in debug information.
        options: how it is compiled.
        product: one of `PRODUCTS`.
        is_assembled: whether an artifact has machine code.
        sources: the texts that its locations point into, if the source is not the only one.

    Raises:
        LegoError: the file of the schedule or of a pipeline cannot be read.
    """
    # Steps that are kept or checked have to be made.
    if not entries.is_on() or options.keep or options.check_each_step:
        return None
    schedule = options.schedule
    return ModuleKey(
        builds=builds(),
        limits=current(),
        target=options.target.name,
        check=options.check,
        strict=options.strict,
        product=product,
        is_assembled=is_assembled,
        file=source.file,
        text=source.text,
        sources=sources.texts,
        sizes=tuple(options.sizes.items()),
        schedule=None if schedule is None else (schedule, read(schedule).text),
        parameters=tuple(options.parameters.items()),
        pipelines=tuple(
            (stage, pipeline_text(stage, options.pipelines)[0]) for stage in options.pipelines
        ),
        exact_math=options.exact_math,
    )


def compiled(key: ModuleKey, compilation: Callable[[], Compilation]) -> Entry:
    """Return what a key names, from the cache if it is there; else make it, and keep it there.

    Args:
        key: what it depends on.
        compilation: returns the compilation, where it is needed.

    Raises:
        LegoError: the module does not compile.
    """
    found = entries.find(key)
    if found is None:
        found = produce(compilation(), key.product, is_assembled=key.is_assembled)
        entries.keep(key, found)
    return found


def produce(compilation: Compilation, stage: str, *, is_assembled: bool = True) -> Entry:
    """Compile a module up to a stage.

    Args:
        compilation: of the module.
        stage: one of `stages.STAGES`.
        is_assembled: whether a bundle has machine code.

    Raises:
        LegoError: the module does not compile.
    """
    match stage:
        case "cubin":
            return Entry(compilation.cubin.code, compilation.cubin.warnings)
        case "bundle":
            artifact = compilation.artifact(assemble=is_assembled)
            return Entry(artifact, compilation.cubin.warnings if is_assembled else ())
    return Entry(compilation.text(stage).encode())
