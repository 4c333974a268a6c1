"""The charts of the judges' page."""

import altair as alt

from tasks.report.content.figures import Plot, Row, Rows
from tasks.report.drawing import charts
from tasks.report.drawing.dots import dots
from tasks.report.drawing.plots import by_value, names_in_order, range_of
from tasks.report.drawing.time_charts import control

_MOST_PAIRS = 3
"""Pairs of graders that are drawn where all of them would be too many to distinguish."""
_BREAKDOWNS = {
    "category": "By category of the criterion",
    "severity": "By severity of the criterion",
    "model": "By model",
    "length": "By letters and digits of the response",
    "field": "By field of the task",
}
_DECISIONS = ("met", "partly met", "not met")


def agreeing(rows: Rows) -> list[Plot]:
    """Kappa of each grader with each other as a map, and both measures with their intervals."""
    pairs = [{**row, "pair": _pair(row)} for row in rows if not row["is_member"]]
    graders = sorted({row[side] for row in pairs for side in ("grader_a", "grader_b")})
    plots = []
    if len(graders) > 2:
        plots.append(Plot("Kappa of each pair", _each_with_each(pairs, graders)))
    domain = (min(0.0, *range_of(pairs, "kappa_ci_low", "macro_f1_ci_low", "kappa")), 1.0)
    for measure, title in (("kappa", "Kappa"), ("macro_f1", "Macro-F1")):
        chart = charts.intervals(
            pairs, name="pair", value=measure, low=f"{measure}_ci_low", high=f"{measure}_ci_high", title=title,
            domain=domain,
        )  # fmt: skip
        plots.append(Plot(title, chart))
    return plots if pairs else []


def _each_with_each(pairs: Rows, graders: list[str]) -> alt.TopLevelMixin:
    cells = [
        {"one": row[one], "other": row[other], "kappa": row["kappa"], "n": row["n"]}
        for row in pairs
        for one, other in (("grader_a", "grader_b"), ("grader_b", "grader_a"))
    ]
    return charts.heat(
        cells, x="other", y="one", value="kappa", title="Kappa", domain=(0, 1), across=graders, down=graders,
        tips={"n": "criteria"},
    )  # fmt: skip


def by_variant(rows: Rows) -> list[Plot]:
    """For each variant of the rubric and each grading the macro-F1 of every judge with every person."""
    drawn = [
        {**row, "pair": _pair({"grader_a": row["grader"], "grader_b": row["reference"]}),
         "variant": f"{row['rubric']}, {row['grading']}"}
        for row in rows
    ]  # fmt: skip
    low, _ = range_of(drawn, "macro_f1_ci_low", "macro_f1")
    chart = dots(
        drawn, label="variant", value="macro_f1", low="macro_f1_ci_low", high="macro_f1_ci_high", title="Macro-F1",
        name="pair", labels=names_in_order(drawn, "variant"), names=names_in_order(drawn, "pair"), hollow="is_few",
        domain=(min(low, 0.0), 1.0),
    )  # fmt: skip
    return [Plot("", chart)]


def confusing(rows: Rows) -> list[Plot]:
    """Which decisions meet, as a map for each of the first pairs."""
    pairs = names_in_order([{"pair": (row["grader_a"], row["grader_b"])} for row in rows], "pair")[:_MOST_PAIRS]
    return [
        Plot(
            f"{one} (rows) and {other} (columns)",
            charts.heat(
                [row for row in rows if (row["grader_a"], row["grader_b"]) == (one, other)],
                x="says_b", y="says_a", value="share", title="share", domain=(0, 1), across=_DECISIONS,
                down=_DECISIONS, tips={"n": "criteria"}, percent=True,
            ),
        )
        for one, other in pairs
    ]  # fmt: skip


def by_label(rows: Rows) -> list[Plot]:
    """Under each label kappa with its interval for each of the first pairs, a chart for each kind of label."""
    drawn = [{**row, "pair": _pair(row)} for row in rows if row["place"] <= _MOST_PAIRS]
    low, _ = range_of(drawn, "kappa_ci_low", "kappa")
    columns = ("pair", "label", "kappa", "kappa_ci_low", "kappa_ci_high", "is_few", "n")
    return [
        Plot(
            title,
            dots(
                [{name: row[name] for name in columns} for row in of_breakdown], label="label", value="kappa",
                low="kappa_ci_low", high="kappa_ci_high", title="Kappa", name="pair",
                labels=sorted({row["label"] for row in of_breakdown}), names=names_in_order(drawn, "pair"),
                hollow="is_few", domain=(min(low, 0.0), 1.0),
            ),
        )
        for breakdown, title in _BREAKDOWNS.items()
        if (of_breakdown := [row for row in drawn if row["breakdown"] == breakdown])
    ]  # fmt: skip


def reliable(rows: Rows) -> list[Plot]:
    """Alpha with its interval for each set of graders."""
    low, _ = range_of(rows, "alpha_ci_low", "alpha")
    return [
        Plot("", charts.intervals(
            rows, name="grader_set", value="alpha", low="alpha_ci_low", high="alpha_ci_high",
            title="Krippendorff's alpha", domain=(min(low, 0.0), 1.0),
        ))
    ]  # fmt: skip


def lenient(rows: Rows) -> list[Plot]:
    """A bar for each grader, to the right where it is more lenient than the others."""
    return [
        Plot("", charts.bars(
            rows, name="grader", value="leniency", title="Says met more often than others, by", percent=True,
            order=names_in_order(rows, "grader"),
        ))
    ]  # fmt: skip


def favouring(rows: Rows) -> list[Plot]:
    """A map of models and graders."""
    known = [row for row in rows if row["favour"] is not None]
    most = max((abs(row["favour"]) for row in known), default=0.0) or 1.0
    chart = charts.heat(
        known, x="grader", y="model", value="favour", title="Favour", diverging=True, domain=(-most, 0, most),
        across=sorted({row["grader"] for row in known}), down=sorted({row["model"] for row in known}),
        marked="is_small", tips={"difference": "difference", "n_tasks": "tasks"},
    )  # fmt: skip
    return [Plot("", chart)] if known else []


def drifting(rows: Rows) -> list[Plot]:
    """A control chart for each judge."""
    return by_value(rows, "grader", control)


def failing(rows: Rows) -> list[Plot]:
    """A bar for each judge that failed, divided by cause."""
    failed = [row for row in rows if row["is_failure"]]
    chart = charts.bars(
        failed, name="grader", value="n", title="Failed verdicts", colour="status", whole=True,
        order=names_in_order(rows, "grader"),
    )  # fmt: skip
    return [Plot("", chart)] if failed else []


def _pair(row: Row) -> str:
    return f"{row['grader_a']} – {row['grader_b']}"
