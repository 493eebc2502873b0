"""What is fast, and how fast: one command for each row of `docs/performance.md`. `python -m benchmarks` runs all."""
