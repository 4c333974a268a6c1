"""Comparisons: figures and flips for hand-made verdicts, the meaning of names, and which sides are
paired.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from statistics import mean
from typing import Any

import pytest

import sql
from tasks.compare.differences import ComparisonResult, decision, rows_of, subject
from tasks.rules.errors import PipelineError, UsageError
from tests.kit import REVISION, Fill, Rows, admitted, at, criterion, reading, response, row, verdict
from tests.tasks.compare import comparisons
from tests.tasks.compare.comparisons import (
    ALL_MET,
    MIXED,
    RUBRICS,
    apart,
    ask,
    changes,
    judged,
    tasks_of,
)
from warehouse import Reader

WORSE_IN_RISK = comparisons.WORSE_IN_RISK
without_scores = pytest.mark.usefixtures("without_scores")


def test_models_differ_by_their_verdicts_and_a_planted_regression_stands_in_its_category(
    published: Fill,
) -> None:
    reader = published(
        tasks_of(RUBRICS), judged(ALL_MET, "a"), judged(WORSE_IN_RISK, "b"), judged(MIXED, "c")
    )
    result = ask(reader, "a", "b", "c")
    of_b, of_c = result.differences
    flips, _ = apart(reader, result)
    lost = [Fraction(-6, 20), Fraction(-2, 10), Fraction(-7, 15), Fraction(-10, 9)]
    assert result.kind == "model"
    assert of_c.split == "finance"
    assert of_c.paired.n_tasks == 4
    assert len(of_c.wanted_tasks) == 4
    assert of_c.tasks["first_score"].mean() == pytest.approx(1.0)
    assert (
        pytest.approx(1 + float(mean(changes(ALL_MET, MIXED)))) == of_c.tasks["second_score"].mean()
    )
    assert pytest.approx(float(mean(changes(ALL_MET, MIXED)))) == of_c.paired.difference
    # Four tasks are too few for an interval or a test.
    assert of_c.paired.ci_low is None
    assert of_c.paired.p_value is None
    assert of_c.p_adjusted is None
    assert [*RUBRICS] == [*of_c.tasks["task_id"]]
    assert [(c["category"], c["n_gained"], c["n_lost"]) for c in flips["categories"]] == [
        ("Risk", 0, 4),
        ("Accuracy", 0, 0),
        ("Clarity", 0, 0),
    ]
    assert pytest.approx(float(mean(lost))) == flips["categories"][0]["contribution"]
    assert pytest.approx(of_b.paired.difference) == flips["explained"]
    assert [f["criterion_id"] for f in flips["flips"]] == ["t4-c1", "t3-c1", "t1-c1", "t2-c1"]
    lost_by_task = [(t["task_id"], t["n_gained"], t["n_lost"]) for t in flips["tasks"]]
    assert [(t, 0, 1) for t in ("t4", "t3", "t1", "t2")] == lost_by_task
    for rows, column in ((flips["flips"], "effect"), (flips["tasks"], "difference")):
        assert pytest.approx(sorted(map(float, lost))) == [each[column] for each in rows]
    assert tuple(
        flips[name] for name in ("n_criteria", "n_compared", "n_undecided", "n_in_one")
    ) == (11, 11, 0, 0)


@pytest.mark.parametrize("is_reworded", [False, True])
def test_an_undecided_criterion_is_no_flip_and_its_task_counts_for_neither(
    published: Fill, is_reworded: bool
) -> None:
    of_b = judged(WORSE_IN_RISK if is_reworded else {**WORSE_IN_RISK, "t3": [0, None, 1]}, "b")
    if is_reworded:  # a verdict on another wording does not count
        of_b["verdicts"][7]["criterion_hash"] = "of another wording"
    reader = published(tasks_of(RUBRICS), judged(ALL_MET, "a"), of_b)
    result = ask(reader, "a", "b")
    [difference] = result.differences
    [flips] = apart(reader, result)
    complete = ("t1", "t2", "t4")
    of_complete = changes(
        {t: ALL_MET[t] for t in complete}, {t: WORSE_IN_RISK[t] for t in complete}
    )
    assert difference.paired.n_tasks == 3
    assert len(difference.wanted_tasks) == 4
    assert pytest.approx(float(mean(of_complete))) == difference.paired.difference
    # t3 has an undecided criterion and two decided ones.
    assert tuple(
        flips[name] for name in ("n_criteria", "n_compared", "n_undecided", "n_left_out")
    ) == (11, 8, 1, 2)
    assert {*complete} == {flip["task_id"] for flip in flips["flips"]}
    assert pytest.approx(difference.paired.difference) == flips["explained"]


def test_a_flip_is_of_the_mean_over_the_complete_trials(published: Fill) -> None:
    again = {"t1": [1, 1, 0, 0], "t2": [0, None]}
    first = {task: ALL_MET[task] for task in again}
    reader = published(
        tasks_of({t: RUBRICS[t] for t in again}),
        judged(first, "a"),
        judged(first, "b"),
        judged(again, "b", trial=2),
    )
    result = ask(reader, "a", "b")
    [flips] = apart(reader, result)
    [flip] = flips["flips"]
    assert flip["criterion_id"] == "t1-c2"
    assert flip["first_value"] == 1.0
    assert flip["second_value"] == 0.5
    assert flip["effect"] == pytest.approx(-0.5 * 4 / 20)
    # The second task counts with its complete trial, in which nothing differs.
    assert result.differences[0].paired.difference == pytest.approx(-0.5 * 4 / 20 / 2)
    assert pytest.approx(result.differences[0].paired.difference) == flips["explained"]
    assert flips["n_undecided"] == 0
    assert flips["n_left_out"] == 0
    assert flip["first_explanations"] == ["why in a: 1.0"]
    assert flip["second_explanations"] == ["why in b: 1.0", "why in b: 0"]
    assert flip["first_decision"] == "met"
    assert flip["second_decision"] == "met in 1 of 2 trials"


def test_a_criterion_that_stands_twice_in_a_rubric_is_compared_twice_and_no_more(
    published: Fill,
) -> None:
    twice = [
        criterion("t1", 0, 4),
        criterion("t1", 0, 6) | {"criterion_id": "again", "position": 1},
    ]
    rows = tasks_of({"t1": [(4, "Risk"), (6, "Risk")]})
    reader = published(
        rows | {"criteria": twice},
        judged({"t1": [1, 1]}, "a", criteria={"t1": twice}),
        judged({"t1": [1, 0]}, "b", criteria={"t1": twice}),
    )
    [flips] = apart(reader, ask(reader, "a", "b"))
    assert [(f["criterion_id"], f["effect"]) for f in flips["flips"]] == [
        ("again", pytest.approx(-0.6))
    ]
    assert flips["n_compared"] == 2


@pytest.fixture(scope="module")
def sittings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Models that were sampled and judged at several times; each test names the ones that it
    needs.
    """
    old, new = (
        {"model_config_hash": name, "created_at": at(when)}
        for name, when in (("old", 1), ("new", 2))
    )
    later = {"vintage": "later"}
    tonight = {"vintage": "tonight"}
    with reading(
        tmp_path_factory.mktemp("sittings"),
        tasks_of(RUBRICS),
        # Two vintages of two models, one of a third.
        judged(ALL_MET, "a"),
        judged(MIXED, "a", of_response=later),
        judged(MIXED, "b"),
        judged(WORSE_IN_RISK, "b", of_response=later),
        judged(MIXED, "only-base"),
        # A model with two configurations, and a model that only another judge has judged.
        judged(ALL_MET, "twice", of_response=new),
        judged(MIXED, "twice", of_response=old),
        judged(MIXED, "elsewhere", judge="other"),
        judged(ALL_MET, "only-later", of_response=later),
        # Four runs on two vintages of one model.
        judged({t: ALL_MET[t] for t in ("t1", "t2", "t3")}, "night", run_id="run-one"),
        judged({"t4": ALL_MET["t4"]}, "night", run_id="run-early"),
        judged(
            {t: MIXED[t] for t in ("t2", "t3", "t4")},
            "night",
            of_response=tonight,
            run_id="run-two",
        ),
        judged({"t1": MIXED["t1"]}, "night", of_response=tonight, run_id="run-late"),
        # Vintages whose names are prefixes of run ids.
        judged(ALL_MET, "dated", of_response={"vintage": "20260101"}, run_id="20260101T1-x"),
        judged(MIXED, "dated", of_response={"vintage": "20260102"}, run_id="20260102T1-x"),
    ) as reader:
        yield reader


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (
            ("a", "a-judgee"),
            {},
            r"a-judgee: no model, .* has this name \(did you mean `a-judge`\?\)",
        ),
        (
            ("a", "a-judge"),
            {},
            r"a and a-judge: must all be of one kind; given: a \(model\), a-judge \(judge\)",
        ),
        (
            ("a", "b"),
            {"kind": "judge"},
            "a: no judge with verdicts has this name; known: a-judge, other",
        ),
        (("a", "b"), {"models": ("a",)}, "--model: models are compared"),
        (
            ("a", "b"),
            {"judges": ("nobody",)},
            "nothing to compare: a has no verdict under these options",
        ),
        (
            ("a", "b"),
            {"revision": "another"},
            "nothing to compare: a has no verdict under these options",
        ),
    ],
)
def test_unclear_names_fail(
    sittings: Reader, names: tuple[str, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PipelineError, match=message):
        ask(sittings, *names, **options)


def vintages_in(result: ComparisonResult) -> list[tuple[str, str]]:
    """The vintages of both sides of each difference."""
    pairs = [difference.pair.sides for difference in result.differences]
    return [(first.model_run.vintage, second.model_run.vintage) for first, second in pairs]


def test_models_are_compared_under_one_judging_only(sittings: Reader) -> None:
    with pytest.raises(
        PipelineError, match="nothing to compare: only-base and elsewhere share no combination"
    ) as error:
        ask(sittings, "only-base", "elsewhere")

    assert error.value.exit_code == 1
    assert str(error.value).endswith(
        "; only-base has verdicts in base by a-judge; elsewhere has verdicts in base by other"
    )


def test_models_are_compared_in_the_current_vintage_of_each(sittings: Reader) -> None:
    assert vintages_in(ask(sittings, "a", "b")) == [("later", "later")]
    assert vintages_in(ask(sittings, "a", "only-base")) == [("later", "base")]
    assert vintages_in(ask(sittings, "only-base", "only-later")) == [("base", "later")]


def test_every_vintage_is_compared_by_itself_if_all_are_requested(sittings: Reader) -> None:
    result = ask(sittings, "a", "b", vintage="all")

    assert vintages_in(result) == [("base", "base"), ("later", "later")]
    with pytest.raises(
        PipelineError,
        match="only-base and only-later share no combination of dataset revision, vintage",
    ):
        ask(sittings, "only-base", "only-later", vintage="all")


def test_a_pinned_model_stands_in_every_vintage_with_its_base(sittings: Reader) -> None:
    [later] = ask(sittings, "a", "b", vintage="later").differences

    assert later.paired.difference == pytest.approx(float(mean(changes(MIXED, WORSE_IN_RISK))))
    assert vintages_in(ask(sittings, "a", "only-base", vintage="later")) == [("later", "base")]


def test_a_model_that_lacks_a_vintage_is_pinned_by_its_configuration_or_if_it_has_no_other_than_base(
    sittings: Reader,
) -> None:
    """The model `a` was sampled in other vintages, so it is not pinned unless the configuration
    says so.
    """
    nightly = {
        "name": "openai/only-base",
        "label": "only-base",
        "resample": "nightly",
    }
    pinned = {"name": "openai/a", "label": "a"}
    missing = "nothing to compare: {} has no verdict in vintage tonight under these options"

    with pytest.raises(PipelineError, match=missing.format("a")) as error:
        ask(sittings, "night", "a", vintage="tonight")
    with pytest.raises(PipelineError, match=missing.format("only-base")):
        ask(sittings, "night", "only-base", vintage="tonight", configured=[nightly])

    assert "; a has verdicts in base, later by a-judge" in str(error.value)
    assert vintages_in(ask(sittings, "night", "a", vintage="tonight", configured=[pinned])) == [
        ("tonight", "base")
    ]


def test_a_model_can_be_named_with_a_vintage(sittings: Reader) -> None:
    [difference] = ask(sittings, "a@base", "a@later").differences

    assert [side.name for side in difference.pair.sides] == ["a@base", "a@later"]
    assert difference.paired.difference == pytest.approx(float(mean(changes(ALL_MET, MIXED))))
    assert vintages_in(ask(sittings, "a@base", "b")) == [("base", "later")]


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (
            ("a@base", "a@tonight"),
            {},
            "a@tonight: a has no verdict in vintage tonight; it has base, later",
        ),
        (("a", "a@later"), {}, "nothing to compare: a and a@later are the same responses"),
        (
            ("a@base", "b"),
            {"vintage": "later"},
            "--vintage later: a@base names its vintage; leave the option out",
        ),
    ],
)
def test_impossible_names_with_a_vintage_fail(
    sittings: Reader, names: tuple[str, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PipelineError, match=message):
        ask(sittings, *names, **options)


def test_a_label_in_full_is_meant_before_a_label_with_a_vintage(published: Fill) -> None:
    reader = published(
        tasks_of(RUBRICS),
        judged(ALL_MET, "a"),
        judged(ALL_MET, "a", of_response={"vintage": "later"}),
        judged(MIXED, "a@later"),
    )

    [difference] = ask(reader, "a", "a@later", vintage="base").differences

    assert difference.pair.sides[1].model_run.model == "a@later"
    assert difference.pair.sides[1].model_run.vintage == "base"


def test_judges_are_compared_in_the_current_vintage_of_a_model_or_else_the_latest_that_both_judged(
    published: Fill,
) -> None:
    later = {"vintage": "later", "created_at": at(5)}
    latest = {"vintage": "latest", "created_at": at(9)}
    by_other = [
        judged(decisions, model, of_response=of_response, judge="other")["verdicts"]
        for decisions, model, of_response in (
            (MIXED, "a", later),
            (MIXED, "b", {}),
            (MIXED, "b", later),
        )
    ]
    reader = published(
        tasks_of(RUBRICS),
        judged(ALL_MET, "a"),
        judged(ALL_MET, "a", of_response=later),
        judged(ALL_MET, "a", of_response=latest),
        judged(ALL_MET, "b"),
        judged(ALL_MET, "b", of_response=later),
        *({"verdicts": verdicts} for verdicts in by_other),
    )

    result = ask(reader, "a-judge", "other")

    assert [
        (each.pair.sides[0].model_run.model, *vintages)
        for each, vintages in zip(result.differences, vintages_in(result), strict=True)
    ] == [("a", "later", "later"), ("b", "later", "later")]


def test_the_subject_of_a_comparison_names_models_vintages_judges_and_splits(
    sittings: Reader,
) -> None:
    subjects = [
        subject(rows_of(ask(sittings, *names)))
        for names in (("a", "b"), ("a", "b", "only-base"), ("a@base", "a@later"), ("base", "later"))
    ]

    assert subjects == [
        "Comparing a with b, in vintage later, judged by a-judge, on finance.",
        (
            "Comparing a (vintage later) with b (vintage later), only-base (vintage base), judged"
            " by a-judge, on finance."
        ),
        "Comparing a@base with a@later, judged by a-judge, on finance.",
        "Comparing base with later, responses of a, b, judged by a-judge, on finance.",
    ]


def test_a_split_on_which_only_one_model_has_verdicts_is_named(published: Fill) -> None:
    legal = {f"law-{number}": [(10, "Accuracy")] for number in range(3)}
    everywhere = {**RUBRICS, **legal}
    met = {
        task: [1.0 if weight > 0 else 0.0 for weight, _ in rubric]
        for task, rubric in everywhere.items()
    }
    tasks = tasks_of(everywhere)
    for member in tasks["split_members"]:
        member["split"] = "legal" if member["task_id"] in legal else "finance"
    reader = published(tasks, judged(met, "a", rubrics=everywhere), judged(MIXED, "b"))

    result = ask(reader, "a", "b", splits=["finance", "legal"])

    assert [difference.split for difference in result.differences] == ["finance"]
    assert result.not_compared == ("legal: no task is complete for both a and b.",)
    assert ask(reader, "a", "b").not_compared == ()


def test_models_without_a_split_in_common_are_refused_with_that_reason(published: Fill) -> None:
    tasks = tasks_of(RUBRICS)
    for member in tasks["split_members"]:
        member["split"] = "legal" if member["task_id"] == "t4" else "finance"
    reader = published(
        tasks, judged({"t1": ALL_MET["t1"]}, "a"), judged({"t4": ALL_MET["t4"]}, "b")
    )

    with pytest.raises(
        PipelineError,
        match="nothing to compare: finance: no task is complete for both a and b; a has",
    ):
        ask(reader, "a", "b", splits=["finance", "legal"])


def test_a_comparison_on_hard_tasks_says_that_none_are_selected(sittings: Reader) -> None:
    with pytest.raises(
        PipelineError,
        match="nothing to compare: no hard subset is selected yet; run `prbench select-",
    ):
        ask(sittings, "a", "b", is_hard=True)


def test_of_a_model_that_was_configured_again_the_latest_responses_count(sittings: Reader) -> None:
    [difference] = ask(sittings, "a", "twice", vintage="base").differences
    assert difference.pair.sides[1].model_run.model_config_hash == "new"
    assert difference.paired.difference == 0
    assert any("twice has 2 configurations" in note for note in difference.pair.notes)


def more_verdicts(decisions: comparisons.Decisions, **of_verdict: Any) -> Rows:
    """Further verdicts on existing responses."""
    return {"verdicts": judged(decisions, "a", **of_verdict)["verdicts"]}


def test_judges_are_compared_on_the_same_responses_with_one_template_where_they_share_one(
    published: Fill,
) -> None:
    reader = published(
        tasks_of(RUBRICS),
        judged(ALL_MET, "a", judge="one", template_hash="shared"),
        more_verdicts(MIXED, judge="other", template_hash="shared"),
        more_verdicts(
            ALL_MET,
            judge="other",
            template_hash="own",
            created_at=at(9),
        ),
        more_verdicts(WORSE_IN_RISK, judge="reader", template_hash="imported"),
    )
    result = ask(reader, "one", "other", "reader")
    shared, human = result.differences
    assert result.kind == "judge"
    assert pytest.approx(float(mean(changes(ALL_MET, MIXED)))) == shared.paired.difference
    assert shared.pair.sides[1].model_run.template_hash == "shared"
    assert pytest.approx(float(mean(changes(ALL_MET, WORSE_IN_RISK)))) == human.paired.difference
    # All verdicts are on the same responses; each side has those of its judge.
    of_shared, of_human = apart(reader, result)
    assert pytest.approx(shared.paired.difference) == of_shared["explained"]
    assert {flip["criterion_id"] for flip in of_human["flips"]} == {
        "t1-c1",
        "t2-c1",
        "t3-c1",
        "t4-c1",
    }


def test_templates_are_compared_by_the_beginning_of_their_hash(published: Fill) -> None:
    of_other = (
        more_verdicts(MIXED, **judge, template_hash="0123450000")
        for judge in ({}, {"judge": "other"})
    )
    reader = published(
        tasks_of(RUBRICS), judged(ALL_MET, "a", template_hash="0123456789"), *of_other
    )
    result = ask(reader, "0123456789", "0123450")
    [difference] = result.differences
    assert result.kind == "template"
    assert difference.pair.sides[1].name == "0123450000"
    assert pytest.approx(float(mean(changes(ALL_MET, MIXED)))) == difference.paired.difference
    for name, message in (
        ("012345", "012345: 2 templates match"),
        ("01234", "01234: no model, .* has this name"),
    ):
        with pytest.raises(UsageError, match=message):
            ask(reader, name, "0123456789")


def test_a_name_that_could_be_two_things_asks_for_of(published: Fill) -> None:
    reader = published(
        tasks_of(RUBRICS),
        judged(ALL_MET, "base"),
        judged(MIXED, "later"),
        judged(MIXED, "base", of_response={"vintage": "later"}),
    )
    with pytest.raises(
        UsageError, match="base and later: could be model or vintage; say which with --of"
    ):
        ask(reader, "base", "later")
    assert (
        ask(reader, "base", "later", kind="vintage").differences[0].pair.sides[0].model_run.model
        == "base"
    )


def test_a_name_in_full_is_meant_before_one_that_only_begins_so(sittings: Reader) -> None:
    assert ask(sittings, "20260101", "20260102").kind == "vintage"
    assert ask(sittings, "20260101T", "20260102").kind == "run"


def test_revisions_are_compared_by_content_on_the_tasks_of_both(published: Fill) -> None:
    old = "aaaaaa-old"
    new = "bbbbbb-new"
    rubrics = {"t1": RUBRICS["t1"], "t2": RUBRICS["t2"]}
    # In the new revision t2 is gone and t5 is new; in t1 the ids and the order differ, a weight is
    # higher, and the criterion at 3 has other content.
    items = [
        criterion("t1", index, weight, "Risk")
        for index, weight in ((2, 14), (1, 6), (0, 10), (7, -5))
    ]
    edited = [
        each | {"criterion_id": f"new-{index}", "position": index}
        for index, each in enumerate(items)
    ]
    of_new = tasks_of({"t1": RUBRICS["t1"], "t5": [(1, "Risk")]}, revision=new)
    unchanged = [each for each in of_new["criteria"] if each["task_id"] == "t5"]
    of_new["criteria"] = [*(each | {"dataset_revision": new} for each in edited), *unchanged]
    before = judged({"t1": [1, 1, 0, 0], "t2": [1, 1]}, "a", of_response={"dataset_revision": old})
    now = judged(
        {"t1": [1, 1, 0, 0]}, "a", criteria={"t1": edited}, of_response={"dataset_revision": new}
    )
    reader = published(tasks_of(rubrics, revision=old), of_new, before, now)
    result = ask(reader, "aaaaaa", "bbbbbb")
    [difference] = result.differences
    [flips] = apart(reader, result)
    assert result.kind == "revision"
    assert old == difference.pair.sides[0].name
    assert difference.paired.n_tasks == 1
    # Before (10 + 6) of 20, now (14 + 6) of 30.
    assert pytest.approx(float(Fraction(20, 30) - Fraction(16, 20))) == difference.paired.difference
    # Old point 0 (weight 10) is lost, old point 2 (now 14) is gained.
    flipped = {(f["criterion_id"], f["first_value"], f["second_value"]) for f in flips["flips"]}
    assert flipped == {("new-2", 1, 0), ("new-0", 0, 1)}
    assert [f["effect"] for f in flips["flips"]] == pytest.approx([-10 / 30, 14 / 30])
    assert flips["n_compared"] == 3
    assert flips["n_in_one"] == 2
    assert flips["explained"] != pytest.approx(difference.paired.difference)


def test_runs_are_compared_on_the_tasks_of_which_both_made_a_verdict(sittings: Reader) -> None:
    result = ask(sittings, "run-one", "run-two")
    [difference] = result.differences
    [flips] = apart(sittings, result)
    both = ("t2", "t3")
    of_both = changes({t: ALL_MET[t] for t in both}, {t: MIXED[t] for t in both})
    assert result.kind == "run"
    assert [*difference.tasks["task_id"]] == ["t2", "t3"]
    assert len(difference.wanted_tasks) == 2
    assert pytest.approx(float(mean(of_both))) == difference.paired.difference
    assert {flip["task_id"] for flip in flips["flips"]} == {"t3"}
    with pytest.raises(
        PipelineError, match="nothing to compare: finance: no task is complete for both"
    ):
        ask(sittings, "run-early", "run-late")
    with pytest.raises(PipelineError, match=r"nothing to compare: .* worked on the same responses"):
        ask(sittings, "run-one", "run-early")


def test_a_warehouse_without_verdicts_has_nothing_to_compare(published: Fill) -> None:
    with pytest.raises(PipelineError, match="nothing to compare: no verdict on prbench yet"):
        ask(published(tasks_of(RUBRICS)), "a", "b")


@pytest.mark.parametrize(
    ("by_trial", "message"),
    [
        ([1.0], "met"),
        ([0.0, 0.0], "not met"),
        ([0.5, 0.5], "partly met"),
        ([1.0, 0.0], "met in 1 of 2 trials"),
        ([0.0, 1.0, 1.0], "met in 2 of 3 trials"),
        ([0.5, 0.0], "partly met in 1 of 2 trials"),
        ([1.0, 0.5, 0.0], "met in 1 and partly met in 1 of 3 trials"),
    ],
)
def test_decisions_of_trials_that_disagree_are_counted(
    by_trial: Sequence[float], message: str
) -> None:
    assert message == decision(by_trial)


CRITERIA = [criterion("t", i, 5.0) for i in range(10)]
NIGHTS = ["base", "2026-11-20", "2026-11-21", "2026-11-22"]


def response_in(vintage: str, model: str = "fresh", **values: Any) -> dict[str, Any]:
    named = {"response_id": f"{model} {vintage}"}
    return (
        response("t", model, vintage=vintage, created_at=at(NIGHTS.index(vintage)), **values)
        | named
    )


def judged_by_one(result: dict[str, Any], n: int = 10, **values: Any) -> list[dict[str, Any]]:
    difference = [verdict(result, each, 1.0, **values) for each in CRITERIA[:n]]
    template = values.get("template_hash", "")
    return [each | {"verdict_id": f"{each['verdict_id']} {template}"} for each in difference]


def last_nights(
    published: Fill,
    responses: list[dict[str, Any]],
    verdicts: list[dict[str, Any]] | None = None,
    **more: Any,
) -> list[Any]:
    if verdicts is None:
        verdicts = [each for result in responses for each in judged_by_one(result)]
    rows = {
        **admitted(["t"], n_criteria=10),
        "criteria": CRITERIA,
        "responses": responses,
        "verdicts": verdicts,
        "runs": [row("runs", run_id=night, night=night) for night in NIGHTS[1:]],
        **more,
    }
    options = {
        "benchmark": "prbench",
        "dataset_revision": REVISION,
        "night": "2026-11-22",
    }
    pairs = published(rows).rows(sql.read("queries/nightly/pairs"), options)
    return [(each["template_hash"], each["last_vintage"]) for each in pairs]


HALF_JUDGED = {
    "steady": ((10, 10, 10, 10), "2026-11-21"),
    "half": ((0, 10, 5, 10), "2026-11-21"),
    "thin": ((0, 10, 4, 10), "2026-11-20"),  # a night with few verdicts is not compared with
}


def test_a_night_is_compared_with_a_vintage_at_the_bar_rather_than_with_a_later_one_below(
    published: Fill,
) -> None:
    responses = [response_in(night) for night in NIGHTS]
    n_judged = dict(zip(NIGHTS, (10, 10, 8, 10), strict=True))
    verdicts = [
        each for result in responses for each in judged_by_one(result, n_judged[result["vintage"]])
    ]

    assert last_nights(published, responses, verdicts) == [("a-template", "2026-11-20")]


@without_scores
def test_a_night_is_compared_with_the_last_half_judged_one_or_the_pinned_sampling(
    published: Fill,
) -> None:
    # The pinned sampling stands in for the first night, and vintages of one's own do not.
    responses = [
        response_in("base", "pinned"),
        response_in("2026-11-21", "pinned") | {"vintage": "an-experiment"},
    ]
    responses.append(response_in("2026-11-22", "pinned"))
    verdicts = [each for result in responses for each in judged_by_one(result)]
    for model, (n_judged, _) in HALF_JUDGED.items():
        of_model = [response_in(night, model) for night in NIGHTS]
        responses += of_model
        verdicts += [
            each
            for result, n in zip(of_model, n_judged, strict=True)
            for each in judged_by_one(result, n)
        ]
    last = {"pinned": "base"} | {model: night for model, (_, night) in HALF_JUDGED.items()}
    assert [("a-template", last[model]) for model in sorted(last)] == last_nights(
        published, responses, verdicts
    )


@without_scores
def test_each_judging_has_its_own_last_night_and_the_first_of_one_has_none(published: Fill) -> None:
    responses = [response_in(night) for night in NIGHTS]
    verdicts = [
        *judged_by_one(responses[1]),
        *judged_by_one(responses[3]),
        *judged_by_one(responses[2], template_hash="newer"),
        *judged_by_one(responses[3], template_hash="newer"),
        *judged_by_one(responses[3], template_hash="newest"),
    ]
    last = [("a-template", "2026-11-20"), ("newer", "2026-11-21"), ("newest", None)]
    assert last == last_nights(published, responses, verdicts)


@without_scores
def test_a_night_in_which_the_judge_had_drifted_is_no_measure(published: Fill) -> None:
    responses = [response_in(night) for night in NIGHTS]
    same = {
        "set_id": "set",
        "response_id": "r",
        "criterion_id": "c",
        "criterion_hash": "h",
    }
    night = "2026-11-21"
    drift = {
        "control_set": {
            **same,
            "verdict_id": "v",
            "task_id": "t",
            "model": "m",
            "first_value": 1.0,
        },
        "control_verdicts": {
            **same,
            "judge_vintage": night,
            "status": "unmet",
            "value": 0.0,
        },
        "control_limits": {
            "set_id": "set",
            "night": night,
            "n_decided": 1,
            "n_agreeing": 0,
            "cause": "bar",
        },
    }
    rows = {name: [row(name, **values)] for name, values in drift.items()}
    assert last_nights(published, responses, **rows) == [("a-template", "2026-11-20")]
