"""An independent checker of certificates, written by `tasks/certify/format.md` alone: it uses
nothing of this project.

python checker.py FILE [DIGEST] prints how many figures it recomputed, and those that differ.
"""

import hashlib
import json
import math
import sys
import zipfile
from collections import Counter, defaultdict, namedtuple
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, product
from pathlib import Path

import numpy as np
from scipy.stats import t as student_t

SAMPLING = ("model", "model_config_hash", "vintage")
JUDGE_CONFIG = (
    "judge",
    "judge_config_hash",
    "template_hash",
    "grading",
    "judge_trial",
)
ALL = ("all", "")
Run = namedtuple("Run", SAMPLING + JUDGE_CONFIG)
"""A model in a vintage under a judge configuration."""
Score = namedtuple("Score", "value lower upper n_decided n_criteria")
"""The score of a response (None if incomplete), its bounds, and its numbers of criteria."""


# the file


def read(path, digest=None):
    content = Path(path).read_bytes()
    actual = hashlib.sha256(content[:-64]).hexdigest()
    assert content[-64:] == actual.encode(), "the file does not have its digest"
    assert digest in {None, actual}, "the digest is not the one that was published"
    archive = zipfile.ZipFile(path)
    tables = {}
    manifest = json.loads(archive.read("manifest.json"))
    for member in manifest["files"]:
        content = archive.read(member["name"])
        assert hashlib.sha256(content).hexdigest() == member["sha256"], member["name"]
        if member["name"].endswith(".jsonl"):
            rows = list(map(json.loads, content.splitlines()))
            tables[Path(member["name"]).stem] = rows
    return manifest, tables


def digest_of(*parts):
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def check_ids(manifest, tables, texts):
    """Check that the ids of responses, and of verdicts on responses with given texts, are the right
    hashes.
    """
    texts_by_hash = {
        hashlib.sha256(text.encode()).hexdigest(): text for text in texts
    }
    texts_by_response = {}
    data_set = (manifest["benchmark"], manifest["dataset_revision"])
    for row in tables["responses"]:
        names = (
            "task_id",
            "conversation_id",
            "model",
            "model_config_hash",
            "trial",
            "vintage",
        )
        response_id = digest_of("response", *data_set, *(row[name] for name in names))
        assert row["response_id"] == response_id, row
        texts_by_response[response_id] = texts_by_hash.get(row["text_sha256"])
    pieces = pieces_of(tables)
    for row in tables["verdicts"]:
        response_id = row["response_id"]
        text = texts_by_response[response_id]
        if text is not None:
            names = ("criterion_id", "criterion_hash", *JUDGE_CONFIG)
            parts = [response_id, text, *(row[name] for name in names), "base"]
            if row["piece_hash"] is not None:
                parts.append(pieces[row["task_id"], row["piece_hash"]])
            assert row["verdict_id"] == digest_of("verdict", *parts), row


def pieces_of(tables):
    """Task and hash of a piece -> the hashes of its criteria, which follow each other in the
    rubric.
    """
    rubrics = defaultdict(list)
    for row in sorted(tables["criteria"], key=lambda row: row["position"]):
        rubrics[row["task_id"]].append(row["content_hash"])
    pieces = {}
    for task, rubric in rubrics.items():
        for start, end in combinations(range(len(rubric) + 1), 2):
            piece = rubric[start:end]
            pieces[task, hashlib.md5(" ".join(piece).encode()).hexdigest()] = piece
    return pieces


def check_calls(manifest, tables):
    """Check that the manifest has the hash of the numbers of criteria in a call."""
    lines = []
    for row in sorted(tables["verdicts"], key=lambda row: row["verdict_id"]):
        if row["n_in_call"] is not None:
            lines.append(f"{row['verdict_id']} {row['n_in_call']}")
    calls_hash = None
    if lines:
        calls_hash = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert manifest["calls_sha256"] == calls_hash


# intervals


def student(degrees):
    return student_t.ppf(0.975, degrees)


@cache
def draws(n_tasks, seed, resamples):
    generator = np.random.default_rng(seed)
    shares = np.full(n_tasks, 1 / n_tasks)
    parts = []
    for start in range(0, resamples, 1000):
        size = min(1000, resamples - start)
        parts.append(generator.multinomial(n_tasks, shares, size=size))
    return np.concatenate(parts).astype(float)


def interval(numerators, denominators, counts):
    """The interval (low, high) of a ratio of sums; with denominators of 1, of a mean."""
    ratios = np.sort(numerators / denominators)
    steps = np.flatnonzero(np.diff(ratios) > 1e-9 * np.abs(ratios).max())
    n_tasks = len(ratios)
    n_differing = n_tasks - max(map(len, np.split(ratios, steps + 1)))
    if n_differing < 5:
        return None, None
    ratio = numerators.sum() / denominators.sum()
    excess = numerators - ratio * denominators
    spread = math.sqrt((excess**2).sum())
    excess /= spread
    counts = counts[counts @ denominators > 0]
    moved = counts @ excess
    shift = moved / (counts @ denominators)
    squares = (
        counts @ excess**2
        - 2 * shift * (counts @ (excess * denominators))
        + shift**2 * (counts @ denominators**2)
    )
    low_quantile, high_quantile = np.quantile(
        moved / np.sqrt(np.maximum(squares, 1e-6)), [0.025, 0.975]
    )
    shortest = student(n_differing - 1) * math.sqrt(n_tasks / (n_tasks - 1))
    longest = max(2 * student(n_tasks - 1), shortest)
    error = spread / denominators.sum()
    low = ratio - min(max(high_quantile, shortest), longest) * error
    high = ratio + min(max(-low_quantile, shortest), longest) * error
    return max(low, ratios[0]), min(high, ratios[-1])


# rubrics, labels and verdicts


@dataclass
class Rubric:
    """The criteria of a task under a label: sums of their weights, and their number."""

    positive: float = 0.0
    negative: float = 0.0
    n_criteria: int = 0


@dataclass
class Decisions:
    """The decided criteria of a response under a label; `positive` and `negative` are the sums of
    their weights.
    """

    points: float = 0.0
    n_decided: int = 0
    met: float = 0.0
    positive: float = 0.0
    negative: float = 0.0

    def add(self, weight, value):
        self.met += value or 0.0
        if None not in (weight, value):
            self.points += weight * value
            self.n_decided += 1
            self.positive += max(weight, 0.0)
            self.negative += min(weight, 0.0)


@dataclass
class Verdicts:
    """The verdicts of all judges; a pair of a judge configuration and a response is called
    `judged`.

    Attributes:
        decisions: pair -> label -> decisions.
        own_judges: the judge configurations with a verdict that is not imported.
        marks: pair -> what its verdicts say on whether they may hide failures: True, False or None.
        failed: the pairs with a failed verdict.
    """

    decisions: dict = field(default_factory=dict)
    own_judges: set = field(default_factory=set)
    marks: dict = field(default_factory=lambda: defaultdict(set))
    failed: set = field(default_factory=set)

    def add(self, row, judged, value):
        mark = row["may_hide_failures"]
        if row["source"] == "judged" and mark is None:
            mark = False
        self.marks[judged].add(mark)
        if row["source"] != "imported":
            self.own_judges.add(judged[0])
        if value is None:
            self.failed.add(judged)


@dataclass
class RunState:
    """The trials of a run that count, the times of its judged responses, the marks of its verdicts,
    and the tasks on which something failed.
    """

    trials: set = field(default_factory=set)
    times: set = field(default_factory=set)
    marks: set = field(default_factory=set)
    failed_tasks: set = field(default_factory=set)

    def add(self, row, judged, verdicts):
        """Note what the verdicts on a response say, and return its decisions by label."""
        self.marks.update(verdicts.marks.get(judged, ()))
        if row["status"] != "ok" or judged in verdicts.failed:
            self.failed_tasks.add(row["task_id"])
        return verdicts.decisions.get(judged, {})


def or_none(label):
    return "(none)" if label is None else str(label)


def criteria_of(tables, tasks):
    """Criterion -> its weight and labels; and (task, label) -> rubric."""
    further_labels = defaultdict(list)
    for row in tables["criterion_labels"]:
        label = (row["kind"], row["label"])
        further_labels[row["task_id"], row["criterion_id"]].append(label)
    criteria = {}
    rubrics = defaultdict(Rubric)
    for row in tables["criteria"]:
        task = row["task_id"]
        if task not in tasks:
            continue
        labels = [
            ALL,
            ("category", or_none(row["category"])),
            ("severity", or_none(row["severity"])),
            *further_labels[task, row["criterion_id"]],
        ]
        criterion = (task, row["criterion_id"], row["content_hash"])
        criteria[criterion] = (row["weight"], labels)
        for label in labels:
            rubric = rubrics[task, label]
            rubric.positive += max(row["weight"] or 0.0, 0.0)
            rubric.negative += min(row["weight"] or 0.0, 0.0)
            rubric.n_criteria += 1
    return criteria, rubrics


def tasks_under(tables, tasks, hard):
    """A label of tasks, not of criteria -> the tasks under it."""
    by_label = defaultdict(set)
    for task, row in tasks.items():
        by_label[ALL].add(task)
        for kind in ("topic", "expert", "turns"):
            by_label[kind, or_none(row[kind])].add(task)
        has_texts = "with" if row["has_reference_texts"] else "without"
        by_label["reference_texts", has_texts].add(task)
        by_label["subset", "full"].add(task)
        if task in hard:
            by_label["subset", "hard"].add(task)
    for row in tables["labelled_tasks"]:
        by_label[row["kind"], row["label"]].add(row["task_id"])
    return {label: under & tasks.keys() for label, under in by_label.items()}


def verdicts_of(tables, criteria):
    verdicts = Verdicts()
    originals = {}
    for row in tables["criterion_variants"]:
        variant = (row["task_id"], row["criterion_id"], row["content_hash"])
        originals[variant] = (
            row["task_id"],
            row["original_id"],
            row["original_hash"],
        )
    for row in tables["verdicts"]:
        key = (row["task_id"], row["criterion_id"], row["criterion_hash"])
        weight, labels = criteria.get(originals.get(key, key), (None, ()))
        for grading, value in readings_of(row).items():
            config_row = row | {"grading": grading}
            judge_config = tuple(config_row[name] for name in JUDGE_CONFIG)
            judged = (judge_config, row["response_id"])
            verdicts.add(row, judged, value)
            for label in labels:
                by_label = verdicts.decisions.setdefault(
                    judged, defaultdict(Decisions)
                )
                by_label[label].add(weight, value)
    return verdicts


def readings_of(verdict):
    """Grading -> the value of a verdict; a ternary one is read as binary too."""
    readings = {verdict["grading"]: verdict["value"]}
    if verdict["grading"] == "ternary":
        is_partial = verdict["value"] == 0.5
        readings["ternary_as_binary"] = 0.0 if is_partial else verdict["value"]
    return readings


# runs


def judged_runs(responses, sampled, verdicts):
    """Run -> its state, with its trials: judged ones, and all if they were not imported."""
    runs = defaultdict(RunState)
    for judge_config, response in verdicts.decisions:
        row = responses[response]
        run = Run(*(row[name] for name in SAMPLING), *judge_config)
        runs[run].trials.add(row["trial"])
        runs[run].times.add(row["created_at"])
        if judge_config in verdicts.own_judges:
            runs[run].trials.update(row["trial"] for row in sampled[run[:3]])
    return runs


def runs_of(tables, tasks, rubrics, verdicts):
    """Run -> its state; and (run, task, label) -> trial -> decisions."""
    responses = {
        row["response_id"]: row
        for row in tables["responses"]
        if row["task_id"] in tasks
    }
    sampled = defaultdict(list)
    for row in responses.values():
        sampled[tuple(row[name] for name in SAMPLING)].append(row)
    labels = defaultdict(list)
    for task, label in rubrics:
        labels[task].append(label)
    runs = judged_runs(responses, sampled, verdicts)
    decisions = defaultdict(dict)
    for run, state in runs.items():
        for row in sampled[run[:3]]:
            if row["trial"] in state.trials:
                by_label = state.add(row, (run[3:], row["response_id"]), verdicts)
                for label in labels[row["task_id"]]:
                    decided = by_label.get(label, Decisions())
                    decisions[run, row["task_id"], label][row["trial"]] = decided
        if run[3:] in verdicts.own_judges:
            count_trials(tables, run, state, decisions)
    return runs, decisions


def bar_of(tables, run):
    """The coverage that a vintage needs: by the last rule of the model, else of all others, else
    0.99.
    """
    bar_of_others = 0.99
    bar_of_model = None
    rules = tables.get("coverage_rules", ())
    for rule in sorted(rules, key=lambda row: row["created_at"]):
        if (rule["model"], rule["model_config_hash"]) == run[:2]:
            bar_of_model = rule["min_coverage"]
        if not rule["model"]:
            bar_of_others = rule["min_coverage"]
    return bar_of_others if bar_of_model is None else bar_of_model


def count_trials(tables, run, state, decisions):
    """Leave only the trials that count: the wanted ones, and further ones that are as full as
    these.
    """
    n_wanted = None
    for rule in tables.get("coverage_rules", ()):
        if tuple(rule[name] for name in SAMPLING) == run[:3]:
            n_wanted = rule["wanted_trials"]
    if n_wanted is None:
        return
    n_decided = Counter()
    for (other_run, _, label), by_trial in decisions.items():
        if (other_run, label) == (run, ALL):
            for trial, decided in by_trial.items():
                n_decided[trial] += decided.n_decided
    fullest = max(
        (n for trial, n in n_decided.items() if trial <= n_wanted), default=0
    )
    further_trials = {
        trial
        for trial in state.trials
        if trial > n_wanted and n_decided[trial] >= bar_of(tables, run) * fullest
    }
    state.trials = further_trials | set(range(1, n_wanted + 1))


# figures


class Figures:
    """The figures of leaderboards, recomputed from a certificate's rows.

    A row of a leaderboard has the key (run, task set, label, score name).

    Attributes:
        sets: task set -> its tasks; a set is (split or field, whether it is a field's own hard
            tasks).
        under: label of tasks -> the tasks under it; all other labels are of criteria.
        stopped: key of a row -> its row in `stopping_scores`.
        bar: run -> the coverage that a vintage needs.
        decisions: (run, task, label) -> trial -> decisions.
    """

    def __init__(self, manifest, tables, resamples=None):
        self.seed = manifest["intervals"]["seed"]
        self.resamples = resamples or manifest["intervals"]["resamples"]
        self.scores = {row["score_name"]: row for row in tables["score_definitions"]}
        self.primary = next(
            name for name, row in self.scores.items() if row["is_primary"]
        )
        tasks = {row["task_id"]: row for row in tables["tasks"] if row["is_admitted"]}
        self.n_criteria = {task: row["n_criteria"] for task, row in tasks.items()}
        hard = {row["task_id"] for row in tables["hard_subset"]}
        sets = defaultdict(set)
        for row in tables["split_members"]:
            sets[row["split"], False].add(row["task_id"])
        for row in tables["hard_subset"]:
            sets[f"{row['field']} (own hard)", True].add(row["task_id"])
        self.sets = {
            key: sorted(members & tasks.keys()) for key, members in sets.items()
        }
        self.under = tasks_under(tables, tasks, hard)
        self.stopped = {
            self.about({**row, "is_own_hard": False}): row
            for row in tables["stopping_scores"]
        }
        self.stopped_samplings = {
            run[:3]
            for (run, *_), row in self.stopped.items()
            if row["n_tasks_skipped"]
        }
        self.bar = cache(lambda run: bar_of(tables, run))
        criteria, self.rubrics = criteria_of(tables, tasks)
        verdicts = verdicts_of(tables, criteria)
        self.runs, self.decisions = runs_of(tables, tasks, self.rubrics, verdicts)

    def responses(self, run, task, label, score):
        """Trial -> the score of the response to a task; None if the task has no such score."""
        rubric = self.rubrics.get((task, label), Rubric())
        factors = self.scores[score]
        divisor = (
            factors["denominator_positive"] * rubric.positive
            + factors["denominator_negative"] * rubric.negative
        )
        if divisor <= 0:
            return None
        offset = factors["numerator_negative"] * rubric.negative
        by_trial = {}
        for trial in self.runs[run].trials:
            decided = self.decisions.get((run, task, label), {}).get(
                trial, Decisions()
            )
            is_complete = decided.n_decided == rubric.n_criteria
            lowest = decided.points + rubric.negative - decided.negative
            highest = decided.points + rubric.positive - decided.positive
            by_trial[trial] = Score(
                value=(decided.points + offset) / divisor if is_complete else None,
                lower=(lowest + offset) / divisor,
                upper=(highest + offset) / divisor,
                n_decided=decided.n_decided,
                n_criteria=rubric.n_criteria,
            )
        return by_trial

    def rubric_label(self, label):
        """The label of the criteria that a label of tasks or criteria is about."""
        return ALL if label in self.under else label

    @cache  # noqa: B019 - the world lives as long as its figures
    def known(self, run, task_set, label, score):
        """Task -> its responses by trial, for the tasks that have such a score."""
        by_task = {}
        for task in self.sets[task_set]:
            if label not in self.under or task in self.under[label]:
                trials = self.responses(run, task, self.rubric_label(label), score)
                if trials is not None:
                    by_task[task] = trials
        return by_task

    def all_responses(self, run, task_set, label, score):
        """The scores of all responses, incomplete ones too."""
        responses = []
        for trials in self.known(run, task_set, label, score).values():
            responses += trials.values()
        return responses

    def all_rows(self):
        """Return the keys of rows with figures: each run that responded to a task with such a score
        under the label.
        """
        responding = {(run, task) for run, task, _ in self.decisions}
        labels = {label for _, label in self.rubrics} | self.under.keys()
        keys = set()
        for key in product(self.runs, self.sets, labels, self.scores):
            if any((key[0], task) in responding for task in self.known(*key)):
                keys.add(key)
        return keys

    @cache  # noqa: B019 - as above
    def of_tasks(self, run, task_set, label, score):
        """Task -> its scores by trial, without incomplete ones."""
        scores = {}
        for task, trials in self.known(run, task_set, label, score).items():
            values = {trial: response.value for trial, response in trials.items()}
            scores[task] = {
                trial: value for trial, value in values.items() if value is not None
            }
        return scores

    def means(self, run, task_set, label, score):
        """Task -> its mean score over trials."""
        by_task = self.of_tasks(run, task_set, label, score)
        return {
            task: sum(trials.values()) / len(trials)
            for task, trials in by_task.items()
            if trials
        }

    @cache  # noqa: B019 - as above
    def unranked(self, *key):
        """The figures of a row with a score, without its ranks."""
        run, task_set, _, score = key
        state = self.runs[run]
        by_task = self.of_tasks(*key)
        means = self.means(*key)
        responses = self.all_responses(*key)
        floor = self.floor(score)
        raw_mean = sum(means.values()) / len(means) if means else None
        mean_lower = np.mean([response.lower for response in responses])
        mean_upper = np.mean([response.upper for response in responses])
        n_trials = len(state.trials)
        n_tasks_full = sum(len(trials) == n_trials for trials in by_task.values())
        figures = {
            "n_tasks": len(means),
            "n_tasks_wanted": len(by_task),
            "n_tasks_full": n_tasks_full,
            "n_trials": n_trials,
            "coverage": coverage_of(responses),
            "is_complete": n_tasks_full == len(by_task),
            "mean_lower": max(mean_lower, floor),
            "mean_upper": max(mean_upper, floor),
            "raw_mean_score": raw_mean,
            "mean_score": None if raw_mean is None else max(raw_mean, floor),
            "is_latest": self.is_latest(run, task_set),
            "may_hide_failures": mark_of(state.marks),
        }
        figures |= self.met_figures(*key)
        figures |= self.interval_figures(*key)
        return figures | self.trial_figures(*key)

    def counts(self, task_set, tasks):
        """How often each resample draws each of the tasks."""
        members = self.sets[task_set]
        columns = [members.index(task) for task in tasks]
        return draws(len(members), self.seed, self.resamples)[:, columns]

    def met_figures(self, run, task_set, label, score):
        """The share of criteria that are met, with its interval."""
        met = []
        judged = []
        tasks = []
        for task, trials in self.of_tasks(run, task_set, label, score).items():
            if trials:
                key = (task, self.rubric_label(label))
                decisions = self.decisions[run, *key]
                tasks.append(task)
                met.append(sum(decisions[trial].met for trial in trials))
                judged.append(float(self.rubrics[key].n_criteria * len(trials)))
        if not tasks:
            return dict.fromkeys(
                ("met_share", "n_judged", "met_ci_low", "met_ci_high")
            )
        low, high = interval(
            np.array(met), np.array(judged), self.counts(task_set, tasks)
        )
        return {
            "met_share": sum(met) / sum(judged),
            "n_judged": int(sum(judged)),
            "met_ci_low": low,
            "met_ci_high": high,
        }

    def interval_figures(self, run, task_set, label, score):
        """The interval of the mean score; of a stopped model that for all looks, while no skipped
        task was evaluated later.
        """
        by_task = self.of_tasks(run, task_set, label, score)
        means = self.means(run, task_set, label, score)
        ends = (None, None)
        if means:
            values = np.array(list(means.values()))
            ends = interval(
                values, np.ones(len(values)), self.counts(task_set, means)
            )
        n_skipped = None
        unbiased_mean = None
        stop = self.stopped.get((run, task_set, label, score))
        if stop is not None and stop["n_tasks_skipped"]:
            failed_tasks = (by_task.keys() - means.keys()) & self.runs[
                run
            ].failed_tasks
            n_tried = len(means) + len(failed_tasks)
            n_left = stop["n_tasks_evaluated"] + stop["n_tasks_skipped"] - n_tried
            if n_left > 0:
                n_skipped = min(n_left, stop["n_tasks_skipped"])
                unbiased_mean = stop["unbiased_mean_score"]
                ends = (None, None)
                if n_skipped == stop["n_tasks_skipped"]:
                    ends = (stop["sequence_low"], stop["sequence_high"])
        floor = self.floor(score)
        low, high = ends
        return {
            "n_tasks_skipped": n_skipped,
            "unbiased_mean_score": unbiased_mean,
            "raw_ci_low": low,
            "raw_ci_high": high,
            "ci_low": None if low is None else max(low, floor),
            "ci_high": None if high is None else max(high, floor),
        }

    def trial_figures(self, *key):
        """The mean over trials with its interval, if each task is complete in all trials."""
        figures = dict.fromkeys(("trials_mean", "trials_ci_low", "trials_ci_high"))
        n_trials = len(self.runs[key[0]].trials)
        means = np.array([mean for _, mean in self.trial_scores(*key).values()])
        by_task = self.of_tasks(*key).values()
        has_part = any(0 < len(trials) < n_trials for trials in by_task)
        if len(means) and not has_part:
            mean = means.mean()
            figures["trials_mean"] = mean
            if len(means) > 1:
                error = means.std(ddof=1) / math.sqrt(len(means))
                half = student(len(means) - 1) * error
                figures["trials_ci_low"] = mean - half
                figures["trials_ci_high"] = mean + half
        return figures

    def row(self, stated):
        """The figures of a row with a score."""
        run, *key = self.about(stated)
        latest_runs = []
        runs_of_vintage = []
        for rival in self.runs:
            if rival[3:] == run[3:]:
                if self.is_latest(rival, key[0]):
                    latest_runs.append(rival)
                if rival.vintage == run.vintage:
                    runs_of_vintage.append(rival)
        return (
            self.unranked(run, *key)
            | self.rank(run, runs_of_vintage, "rank", "n_tasks_ranked", *key)
            | self.rank(
                run, latest_runs, "latest_rank", "n_tasks_latest_ranked", *key
            )
        )

    def compared(self, stated):
        """Return how many figures of a row were recomputed, and those that differ."""
        figures = self.row(stated)
        differences = []
        for name, value in figures.items():
            if not is_same(name, stated[name], value):
                differences.append((self.about(stated), name, stated[name], value))
        return len(figures), differences

    def trial_scores(self, run, task_set, label, score):
        """Trial -> the number of tasks that are complete in it, and the mean score over them."""
        by_task = self.of_tasks(run, task_set, label, score).values()
        scores = {}
        for trial in self.runs[run].trials:
            values = [trials[trial] for trials in by_task if trial in trials]
            if values:
                scores[trial] = (len(values), max(np.mean(values), self.floor(score)))
        return scores

    def floor(self, score):
        """The lowest value that a mean of this score can have."""
        return 0.0 if self.scores[score]["clips_mean"] else -math.inf

    def about(self, row):
        """The run, task set, label and score of a row."""
        run = Run(*(row[name] for name in Run._fields))
        label = (row["breakdown"], row["label"]) if "breakdown" in row else ALL
        for split, is_own_hard in self.sets:
            has_same_kind = row.get("is_own_hard", is_own_hard) == is_own_hard
            if split == row["split"] and has_same_kind:
                return run, (split, is_own_hard), label, row["score_name"]
        raise LookupError(row["split"])

    @cache  # noqa: B019 - as above
    def is_latest(self, run, task_set):
        """Return whether a run is of the model's current vintage on a task set."""
        orders = {}
        for rival in self.runs:
            is_same_model = (rival[:2], rival[3:]) == (run[:2], run[3:])
            if is_same_model and self.has_responded(rival, task_set):
                orders[rival] = self.currency(rival, task_set)
        return run in orders and orders[run] == max(orders.values())

    @cache  # noqa: B019 - as above
    def has_responded(self, run, task_set):
        return any((run, task, ALL) in self.decisions for task in self.sets[task_set])

    @cache  # noqa: B019 - as above
    def currency(self, run, task_set):
        """The sort key of vintages, of which the highest is current: whether it reaches the bar, its
        coverage if it does not, the time of its first response, its name.
        """
        coverage = coverage_of(self.all_responses(run, task_set, ALL, self.primary))
        if run[:3] in self.stopped_samplings:
            responded = {
                task for rival, task, _ in self.decisions if rival[:3] == run[:3]
            }
            members = self.sets[task_set]
            n_left_out = sum(
                self.n_criteria[task] for task in set(members) - responded
            )
            coverage += n_left_out / sum(self.n_criteria[task] for task in members)
        coverage = round(coverage, 12)
        is_at_bar = coverage >= self.bar(run)
        coverage_below = 0 if is_at_bar else coverage
        return is_at_bar, coverage_below, min(self.runs[run].times), run.vintage

    def rank(self, run, rivals, name, n_name, *key):
        """The rank by the mean over tasks that all ranked runs share; a run is ranked with half of
        the most tasks.
        """
        means = {rival: self.means(rival, *key) for rival in rivals}
        most_tasks = max(map(len, means.values()), default=0)
        ranked = {
            rival: tasks
            for rival, tasks in means.items()
            if tasks and 2 * len(tasks) >= most_tasks
        }
        shared = set.intersection(*map(set, ranked.values())) if ranked else set()
        if run not in ranked or not shared:
            return dict.fromkeys((name, n_name, f"{name}_low", f"{name}_high"))
        shared_means = {}
        for rival, tasks in ranked.items():
            total = math.fsum(tasks[task] for task in shared)
            shared_means[rival] = round(total / len(shared), 12)
        rank = 1 + sum(mean > shared_means[run] for mean in shared_means.values())
        figures_of_run = self.unranked(run, *key)
        n_above = 0
        n_below = 0
        for rival in ranked:
            figures = self.unranked(rival, *key)
            if None not in (figures["raw_ci_low"], figures_of_run["raw_ci_low"]):
                n_above += figures["raw_ci_low"] > figures_of_run["raw_ci_high"]
                n_below += figures["raw_ci_high"] < figures_of_run["raw_ci_low"]
        return {
            name: rank,
            n_name: len(shared),
            f"{name}_low": min(1 + n_above, rank),
            f"{name}_high": max(len(ranked) - n_below, rank),
        }


def coverage_of(responses):
    n_decided = sum(response.n_decided for response in responses)
    return n_decided / sum(response.n_criteria for response in responses)


def mark_of(marks):
    """Return whether failures may be hidden: True if any verdict says so, else None if any is
    unknown.
    """
    if True in marks:
        return True
    return None if None in marks else False


def is_same(name, stated, recomputed):
    """Return whether a figure is the stated one, except for rounding; ends of intervals may differ
    more, because their steps are computed in single precision.
    """
    if isinstance(stated, int) or None in (stated, recomputed):
        return stated == recomputed
    tolerance = 2e-6 if "ci_" in name else 1e-9
    return math.isclose(stated, recomputed, rel_tol=tolerance, abs_tol=tolerance)


def check(path, digest=None, resamples=None):
    """Return the number of recomputed figures, and the wrong ones: (leaderboard, row, figure,
    certified, computed).
    """
    manifest, tables = read(path, digest)
    check_ids(manifest, tables, [])
    figures = Figures(manifest, tables, resamples)
    n_figures = 0
    differences = []
    for name in ("leaderboard", "hard_leaderboard", "breakdown_leaderboard"):
        for stated in tables[name]:
            if stated["is_judged"]:
                n_compared, wrong = figures.compared(stated)
                n_figures += n_compared
                differences += [(name, *difference) for difference in wrong]
    return n_figures, differences


if __name__ == "__main__":
    n_checked, differing = check(*sys.argv[1:3])
    print(
        f"{n_checked} figures recomputed, {len(differing)} differ",
        *differing[:50],
        sep="\n",
    )
    sys.exit(bool(differing))
