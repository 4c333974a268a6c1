"""The only place that talks to a model."""

from tasks.llm.budget import Budget, NotCalled
from tasks.llm.calls.batches import Batching
from tasks.llm.calls.gateway import Gateway, Tries, probe
from tasks.llm.calls.sending import send
from tasks.llm.embedded import MODEL, is_embedded, weights_hash, weights_path
from tasks.llm.environment import filled_in, filled_in_secrets, guard_logs, key_state, missing_key, redacted, safe
from tasks.llm.http_clients import watched
from tasks.llm.ledger.entries import SPEND_COLUMNS, SPEND_KEY, total_usd
from tasks.llm.ledger.files import deletion_mark, mend, read_file
from tasks.llm.ledger.ledger import KeptReply, Ledger, LedgerReader, kept_replies, spend_in
from tasks.llm.ledger.pruning import Pruned, forget, prune
from tasks.llm.limiter import Limiter, Outcome, Totals
from tasks.llm.litellm_setup import collect_seldom, warm_up
from tasks.llm.prices import (
    ContextWindow,
    batch_prices_of,
    context_window_of,
    cost_usd,
    count_tokens,
    most_answer_tokens,
    prices_of,
)
from tasks.llm.replies import (
    CONTEXT_LENGTH,
    EMPTY,
    OK,
    PROVIDER_ERROR,
    REDIRECTED,
    TIMEOUT,
    TOO_LARGE,
    Reply,
    failure_of_status,
)
from tasks.llm.request import NO_PRICES, Call, Prices, Target
from tasks.llm.senders.cluster import refuse_without_ray
from tasks.llm.senders.pool import SenderPool, SenderState
from tasks.llm.senders.pool import inspect as inspect_nodes
from tasks.llm.transport import Exchange

__all__ = [
    "CONTEXT_LENGTH", "EMPTY", "MODEL", "NO_PRICES", "OK", "PROVIDER_ERROR", "REDIRECTED", "SPEND_COLUMNS",
    "SPEND_KEY", "TIMEOUT", "TOO_LARGE", "Batching", "Budget", "Call", "ContextWindow", "Exchange", "Gateway",
    "KeptReply", "Ledger", "LedgerReader", "Limiter", "NotCalled", "Outcome", "Prices", "Pruned", "Reply",
    "SenderPool", "SenderState", "Target", "Totals", "Tries", "batch_prices_of", "collect_seldom",
    "context_window_of", "cost_usd", "count_tokens", "deletion_mark", "failure_of_status", "filled_in",
    "filled_in_secrets", "forget", "guard_logs", "inspect_nodes", "is_embedded", "kept_replies", "key_state",
    "mend", "missing_key", "most_answer_tokens", "prices_of", "probe", "prune", "read_file", "redacted",
    "refuse_without_ray", "safe", "send", "spend_in", "total_usd", "warm_up", "watched", "weights_hash",
    "weights_path",
]  # fmt: skip
