"""What privacy costs on the Adult table: the optimum against merging, over budgets."""

from __future__ import annotations

import adult

import mechdesign as md

joint = adult.load()
print("epsilon  optimal  subset merging  complete merging")
for epsilon in (0.5, 1.0, 2.0, 4.0):
    notion = md.ALIP.from_epsilon(epsilon, lam=0.5)
    # The share of the information on the occupation that each release keeps.
    optimal = md.design(joint, notion, mechanism="optimal").nmi
    subsets = md.design(joint, notion, mechanism="subset-merging").nmi
    complete = md.design(joint, notion, mechanism="complete-merging").nmi
    assert optimal >= subsets >= complete
    print(f"{epsilon:7.2f}  {optimal:7.4f}  {subsets:14.4f}  {complete:16.4f}")
