"""One episode, moment by moment: a page that plays it (pages.py), an animation for slides (animation.py)."""
