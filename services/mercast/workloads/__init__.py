"""Events and filters as the papers, the load tests and the benches use them: seeded, endless, the same everywhere."""

from mercast.workloads.base import Workload
from mercast.workloads.quotes import Quotes, QuotesError, quotes_of, read_quotes
from mercast.workloads.stock import Stock
from mercast.workloads.uniform import Uniform
from mercast.workloads.zipf import Zipf

__all__ = ["Quotes", "QuotesError", "Stock", "Uniform", "Workload", "Zipf", "quotes_of", "read_quotes"]
