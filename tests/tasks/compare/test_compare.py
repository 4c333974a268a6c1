"""Comparisons: figures and flips for hand-made verdicts, the meaning of names, and which sides are
paired.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tasks.compare.differences import (
    ComparisonResult,
    decision,
    rows_of,
    varying_attributes,
)
from tasks.figures.shown.comparisons import subject
from tasks.rules.errors import PipelineError, UsageError
from tests.kit import Row, Rows, at, criterion, few_published, reading
from tests.tasks.compare.comparisons import (
    ALL_MET,
    MIXED,
    RUBRICS,
    WORSE_IN_RISK,
    Decisions,
    ask,
    judged,
    mean_change,
    tasks_of,
    verdicts_behind,
)
from warehouse import Reader


@pytest.fixture(scope="module", autouse=True)
def _few_published() -> Iterator[None]:
    """Publish only what comparisons read."""
    with few_published("leaderboard", "task_scores"):
        yield


@pytest.fixture(scope="module")
def samplings(tmp_path_factory) -> Iterator[Reader]:
    """Models that were sampled and judged at several times; each test names the ones that it
    needs.
    """
    later = {"vintage": "later"}
    tonight = {"vintage": "tonight"}
    first_night = {"vintage": "20260101"}
    second_night = {"vintage": "20260102"}
    old_configuration = {"model_config_hash": "old", "created_at": at(1)}
    new_configuration = {"model_config_hash": "new", "created_at": at(2)}
    with reading(
        tmp_path_factory.mktemp("samplings"),
        tasks_of(RUBRICS),
        # Two vintages of two models, one of a third.
        judged(ALL_MET, "a"),
        judged(MIXED, "a", of_response=later),
        judged(MIXED, "b"),
        judged(WORSE_IN_RISK, "b", of_response=later),
        judged(MIXED, "only-base"),
        # A model with two configurations, and a model that only another judge has judged.
        judged(ALL_MET, "twice", of_response=new_configuration),
        judged(MIXED, "twice", of_response=old_configuration),
        judged(MIXED, "elsewhere", judge="other"),
        judged(ALL_MET, "only-later", of_response=later),
        # Four runs on two vintages of one model.
        judged(selected(ALL_MET, "t1", "t2", "t3"), "night", run_id="run-one"),
        judged(selected(ALL_MET, "t4"), "night", run_id="run-early"),
        judged(
            selected(MIXED, "t2", "t3", "t4"),
            "night",
            of_response=tonight,
            run_id="run-two",
        ),
        judged(
            selected(MIXED, "t1"), "night", of_response=tonight, run_id="run-late"
        ),
        # Vintages whose names are prefixes of run ids.
        judged(ALL_MET, "dated", of_response=first_night, run_id="20260101T1-x"),
        judged(MIXED, "dated", of_response=second_night, run_id="20260102T1-x"),
    ) as reader:
        yield reader


def selected(decisions: Decisions, *tasks: str) -> Decisions:
    return {task: decisions[task] for task in tasks}


def vintages_in(result: ComparisonResult) -> list[tuple[str, str]]:
    """The vintages of both sides of each difference."""
    pairs = []
    for difference in result.differences:
        run_a, run_b = (side.model_run for side in difference.pair.sides)
        pairs.append((run_a.vintage, run_b.vintage))
    return pairs


@pytest.fixture(scope="module")
def regression(samplings: Reader) -> ComparisonResult:
    """All criteria met, compared with a regression in one category, and with mixed verdicts."""
    return ask(samplings, "a@base", "b@later", "only-base")


@pytest.fixture(scope="module")
def regression_verdicts(samplings: Reader, regression: ComparisonResult) -> Row:
    """The verdicts behind the regression."""
    return verdicts_behind(samplings, regression)[0]


def test_models_differ_by_their_mean_scores_over_tasks(regression):
    _, mixed = regression.differences

    assert regression.kind == "model"
    assert mixed.split == "finance"
    assert list(mixed.tasks["task_id"]) == ["t1", "t2", "t3", "t4"]
    assert len(mixed.wanted_tasks) == 4
    assert mixed.paired.n_tasks == 4
    assert mixed.tasks["first_score"].to_list() == pytest.approx([1, 1, 1, 1])
    assert mixed.tasks["second_score"].to_list() == pytest.approx(
        [5 / 20, 1, 5 / 15, 0]
    )
    assert mixed.paired.difference == pytest.approx((-15 / 20 - 10 / 15 - 1) / 4)


def test_four_tasks_are_too_few_for_an_interval_or_a_test(regression):
    _, mixed = regression.differences

    assert mixed.paired.ci_low is None
    assert mixed.paired.p_value is None
    assert mixed.p_adjusted is None


def test_a_planted_regression_stands_in_its_category(regression_verdicts):
    categories = regression_verdicts["categories"]

    assert [row["category"] for row in categories] == ["Risk", "Accuracy", "Clarity"]
    assert [row["n_gained"] for row in categories] == [0, 0, 0]
    assert [row["n_lost"] for row in categories] == [4, 0, 0]
    assert categories[0]["contribution"] == pytest.approx(
        (-6 / 20 - 2 / 10 - 7 / 15 - 10 / 9) / 4
    )


def test_flips_and_their_tasks_are_sorted_by_loss_and_explain_the_difference(
    regression,
    regression_verdicts,
):
    flips = regression_verdicts["flips"]
    tasks = regression_verdicts["tasks"]
    losses = pytest.approx([-10 / 9, -7 / 15, -6 / 20, -2 / 10])

    criterion_ids = [flip["criterion_id"] for flip in flips]
    assert criterion_ids == ["t4-c1", "t3-c1", "t1-c1", "t2-c1"]
    assert [flip["effect"] for flip in flips] == losses
    assert [task["task_id"] for task in tasks] == ["t4", "t3", "t1", "t2"]
    assert [task["difference"] for task in tasks] == losses
    assert [task["n_gained"] for task in tasks] == [0, 0, 0, 0]
    assert [task["n_lost"] for task in tasks] == [1, 1, 1, 1]
    difference = regression.differences[0].paired.difference
    assert regression_verdicts["explained"] == pytest.approx(difference)


def test_all_criteria_of_complete_tasks_are_compared(regression_verdicts):
    assert regression_verdicts["n_criteria"] == 11
    assert regression_verdicts["n_compared"] == 11
    assert regression_verdicts["n_undecided"] == 0
    assert regression_verdicts["n_in_one"] == 0


def judged_in_t3_with_another_wording() -> Rows:
    rows = judged(WORSE_IN_RISK, "b")
    for row in rows["verdicts"]:
        if row["criterion_id"] == "t3-c1":
            row["criterion_hash"] = "of another wording"
    return rows


@pytest.mark.parametrize(
    "second",
    [
        judged({**WORSE_IN_RISK, "t3": [0, None, 1]}, "b"),
        judged_in_t3_with_another_wording(),
    ],
)
def test_an_undecided_criterion_is_no_flip_and_its_task_counts_for_neither(
    published,
    second,
):
    reader = published(tasks_of(RUBRICS), judged(ALL_MET, "a"), second)

    result = ask(reader, "a", "b")

    [difference] = result.differences
    [verdicts] = verdicts_behind(reader, result)
    assert difference.paired.n_tasks == 3
    assert len(difference.wanted_tasks) == 4
    assert difference.paired.difference == pytest.approx(
        mean_change(ALL_MET, WORSE_IN_RISK, ("t1", "t2", "t4"))
    )
    # t3 has an undecided criterion and two decided ones.
    assert verdicts["n_criteria"] == 11
    assert verdicts["n_compared"] == 8
    assert verdicts["n_undecided"] == 1
    assert verdicts["n_left_out"] == 2
    assert {flip["task_id"] for flip in verdicts["flips"]} == {"t1", "t2", "t4"}
    assert verdicts["explained"] == pytest.approx(difference.paired.difference)


def test_a_flip_is_of_the_mean_over_the_complete_trials(published):
    first_trial = selected(ALL_MET, "t1", "t2")
    second_trial = {"t1": [1.0, 1.0, 0.0, 0.0], "t2": [0.0, None]}
    reader = published(
        tasks_of({"t1": RUBRICS["t1"], "t2": RUBRICS["t2"]}),
        judged(first_trial, "a"),
        judged(first_trial, "b"),
        judged(second_trial, "b", trial=2),
    )

    result = ask(reader, "a", "b")

    [verdicts] = verdicts_behind(reader, result)
    [flip] = verdicts["flips"]
    assert flip["criterion_id"] == "t1-c2"
    assert flip["first_value"] == 1.0
    assert flip["second_value"] == 0.5
    assert flip["effect"] == pytest.approx(-0.5 * 4 / 20)
    # The second task counts with its complete trial, in which nothing differs.
    assert result.differences[0].paired.difference == pytest.approx(-0.5 * 4 / 20 / 2)
    assert verdicts["explained"] == pytest.approx(-0.5 * 4 / 20 / 2)
    assert verdicts["n_undecided"] == 0
    assert verdicts["n_left_out"] == 0
    assert flip["first_explanations"] == ["why in a: 1.0"]
    assert flip["second_explanations"] == ["why in b: 1.0", "why in b: 0.0"]
    assert flip["first_decision"] == "met"
    assert flip["second_decision"] == "met in 1 of 2 trials"


def test_a_criterion_that_stands_twice_in_a_rubric_is_compared_twice_and_no_more(
    published,
):
    criteria = [
        criterion("t1", 0, 4),
        criterion("t1", 0, 6) | {"criterion_id": "again", "position": 1},
    ]
    tasks = tasks_of({"t1": [(4, "Risk"), (6, "Risk")]}) | {"criteria": criteria}
    reader = published(
        tasks,
        judged({"t1": [1, 1]}, "a", criteria={"t1": criteria}),
        judged({"t1": [1, 0]}, "b", criteria={"t1": criteria}),
    )

    [verdicts] = verdicts_behind(reader, ask(reader, "a", "b"))

    [flip] = verdicts["flips"]
    assert flip["criterion_id"] == "again"
    assert flip["effect"] == pytest.approx(-0.6)
    assert verdicts["n_compared"] == 2


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
        (("run-ear", "a"), {}, r"given: run-ear \(run\), a \(model\)"),
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
        (
            ("a", "b"),
            {"is_hard": True},
            "nothing to compare: no hard subset is selected yet; run `prbench select-",
        ),
        (
            ("a@base", "a@tonight"),
            {},
            "a@tonight: a has no verdict in vintage tonight; it has base, later",
        ),
        (
            ("a", "a@later"),
            {},
            "nothing to compare: a and a@later are the same responses",
        ),
        (
            ("a@base", "b"),
            {"vintage": "later"},
            "--vintage later: a@base names its vintage; leave the option out",
        ),
        (
            ("only-base", "only-later"),
            {"vintage": "all"},
            "only-base and only-later share no combination of dataset revision, vintage",
        ),
        (
            ("run-early", "run-late"),
            {},
            "nothing to compare: finance: no task is complete for both",
        ),
        (
            ("run-one", "run-early"),
            {},
            r"nothing to compare: .* worked on the same responses",
        ),
    ],
)
def test_names_and_options_without_a_comparison_are_refused_with_the_reason(
    samplings,
    names,
    options,
    message,
):
    with pytest.raises(PipelineError, match=message):
        ask(samplings, *names, **options)


def test_the_configurations_of_one_judge_are_told_apart_and_not_those_of_different_judges(
    published,
):
    samplings = []
    for judge, config in (("one", "earlier"), ("one", "later"), ("two", "only")):
        for model, value in (("a", 1.0), ("b", 0.0)):
            decisions = {"t1": [value] * len(RUBRICS["t1"])}
            samplings.append(
                judged(decisions, model, judge=judge, judge_config_hash=config)
            )

    result = ask(published(tasks_of(RUBRICS), *samplings), "a", "b")

    contexts = {varying_attributes(result, pair) for pair in result.differences}
    assert contexts == {
        ", judge one, judge configuration earlier",
        ", judge one, judge configuration later",
        ", judge two",
    }


def test_models_are_compared_under_one_judge_configuration_only(samplings):
    with pytest.raises(
        PipelineError,
        match="nothing to compare: only-base and elsewhere share no combination",
    ) as error:
        ask(samplings, "only-base", "elsewhere")

    assert error.value.exit_code == 1
    assert str(error.value).endswith(
        "; only-base has verdicts in base by a-judge; elsewhere has verdicts in base by other"
    )


@pytest.mark.parametrize(
    ("names", "vintages"),
    [
        (("a", "b"), ("later", "later")),
        (("a", "only-base"), ("later", "base")),
        (("only-base", "only-later"), ("base", "later")),
        (("a@base", "b"), ("base", "later")),
    ],
)
def test_models_are_compared_in_the_current_vintage_of_each_or_in_the_named_one(
    samplings,
    names,
    vintages,
):
    assert vintages_in(ask(samplings, *names)) == [vintages]


def test_every_vintage_is_compared_by_itself_if_all_are_requested(samplings):
    result = ask(samplings, "a", "b", vintage="all")

    assert vintages_in(result) == [("base", "base"), ("later", "later")]


def test_models_are_compared_in_a_requested_vintage(samplings):
    [difference] = ask(samplings, "a", "b", vintage="later").differences

    assert difference.paired.difference == pytest.approx(
        mean_change(MIXED, WORSE_IN_RISK)
    )


def test_a_pinned_model_stands_in_every_vintage_with_its_base(samplings):
    result = ask(samplings, "a", "only-base", vintage="later")

    assert vintages_in(result) == [("later", "base")]


def test_a_model_with_several_vintages_is_pinned_only_by_its_configuration(samplings):
    pinned = {"name": "openai/a", "label": "a"}

    result = ask(samplings, "night", "a", vintage="tonight", configured=[pinned])

    assert vintages_in(result) == [("tonight", "base")]
    message = (
        "nothing to compare: a has no verdict in vintage tonight under these options.*"
        "; a has verdicts in base, later by a-judge"
    )
    with pytest.raises(PipelineError, match=message):
        ask(samplings, "night", "a", vintage="tonight")


def test_a_model_with_base_responses_alone_is_not_pinned_if_it_is_configured_as_nightly(
    samplings,
):
    nightly = {
        "name": "openai/only-base",
        "label": "only-base",
        "resample": "nightly",
    }

    message = "only-base has no verdict in vintage tonight"
    with pytest.raises(PipelineError, match=message):
        ask(samplings, "night", "only-base", vintage="tonight", configured=[nightly])


def test_two_vintages_of_a_model_can_be_compared_as_models(samplings):
    [difference] = ask(samplings, "a@base", "a@later").differences

    assert [side.name for side in difference.pair.sides] == ["a@base", "a@later"]
    assert difference.paired.difference == pytest.approx(mean_change(ALL_MET, MIXED))


def test_a_label_in_full_is_meant_before_a_label_with_a_vintage(published):
    reader = published(
        tasks_of(RUBRICS),
        judged(ALL_MET, "a"),
        judged(ALL_MET, "a", of_response={"vintage": "later"}),
        judged(MIXED, "a@later"),
    )

    [difference] = ask(reader, "a", "a@later", vintage="base").differences

    second_run = difference.pair.sides[1].model_run
    assert second_run.model == "a@later"
    assert second_run.vintage == "base"


def more_verdicts(decisions: Decisions, model: str = "a", **values: Any) -> Rows:
    """Further verdicts on existing responses."""
    return {"verdicts": judged(decisions, model, **values)["verdicts"]}


def test_judges_are_compared_in_the_current_vintage_of_a_model_or_else_the_latest_that_both_judged(
    published,
):
    later = {"vintage": "later", "created_at": at(5)}
    latest = {"vintage": "latest", "created_at": at(9)}
    reader = published(
        tasks_of(RUBRICS),
        judged(ALL_MET, "a"),
        judged(ALL_MET, "a", of_response=later),
        judged(ALL_MET, "a", of_response=latest),
        judged(ALL_MET, "b"),
        judged(ALL_MET, "b", of_response=later),
        more_verdicts(MIXED, "a", of_response=later, judge="other"),
        more_verdicts(MIXED, "b", judge="other"),
        more_verdicts(MIXED, "b", of_response=later, judge="other"),
    )

    result = ask(reader, "a-judge", "other")

    models = [
        difference.pair.sides[0].model_run.model for difference in result.differences
    ]
    assert models == ["a", "b"]
    assert vintages_in(result) == [("later", "later"), ("later", "later")]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            ("a", "b"),
            "Comparing a with b, in vintage later, judged by a-judge, on finance.",
        ),
        (
            ("a", "b", "only-base"),
            "Comparing a (vintage later) with b (vintage later), only-base (vintage base), judged"
            " by a-judge, on finance.",
        ),
        (
            ("a@base", "a@later"),
            "Comparing a@base with a@later, judged by a-judge, on finance.",
        ),
        (
            ("base", "later"),
            "Comparing base with later, responses of a, b, judged by a-judge, on finance.",
        ),
    ],
)
def test_the_subject_of_a_comparison_names_models_vintages_judges_and_splits(
    samplings,
    names,
    sentence,
):
    assert subject(rows_of(ask(samplings, *names))) == sentence


def legal_if(tasks: Rows, legal_tasks: Sequence[str]) -> Rows:
    """The tasks, with some of them in the split `legal` instead of `finance`."""
    for member in tasks["split_members"]:
        if member["task_id"] in legal_tasks:
            member["split"] = "legal"
    return tasks


def test_a_split_on_which_only_one_model_has_verdicts_is_named(published):
    rubrics = {**RUBRICS, "law": [(10, "Accuracy")]}
    reader = published(
        legal_if(tasks_of(rubrics), ["law"]),
        judged({**ALL_MET, "law": [1]}, "a", rubrics=rubrics),
        judged(MIXED, "b"),
    )

    result = ask(reader, "a", "b", splits=["finance", "legal"])

    assert [difference.split for difference in result.differences] == ["finance"]
    assert result.not_compared == ("legal: no task is complete for both a and b.",)
    assert ask(reader, "a", "b").not_compared == ()


def test_models_without_a_split_in_common_are_refused_with_that_reason(published):
    reader = published(
        legal_if(tasks_of(RUBRICS), ["t4"]),
        judged(selected(ALL_MET, "t1"), "a"),
        judged(selected(ALL_MET, "t4"), "b"),
    )

    reason = (
        "nothing to compare: finance: no task is complete for both a and b; a has"
    )
    with pytest.raises(PipelineError, match=reason):
        ask(reader, "a", "b", splits=["finance", "legal"])


def test_of_a_model_that_was_configured_again_the_latest_responses_count(samplings):
    [difference] = ask(samplings, "a", "twice", vintage="base").differences

    assert difference.pair.sides[1].model_run.model_config_hash == "new"
    assert difference.paired.difference == 0
    assert difference.pair.notes == (
        "twice has 2 configurations; the latest counts.",
    )


def test_judges_are_compared_on_the_same_responses_with_one_template_where_they_share_one(
    published,
):
    reader = published(
        tasks_of(RUBRICS),
        judged(ALL_MET, "a", judge="one", template_hash="shared"),
        more_verdicts(MIXED, judge="other", template_hash="shared"),
        more_verdicts(ALL_MET, judge="other", template_hash="own", created_at=at(9)),
        more_verdicts(WORSE_IN_RISK, judge="reader", template_hash="imported"),
    )

    result = ask(reader, "one", "other", "reader")

    judge, person = result.differences
    assert result.kind == "judge"
    assert judge.pair.sides[1].model_run.template_hash == "shared"
    assert judge.paired.difference == pytest.approx(mean_change(ALL_MET, MIXED))
    assert person.paired.difference == pytest.approx(
        mean_change(ALL_MET, WORSE_IN_RISK)
    )
    # All verdicts are on the same responses; each side has those of its judge.
    verdicts_of_judge, verdicts_of_person = verdicts_behind(reader, result)
    flipped = {flip["criterion_id"] for flip in verdicts_of_person["flips"]}
    assert verdicts_of_judge["explained"] == pytest.approx(judge.paired.difference)
    assert flipped == {"t1-c1", "t2-c1", "t3-c1", "t4-c1"}


def test_templates_are_compared_by_the_beginning_of_their_hash(published):
    reader = published(
        tasks_of(RUBRICS),
        judged(ALL_MET, "a", template_hash="0123456789"),
        more_verdicts(MIXED, template_hash="0123450000"),
        more_verdicts(MIXED, judge="other", template_hash="0123450000"),
    )

    result = ask(reader, "0123456789", "0123450")

    [difference] = result.differences
    assert result.kind == "template"
    assert difference.pair.sides[1].name == "0123450000"
    assert difference.paired.difference == pytest.approx(mean_change(ALL_MET, MIXED))
    with pytest.raises(UsageError, match="012345: 2 templates match"):
        ask(reader, "012345", "0123456789")
    with pytest.raises(UsageError, match=r"01234: no model, .* has this name"):
        ask(reader, "01234", "0123456789")


def test_a_name_that_could_be_two_things_needs_the_option_of(published):
    reader = published(
        tasks_of(RUBRICS),
        judged(ALL_MET, "base"),
        judged(MIXED, "later"),
        judged(MIXED, "base", of_response={"vintage": "later"}),
    )

    [difference] = ask(reader, "base", "later", kind="vintage").differences

    assert difference.pair.sides[0].model_run.model == "base"
    message = "base and later: could be model or vintage; say which with --of"
    with pytest.raises(UsageError, match=message):
        ask(reader, "base", "later")


def test_a_name_in_full_is_meant_before_one_that_only_begins_so(samplings):
    assert ask(samplings, "20260101", "20260102").kind == "vintage"
    assert ask(samplings, "20260101T", "20260102").kind == "run"


@pytest.fixture(scope="module")
def revisions(tmp_path_factory) -> Iterator[Reader]:
    """Two revisions with responses of one model.

    In the new revision t2 is gone and t5 is new; in t1 the ids and the order differ, a weight is
    higher, and the criterion at 3 has other content.
    """
    old_revision = {"dataset_revision": "aaaaaa-old"}
    new_revision = {"dataset_revision": "bbbbbb-new"}
    criteria = [
        criterion("t1", 2, 14, "Risk"),
        criterion("t1", 1, 6, "Risk"),
        criterion("t1", 0, 10, "Risk"),
        criterion("t1", 7, -5, "Risk"),
    ]
    for position, line in enumerate(criteria):
        line.update(new_revision, criterion_id=f"new-{position}", position=position)
    new_tasks = tasks_of(
        {"t5": [(1, "Risk")], "t1": RUBRICS["t1"]}, revision="bbbbbb-new"
    )
    new_tasks["criteria"][1:] = criteria
    with reading(
        tmp_path_factory.mktemp("revisions"),
        tasks_of({"t1": RUBRICS["t1"], "t2": RUBRICS["t2"]}, revision="aaaaaa-old"),
        new_tasks,
        judged({"t1": [1, 1, 0, 0], "t2": [1, 1]}, of_response=old_revision),
        judged(
            {"t1": [1, 1, 0, 0]},
            criteria={"t1": criteria},
            of_response=new_revision,
        ),
    ) as reader:
        yield reader


def test_revisions_are_compared_on_the_tasks_of_both(revisions):
    result = ask(revisions, "aaaaaa", "bbbbbb")

    [difference] = result.differences
    assert result.kind == "revision"
    assert difference.pair.sides[0].name == "aaaaaa-old"
    assert difference.paired.n_tasks == 1
    assert difference.paired.difference == pytest.approx(
        (14 + 6) / 30 - (10 + 6) / 20
    )


def test_criteria_of_revisions_are_compared_by_content(revisions):
    [verdicts] = verdicts_behind(revisions, ask(revisions, "aaaaaa", "bbbbbb"))

    # The old criterion 0 (weight 10) is lost, the old criterion 2 (now 14) is gained.
    lost, gained = verdicts["flips"]
    assert lost["criterion_id"] == "new-2"
    assert lost["effect"] == pytest.approx(-10 / 30)
    assert gained["criterion_id"] == "new-0"
    assert gained["effect"] == pytest.approx(14 / 30)
    assert verdicts["n_compared"] == 3
    assert verdicts["n_in_one"] == 2
    assert verdicts["explained"] == pytest.approx(4 / 30)


def test_runs_are_compared_on_the_tasks_of_which_both_made_a_verdict(samplings):
    result = ask(samplings, "run-one", "run-two")

    [difference] = result.differences
    [verdicts] = verdicts_behind(samplings, result)
    assert result.kind == "run"
    assert list(difference.tasks["task_id"]) == ["t2", "t3"]
    assert len(difference.wanted_tasks) == 2
    assert difference.paired.difference == pytest.approx(
        mean_change(ALL_MET, MIXED, ("t2", "t3"))
    )
    assert {flip["task_id"] for flip in verdicts["flips"]} == {"t3"}


def test_a_warehouse_without_verdicts_has_nothing_to_compare(published):
    reader = published(tasks_of(RUBRICS))

    message = "nothing to compare: no verdict on prbench yet"
    with pytest.raises(PipelineError, match=message):
        ask(reader, "a", "b")


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
def test_decisions_of_trials_that_disagree_are_counted(by_trial, message):
    assert decision(by_trial) == message
