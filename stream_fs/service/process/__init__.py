"""The process itself: threads, signals, memory and the watchdog."""
