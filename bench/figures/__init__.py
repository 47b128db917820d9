"""The paper's experiments again."""
