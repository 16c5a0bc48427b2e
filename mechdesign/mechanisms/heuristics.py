"""The heuristics by name, with the options that belong to each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mechdesign.errors import InputError
from mechdesign.joint import Joint
from mechdesign.mechanisms import subset_response as response
from mechdesign.mechanisms.optimal import Search
from mechdesign.mechanisms.randomisation import MERGE, Randomisation
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.risks import Risk
from mechdesign.mechanisms.watchdog import COMPLETE, SUBSETS, complete_merging, subset_merging
from mechdesign.notions import Notion


@dataclass(frozen=True, kw_only=True)
class HeuristicOptions:
    """What the heuristics leave open; the arguments of `mechanisms.design` of the same names."""

    risk: Risk = "auto"
    randomisation: Randomisation = MERGE
    as_published: bool = False

    def check_for(self, mechanism: str) -> None:
        """Raise InputError if an option is set that the mechanism does not have."""
        if self.risk != "auto" and mechanism not in (response.NAME, SUBSETS):
            raise InputError(f"risk belongs to {SUBSETS} and {response.NAME}, not to {mechanism}")
        if self.randomisation != MERGE and mechanism != COMPLETE:
            raise InputError(f"a randomisation R(y) belongs to {COMPLETE}, not to {mechanism}")
        if self.as_published and mechanism not in HEURISTICS:
            raise InputError(
                f"as_published belongs to the heuristics, not to {mechanism}, which needs no repair"
            )


def _response(joint: Joint, notion: Notion, options: HeuristicOptions, search: Search) -> Design:
    return response.subset_response(
        joint, notion, search, risk=options.risk, as_published=options.as_published
    )


def _subsets(joint: Joint, notion: Notion, options: HeuristicOptions, _: Search) -> Design:
    return subset_merging(joint, notion, risk=options.risk, as_published=options.as_published)


def _complete(joint: Joint, notion: Notion, options: HeuristicOptions, _: Search) -> Design:
    return complete_merging(
        joint, notion, randomisation=options.randomisation, as_published=options.as_published
    )


HEURISTICS: Mapping[str, Callable[[Joint, Notion, HeuristicOptions, Search], Design]] = MappingProxyType(
    {response.NAME: _response, SUBSETS: _subsets, COMPLETE: _complete}
)
