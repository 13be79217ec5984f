"""From evidence to alarm events: subjects, debouncing, the table of active alarms."""
