"""One file per method that `compress` can try."""
