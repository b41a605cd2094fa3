"""Where Vibe's sessions come from: folders that are one session, and sessions that begin with another's records.

Headless `--continue` and `--resume` of 2.x copy a folder's lines, message ids and all, and go on in the copy: the
longest such folder is the session, the others are its aliases. A rewind copies a part of them. Compaction up to 2.18
begins a new folder that names its parent. Forks and imports of the unified store name their source.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from ..notices import Notices, Unreadable
from ..record import Record
from ..times import rfc3339
from ._vibe_legacy import described, metadata
from ._vibe_text import content_of, fields, string, text_of, unmarked
from ._vibe_transcript import Transcript, runtime_state

Chain = list[list[Any]]


class Found(NamedTuple):
    """A legacy folder or document: its files, their stamps, what its head says, and the folder it is a sub-agent of."""

    path: str
    files: tuple[str, ...]
    stamps: tuple[int, ...]
    head: Record
    parent: str | None

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def session_id(self) -> str:
        return self.head["session_id"] or self.name.removesuffix(".json")

    @property
    def age(self) -> tuple[str, str]:
        """Sorts folders in the order in which they were begun."""
        return rfc3339(self.head["start_time"]) or "9999", self.name


class Family(NamedTuple):
    """The folders that are one session, the longest first; `copied` is the offset up to which it is another's."""

    members: list[Found]
    copied: int = 0
    origin: Record | None = None

    @property
    def canonical(self) -> Found:
        return self.members[0]

    @property
    def session_id(self) -> str:
        return self.canonical.session_id

    def key(self, owners: dict[str, str]) -> Record:
        """The `Reference.key`; `owners` tells each folder's session."""
        parent = self.canonical.parent
        starts = [start for each in self.members if (start := rfc3339(each.head["start_time"]))]
        return {
            "layout": "folder",
            "parent": owners[parent] if parent else None,
            "forked_from": self.origin or self._begun(),
            "copied": self.copied,
            "start_time": min(starts, default=None),
        }

    def _begun(self) -> Record | None:
        """The session whose compaction began this one, or which was rewound to nothing."""
        parents = (each.head["parent"] for each in self.members if each.parent is None)
        parent = next(filter(None, parents), None)
        kind = "compaction" if self.canonical.head["framed"] else "rewind"
        return {"session_id": parent, "kind": kind} if parent else None


def families(group: list[Found], chain_of: Callable[[Found], Chain]) -> list[Family]:
    """The sessions in a group of folders with the same first message.

    `chain_of` gives the identities of a folder's messages. Of two sessions that diverge the older owns the beginning.
    """
    if len(group) == 1:
        return [Family(group)]
    chains = {each.path: chain_of(each) for each in group}
    found: list[Family] = []
    for each in sorted(group, key=lambda each: (-len(chains[each.path]), each.age)):
        mine = chains[each.path]
        for family in found:
            if _common(mine, chains[family.canonical.path]) == len(mine):
                family.members.append(each)
                break
        else:
            found.append(Family([each]))
    found.sort(key=lambda family: family.canonical.age)
    return [_diverged(family, found[:place], chains) for place, family in enumerate(found)]


def _diverged(family: Family, older: list[Family], chains: dict[str, Chain]) -> Family:
    """`family` with what it copied from the older session that it has most in common with."""
    mine = chains[family.canonical.path]
    shared = [_common(mine, chains[each.canonical.path]) for each in older]
    if not any(shared):
        return family
    count = max(shared)
    source = older[shared.index(count)]
    # A copy of a whole folder, as it once was, is a continuation; a copy of a part is a rewind.
    resumed = any(len(chains[each.path]) == count for each in source.members[1:])
    origin = {"session_id": source.session_id, "kind": "resume" if resumed else "rewind"}
    return family._replace(copied=mine[count - 1][1], origin=origin)


def _common(one: Chain, other: Chain) -> int:
    """How many messages two folders begin with in common."""
    count = 0
    for (left, _), (right, _) in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


# -- the unified store -----------------------------------------------------------------------------------------


def unified_head(folder: str, sources: str) -> Record:
    """What the documents of a unified session say of it; `sources` is the folder where others of its kind lie.

    `legacy` is the id of the 2.x session that it was imported from, `bytes` the size of the snapshot's transcript.
    """
    meta, damage = metadata(os.path.join(folder, "meta.json"))
    known = described(meta)
    known |= {"damage": damage, "parent": None, "legacy": None, "forked_from": None, "bytes": 0}
    try:
        transcript = Transcript(folder, Notices(), whole=True)
    except (Unreadable, FileNotFoundError):
        return known
    if (generation := transcript.generation) is None:
        return known
    session, runtime = fields(generation.snapshot.get("session")), runtime_state(generation)
    told, identity = fields(runtime.get("session_metadata")), fields(runtime.get("identity"))
    known["title"] = known["title"] or string(session.get("title"))
    known["directory"] = known["directory"] or string(told.get("cwd"))
    known["model"] = known["model"] or string(told.get("active_model"))
    known["archived"] = known["archived"] or fields(session.get("status")).get("type") == "archived"
    known["start_time"] = known["start_time"] or session.get("createdAt")
    known["end_time"] = known["end_time"] or session.get("updatedAt")
    known["bytes"] = transcript.size()
    if identity.get("kind") == "subagent" or os.path.basename(folder).startswith("child-"):
        known["parent"] = string(identity.get("parent_session_id")) or string(session.get("parentSessionId"))
    source = fields(fields(runtime.get("import_provenance")).get("source"))
    if origin := string(source.get("session_id")):
        forked = source.get("backend") == "unified"
        kind = _fork_kind(transcript, os.path.join(sources, os.path.basename(origin))) if forked else "import"
        known["forked_from"] = {"session_id": origin, "kind": kind}
        known["legacy"] = origin if source.get("backend") == "legacy" else None
    return known


def _fork_kind(copy: Transcript, source: str) -> str:
    """`rewind` if the source went on, before it was copied, after what the copy ends with; else `fork`.

    The store has one word for both; what tells them apart is the last prompt and the last answer.
    """
    copied, made = _last_texts(copy, imported=True)
    try:
        there, _ = _last_texts(Transcript(source, Notices(), whole=True), until=made)
    except (Unreadable, FileNotFoundError):
        return "fork"
    return "fork" if copied == there else "rewind"


def _last_texts(
    transcript: Transcript, *, imported: bool = False, until: float | None = None
) -> tuple[dict[str, str], float | None]:
    """The last prompt and the last answer, and when the latest of the entries looked at was made."""
    last: dict[str, str] = {}
    made = None
    for placed in transcript.entries():
        entry = placed.entry
        at, text = entry.get("createdAt"), content_of(entry.get("content"))
        if imported and not text_of(entry.get("id")).startswith("imported-"):
            break
        if not isinstance(at, (int, float)) or entry.get("type") != "message" or not text.strip():
            continue
        if until is not None and at > until:
            break
        if fields(entry.get("outcome")).get("type") == "discarded" or unmarked(text):
            continue
        made = at
        last[text_of(entry.get("role"))] = text
    return last, made
