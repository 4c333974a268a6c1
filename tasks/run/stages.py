"""The stages that make calls: the kinds of models that each calls, and the tables of its rows."""

from typing import NamedTuple

MODEL, JUDGE, RUBRIC_WRITER, ANNOTATOR, REVIEWER = "model", "judge", "rubric_writer", "annotator", "reviewer"
CAPABILITY_MODEL, CAPABILITY_EMBEDDING = "capability_model", "capability_embedding"
CALLED_KINDS = (MODEL, JUDGE, RUBRIC_WRITER)
"""The kinds of models that a whole run calls."""
ANALYST_KINDS = (ANNOTATOR, REVIEWER, CAPABILITY_MODEL, CAPABILITY_EMBEDDING)
"""The kinds that analyses call; they are also keys of the settings."""


class Stage(NamedTuple):
    """A stage that makes calls.

    `calls` are the kinds of models that it calls, `makes` are its results in words, `tables` are the tables of its
    rows, each with the column of the called model (None: any). With `is_assumed` a plan assumes the length of calls
    that were never measured.
    """

    calls: tuple[str, ...]
    makes: str
    tables: dict[str, str | None]
    is_assumed: bool = True


STAGES = {
    "sample": Stage((MODEL,), "responses", {"responses": "model"}),
    "judge": Stage((JUDGE,), "verdicts", {"verdicts": "judge"}),
    "drift": Stage((JUDGE,), "control sets", {"control_verdicts": "judge"}, is_assumed=False),
    "neighbours": Stage((JUDGE,), "verdicts in other arrangements", {"neighbour_verdicts": "judge"}),
    "derive": Stage((RUBRIC_WRITER,), "rewritten criteria", {"criterion_variants": "model"}, is_assumed=False),
    "annotate": Stage((ANNOTATOR,), "labels of tasks", {"task_annotations": None}),
    "review": Stage((REVIEWER,), "reviews of criteria", {"model_reviews": None}),
    "capabilities": Stage(
        (CAPABILITY_MODEL, CAPABILITY_EMBEDDING),
        "capabilities",
        {"criterion_capabilities": None, "phrase_embeddings": None, "capability_names": None},
    ),
}
"""By name. The calls of all stages except `sample` share the judges' limits."""
