"""Lower convex envelopes of the entropy, by column generation."""
