"""Two real servers: throughput, answers, memory."""
