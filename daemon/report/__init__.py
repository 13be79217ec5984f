"""A recorded log as one HTML page that opens anywhere without a network: what happened, and what was not judged."""
