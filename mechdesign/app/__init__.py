"""The local page of `mechdesign app`: choose a file, give every column a role, look, download.

The page computes nothing of its own: it calls the public functions of `mechdesign`. It listens on
127.0.0.1, answers to nobody without the token in its address, and keeps what it is given in memory.
"""
