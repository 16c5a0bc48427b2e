"""Sets of probability vectors: membership, rows and cuts."""
