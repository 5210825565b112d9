"""The compiler's driver: stages, schedules and pass pipelines, launches and artifacts as data.

`backend/` makes PTX into machine code. The passes that pipelines and schedules run are in `mlir`.
"""
