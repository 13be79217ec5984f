"""Coverage: which vehicle is judged by which detector, and the alarm `watch` where somebody is not."""
