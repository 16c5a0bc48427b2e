"""What a channel really does, recomputed from its integers in exact arithmetic."""
