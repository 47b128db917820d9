"""What the project costs, measured. `python -m bench` lists the benchmarks."""
