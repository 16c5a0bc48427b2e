"""The release channel: integers, labels, and the file that keeps them."""
