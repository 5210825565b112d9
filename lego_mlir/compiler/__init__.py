"""The compiler's driver: targets, stages, pipelines, PTX and cubin."""
