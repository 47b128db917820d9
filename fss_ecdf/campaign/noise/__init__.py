"""The public side of the noise: mechanisms, tables, simulation, planning."""
