"""Which stream each operation goes to: one module a strategy; `strategies.STRATEGIES` lists them all."""
