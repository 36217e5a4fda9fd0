"""The bridge to the engine: its host, its threads, its errors."""
