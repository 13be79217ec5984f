"""Components for Watchkeeper from a package of their own: copy the one that is nearest to yours."""
