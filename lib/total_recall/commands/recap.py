"""tr-recap: where the work stands since the last compaction."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..command import SERVICE, Run, executable, hours_option, options
from ..extraction import chosen, guarded
from ..llm import ServiceFailed, attempted, provider
from ..output import write_text
from ..recap import Sources, plan_folders, recap
from ..selection import Sessions, Window, rows
from ..stores.registry import Refused
from ..summarising import failure, provider_option, session_options

_PARTS = ("Current state", "Goals, tasks, steers")


@executable("tr-recap")
@options(
    session_options,
    hours_option(24),
    provider_option,
    click.option("--no-llm", is_flag=True, help="Ask no model: facts only, and no key needed."),
)
def main(
    run: Run, session: str | None, harnesses: tuple[str, ...], hours: float, asked: str | None, no_llm: bool
) -> int | None:
    """Print an orientation over the work since the last compaction: facts first, then what a model made of them."""
    store, found = next(iter(chosen(run, (session,) if session else (), harnesses)))
    try:
        who = None if no_llm else provider(asked, run.environ)
    except Refused as error:
        raise failure(error) from error
    row = store.row(found, run.now)
    sources = Sources(
        row=row,
        recent=[near for near, _, _ in rows(Sessions([store], run.notices), Window(hours=hours), run.now)],
        hours=hours,
        messages=lambda: guarded(run, store, found, lambda s, r: s.since_compaction(r)),
        entries=lambda: guarded(run, store, found, lambda s, r: s.entries(r, {})),
        folders=plan_folders(row["directory"], run.environ),
        notices=run.notices,
    )

    def ask(questions: Sequence[tuple[str, str]]) -> list[str]:
        assert who is not None
        texts = []
        for part, answer in zip(_PARTS, attempted(who, questions, say=run.notices.say), strict=False):
            if isinstance(answer, ServiceFailed):
                run.notices.failures[part] = f"{part} is missing: {answer}"
                answer = f"Missing: the model did not answer ({answer})."
            texts.append(answer)
        return texts

    write_text(recap(sources, run.now, ask if who else None, who and who.model))
    return SERVICE if any(part in run.notices.failures for part in _PARTS) else None
