"""A model of a GPU, and what it says of schedules: how long work would take, without running it."""
