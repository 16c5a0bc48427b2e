"""What an analyst does with a released column: frequencies, weights, regressions, checks."""
