"""Which records of a transcript a rewind left behind, from the tree that `parentUuid` makes of them.

The live branch is the way up from the last turn. What hangs beside it is a branch of its own only where somebody
typed: parallel tool calls, late `/exit` lines and bookkeeping hang there too. Parents may be written after their
children, and a broken chain goes on at the record before it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..record import Record

# 2: somebody typed, 1: the model or a tool spoke, 0: the harness's own
_TURN = {"human": 2, "delegated": 2, "model": 1, "tool": 1}


class _Node:
    __slots__ = ("ids", "parents", "turn")

    def __init__(self, record: Record, messages: list[Record]) -> None:
        self.parents = record.get("parentUuid"), record.get("logicalParentUuid")
        self.ids = [message["id"] for message in messages]
        self.turn = max((_TURN.get(message["authorship"], 0) for message in messages), default=0)


def abandoned(records: Iterable[tuple[Record, list[Record]]]) -> list[list[int]]:
    """The ranges `[first id, last id]` of abandoned messages; `records` are the stored records with their messages."""
    nodes: list[_Node] = []
    places: dict[str, int] = {}
    head = None
    for record, messages in records:
        uuid = record.get("uuid")
        if isinstance(uuid, str):
            # What an old file holds of sub-agents has a tree of its own, and so has a record that stands twice.
            if uuid in places or any(message.get("agent") == "sidechain" for message in messages):
                continue
            places[uuid] = len(nodes)
            nodes.append(_Node(record, messages))
            head = None if nodes[-1].turn else head
        elif record.get("type") == "last-prompt" and record.get("explicit") is True:
            head = record.get("leafUuid")
    above = [_above(node, places, place) for place, node in enumerate(nodes)]
    leaf = places.get(head, -1) if isinstance(head, str) else -1
    if leaf < 0:
        leaf = max((place for place, node in enumerate(nodes) if node.turn), default=-1)
    live = _way_up(above, leaf)
    tops = _tops(above, live)
    typed = {tops[place] for place, node in enumerate(nodes) if node.turn == 2 and place not in live}
    return _ranges(number for place, top in enumerate(tops) if top in typed for number in nodes[place].ids)


def _above(node: _Node, places: dict[str, int], place: int) -> int:
    """The place of a record's parent, or of the record before it in the file."""
    for parent in node.parents:
        if isinstance(parent, str) and parent in places:
            return places[parent]
    return place - 1


def _way_up(above: list[int], place: int) -> set[int]:
    """The places from one up to the first record; a circle of parents is left at its earliest record."""
    way = set()
    lowest = place
    while place >= 0:
        way.add(place)
        lowest = min(lowest, place)
        place = above[place] if above[place] not in way else lowest - 1
    return way


def _tops(above: list[int], live: set[int]) -> list[int]:
    """For each place the uppermost one on its way to the live branch; -1 for places on the live branch itself."""
    unknown = -2
    tops = [-1 if place in live else unknown for place in range(len(above))]
    for place in range(len(above)):
        if tops[place] != unknown:
            continue
        way = {place}
        top = place
        while (up := above[top]) >= 0 and up not in live and up not in way:
            if tops[up] != unknown:
                top = tops[up]
                break
            way.add(up)
            top = up
        for passed in way:
            tops[passed] = top
    return tops


def _ranges(numbers: Iterable[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
