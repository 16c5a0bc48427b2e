"""Drawing outputs: keys, random words, samplers and policies for symbols out of the ordinary."""
