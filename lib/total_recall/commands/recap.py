"""tr-recap: where the work stands since the last compaction."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..command import SERVICE, Run, executable, hours_option, options
from ..extraction import chosen, guarded
from ..llm import Provider, ServiceFailed, complete, provider
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
    run: Run,
    session: str | None,
    harnesses: tuple[str, ...],
    hours: float,
    provider: str | None,
    no_llm: bool,
) -> int | None:
    """Print an orientation over the work since the last compaction: facts first, then what a model made of them."""
    who = None if no_llm else _provider(run, provider)
    store, found = next(iter(chosen(run, (session,) if session else (), harnesses)))
    row = store.row(found, run.now)
    recent = [near for near, _, _ in rows(Sessions([store], run.notices), Window(hours=hours), run.now)]
    sources = Sources(
        row=row,
        recent=recent,
        hours=hours,
        messages=lambda: guarded(run, store, found, lambda s, r: s.since_compaction(r)),
        entries=lambda: guarded(run, store, found, lambda s, r: s.entries(r, {})),
        folders=plan_folders(row["directory"], run.environ),
        notices=run.notices,
    )
    missing: list[str] = []
    ask = None if who is None else lambda questions: _answers(run, who, questions, missing)
    write_text(recap(sources, run.now, ask, who and who.model))
    for text in missing:
        run.notices.say(text)
    return SERVICE if missing else None


def _provider(run: Run, asked: str | None) -> Provider:
    try:
        return provider(asked, run.environ)
    except Refused as error:
        raise failure(error) from error


def _answers(run: Run, who: Provider, questions: Sequence[tuple[str, str]], missing: list[str]) -> list[str]:
    """The answers to the questions, asked side by side; one that fails leaves the other."""
    from concurrent.futures import ThreadPoolExecutor

    def answer(question: tuple[str, str]) -> str | ServiceFailed:
        try:
            return complete(who, [question], say=run.notices.say)[0]
        except ServiceFailed as error:
            return error

    texts = []
    with ThreadPoolExecutor(len(questions)) as threads:
        for part, found in zip(_PARTS, threads.map(answer, questions), strict=False):
            if isinstance(found, ServiceFailed):
                missing.append(f"{part} is missing: {found}")
                found = f"Missing: the model did not answer ({found})."
            texts.append(found)
    return texts
