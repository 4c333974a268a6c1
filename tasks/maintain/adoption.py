"""Adoption: rows and replies that were stored without the address of their model get the identity
with this address.

Before 0.3.0, an address from the environment, such as `OPENAI_BASE_URL`, was no part of an
identity. Parts are rewritten as in a compaction. The same command finishes an adoption that was
killed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from tasks.config.job import Job
from tasks.console import notice
from tasks.llm.ledger.pruning import adopt as adopt_replies
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.identity import response_id, verdict_id
from tasks.rules.text.numbers import counted
from tasks.run.run_context import LEDGER, callees
from tasks.run.unadopted import changed_identities
from tasks.run.writing import StageReport
from warehouse import Reader, Row, Warehouse, refuse_other_version


def adopt(job: Job, address: str) -> StageReport:
    """Take over all rows and replies of models to which the environment gives this address.

    Raises:
        UsageError: the environment gives no configured model this address.
        WarehouseBusy: a run is in progress on the warehouse.
        WarehouseError: a part cannot be read, or the disk cannot be written.
        PipelineError: the ledger is in use, or cannot be written.
    """
    names = _models_at(job, address)
    new_hashes = {
        identity.earlier_hash: identity.config_hash
        for identity in changed_identities(job)
        if address in identity.addresses
    }
    warehouse = Warehouse(job.warehouse)
    if refuse_other_version(warehouse.root) is None:  # there is no warehouse
        raise UsageError(f"{warehouse.root}: nothing is stored there; check --warehouse")
    with warehouse.alone(notice):
        warehouse.publish()
        with warehouse.reader() as reader:
            response_ids = dict(_new_response_ids(reader, new_hashes))
            verdict_ids = dict(_new_verdict_ids(reader, new_hashes, response_ids))
        new_ids = response_ids | verdict_ids
        n_replies = 0
        for name in sorted(names):
            adopted = adopt_replies(job.warehouse / LEDGER, name, address, new_ids)
            if adopted.is_in_use:
                raise PipelineError(
                    f"{job.warehouse / LEDGER}: is in use; run this again when no command reads it"
                )
            n_replies += adopted.entries
        if new_ids:
            # Hashes and ids together: a row gets the new hash of its configuration only if its own
            # id is among the new ones.
            warehouse.rename(new_hashes | new_ids)
    counts = f"{counted(len(response_ids), 'response')}, {counted(len(verdict_ids), 'verdict')}"
    note = (
        f"{counts} and {counted(n_replies, 'reply', 'replies')} in the ledger now belong to"
        f" {address}"
    )
    return StageReport("adopt", rows=len(new_ids), notes=[note])


def _models_at(job: Job, address: str) -> set[str]:
    """Return the names of the models to which the environment gives an address.

    Raises:
        UsageError: there is none.
    """
    names = set()
    addresses = set()
    for callee in callees(job):
        target = callee.target
        if target.address_variable is not None:
            addresses.add(f"{target.api_base} (from {target.address_variable})")
            if target.api_base == address:
                names.add(target.name)
    if not names:
        hint = "no variable gives a configured model an address"
        if addresses:
            hint = f"known: {', '.join(sorted(addresses))}"
        raise UsageError(
            f"--api-base {address}: no configured model has this address from the environment"
            f" ({hint}); name one that `prbench doctor` shows"
        )
    return names


def _new_response_ids(reader: Reader, new_hashes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the old and the new id of each response under an earlier configuration, unless the new
    one is stored.
    """
    stored_ids = {row["response_id"] for row in reader.select("responses", "response_id")}
    for row in reader.select("responses", _RESPONSE_COLUMNS, model_config_hash=list(new_hashes)):
        new_id = response_id(
            benchmark=row["benchmark"],
            dataset_revision=row["dataset_revision"],
            task_id=row["task_id"],
            conversation_id=row["conversation_id"],
            model=row["model"],
            model_config_hash=new_hashes[row["model_config_hash"]],
            trial=row["trial"],
            vintage=row["vintage"],
        )
        if new_id not in stored_ids:
            yield row["response_id"], new_id


def _pieces(verdicts: Iterable[Row]) -> dict[str, list[str]]:
    """Return the hashes of the criteria that one call judged, in their order, by `piece_hash`."""
    hashes: dict[str, dict[int, str]] = defaultdict(dict)
    for row in verdicts:
        if row["piece_hash"] is not None:
            # By position, because rows come in any order.
            hashes[row["piece_hash"]][row["position_in_call"]] = row["criterion_hash"]
    pieces = {}
    for piece_hash, by_position in hashes.items():
        pieces[piece_hash] = [by_position[position] for position in sorted(by_position)]
    return pieces


_RESPONSE_COLUMNS = (
    "response_id, benchmark, dataset_revision, task_id, conversation_id, model, model_config_hash,"
    " trial, vintage"
)
_VERDICT_COLUMNS = (
    "verdict_id, response_id, criterion_id, criterion_hash, judge, judge_config_hash,"
    " template_hash, grading, judge_trial, piece_hash, position_in_call"
)


def _new_verdict_ids(
    reader: Reader,
    new_hashes: Mapping[str, str],
    new_response_ids: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
    """Yield the old and the new id of each verdict by a judge under an earlier configuration, and
    of each verdict on a response with a new id, unless the new one is stored.
    """
    stored_ids = {row["verdict_id"] for row in reader.select("verdicts", "verdict_id")}
    by_judge = reader.select("verdicts", _VERDICT_COLUMNS, judge_config_hash=list(new_hashes))
    on_responses = reader.select("verdicts", _VERDICT_COLUMNS, response_id=list(new_response_ids))
    verdicts = {row["verdict_id"]: row for row in (*by_judge, *on_responses)}
    response_ids = sorted({row["response_id"] for row in verdicts.values()})
    responses = reader.select("responses", "*", response_id=response_ids)
    texts = {row["response_id"]: row["text"] for row in responses}
    pieces = _pieces(verdicts.values())
    for old_id, row in verdicts.items():
        new_id = verdict_id(
            response_id=new_response_ids.get(row["response_id"], row["response_id"]),
            response_text=texts[row["response_id"]],
            criterion_id=row["criterion_id"],
            criterion_hash=row["criterion_hash"],
            judge=row["judge"],
            judge_config_hash=new_hashes.get(row["judge_config_hash"], row["judge_config_hash"]),
            template_hash=row["template_hash"],
            grading=row["grading"],
            judge_trial=row["judge_trial"],
            piece=pieces.get(row["piece_hash"], []),
        )
        if new_id not in stored_ids:
            yield old_id, new_id
