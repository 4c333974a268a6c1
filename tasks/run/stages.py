"""The stages that make calls: whom each calls, what it makes, and what a plan and other people read about it."""

from typing import NamedTuple

MODEL, JUDGE, RUBRIC_WRITER, ANNOTATOR, REVIEWER = "model", "judge", "rubric_writer", "annotator", "reviewer"
CAPABILITY_MODEL, CAPABILITY_EMBEDDING = "capability_model", "capability_embedding"
CALLED_KINDS = (MODEL, JUDGE, RUBRIC_WRITER)
"""The roles that a whole run calls."""
ANALYST_KINDS = (ANNOTATOR, REVIEWER, CAPABILITY_MODEL, CAPABILITY_EMBEDDING)
"""Those that an analysis calls; the settings have them under that name."""


class Stage(NamedTuple):
    """A stage that makes calls.

    `calls` are the roles that it calls, `makes` are its results in words, `tables` are those of its rows, each with the
    column that says who was called (None: any). A plan assumes lengths for calls that were never measured only where
    `is_assumed` says so.
    """

    calls: tuple[str, ...]
    makes: str
    tables: dict[str, str | None]
    is_assumed: bool = True


STAGES = {
    "sample": Stage((MODEL,), "responses", {"responses": "model"}),
    "judge": Stage((JUDGE,), "verdicts", {"verdicts": "judge"}),
    "drift": Stage((JUDGE,), "control sets", {"control_verdicts": "judge"}, is_assumed=False),
    "derive": Stage((RUBRIC_WRITER,), "rewritten criteria", {"criterion_variants": "model"}, is_assumed=False),
    "annotate": Stage((ANNOTATOR,), "labels of tasks", {"task_annotations": None}),
    "review": Stage((REVIEWER,), "reviews of criteria", {"model_reviews": None}),
    "capabilities": Stage(
        (CAPABILITY_MODEL, CAPABILITY_EMBEDDING),
        "capabilities",
        {"criterion_capabilities": None, "phrase_embeddings": None, "capability_names": None},
    ),
}
"""By name. The calls of all but `sample` and `judge` are under the judges' limits, together with the judges' own."""
