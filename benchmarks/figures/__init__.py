"""Pictures of docs/concepts, drawn from records: ``python -m benchmarks.figures.NAME``."""
