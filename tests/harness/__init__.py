"""Two live servers and what stands between them, for tests, benchmarks and the demo."""
