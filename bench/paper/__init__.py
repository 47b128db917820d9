"""The paper's experiments, one file a figure, through the same functions that the product uses."""
