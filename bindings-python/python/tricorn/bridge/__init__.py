"""Bridge to the engine: host, threads, callouts, errors."""
