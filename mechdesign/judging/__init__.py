"""A released file against its original: attacks on it, and what its readers and models find."""
