"""The only place that talks to a model."""

from tasks.llm.batches.runner import Batching
from tasks.llm.context_window import ContextWindow, context_window_of
from tasks.llm.embedded import MODEL, is_embedded, weights_hash, weights_path
from tasks.llm.failures import failure_of_status
from tasks.llm.keys import key_state, missing_key
from tasks.llm.ledger.entries import total_usd
from tasks.llm.ledger.files import deletion_mark, mend, read_file
from tasks.llm.ledger.ledger import SPEND_COLUMNS, SPEND_KEY, KeptReply, Ledger, kept_replies, spend_in
from tasks.llm.ledger.pruning import Pruned, forget, prune
from tasks.llm.limits.admission import Outcome, Totals
from tasks.llm.limits.budget import Budget, NotCalled
from tasks.llm.limits.limiter import Limiter
from tasks.llm.litellm_setup import collect_seldom, warm_up
from tasks.llm.live.gateway import Gateway, Tries
from tasks.llm.live.probing import probe
from tasks.llm.live.sending import send
from tasks.llm.prices import batch_prices_of, cost_usd, count_tokens, most_answer_tokens, prices_of
from tasks.llm.redaction import filled_in, filled_in_secrets, guard_logs, redacted, safe
from tasks.llm.replies import CONTEXT_LENGTH, EMPTY, OK, PROVIDER_ERROR, REDIRECTED, TIMEOUT, TOO_LARGE, Reply
from tasks.llm.request import NO_PRICES, Call, Prices, Target
from tasks.llm.senders.cluster import refuse_without_ray
from tasks.llm.senders.inspection import inspect as inspect_nodes
from tasks.llm.senders.pool import SenderPool
from tasks.llm.senders.remote import SenderState
from tasks.llm.transport.watching import watched
from tasks.llm.transport.wire import Exchange

__all__ = [
    "CONTEXT_LENGTH",
    "EMPTY",
    "MODEL",
    "NO_PRICES",
    "OK",
    "PROVIDER_ERROR",
    "REDIRECTED",
    "SPEND_COLUMNS",
    "SPEND_KEY",
    "TIMEOUT",
    "TOO_LARGE",
    "Batching",
    "Budget",
    "Call",
    "ContextWindow",
    "Exchange",
    "Gateway",
    "KeptReply",
    "Ledger",
    "LedgerReader",
    "Limiter",
    "NotCalled",
    "Outcome",
    "Prices",
    "Pruned",
    "Reply",
    "SenderPool",
    "SenderState",
    "Target",
    "Totals",
    "Tries",
    "batch_prices_of",
    "collect_seldom",
    "context_window_of",
    "cost_usd",
    "count_tokens",
    "deletion_mark",
    "failure_of_status",
    "filled_in",
    "filled_in_secrets",
    "forget",
    "guard_logs",
    "inspect_nodes",
    "is_embedded",
    "kept_replies",
    "key_state",
    "mend",
    "missing_key",
    "most_answer_tokens",
    "prices_of",
    "probe",
    "prune",
    "read_file",
    "redacted",
    "refuse_without_ray",
    "safe",
    "send",
    "spend_in",
    "total_usd",
    "warm_up",
    "watched",
    "weights_hash",
    "weights_path",
]
