"""Which stream each operation goes to: one module a strategy, and `strategies.STRATEGIES`, the table of them."""
