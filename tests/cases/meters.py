"""Readings of three households on two days, and a range and budget for them."""

from __future__ import annotations

METERS = """\
house,day,kwh,note
a,1,1.5,"x, y"
b,1,9.75,
c,1,0.1,
a,2,2.5,
b,2,10,"line
break"
c,2,0,
"""

BASIC = ("--column", "kwh", "--epsilon", "2", "--range", "0,10")
