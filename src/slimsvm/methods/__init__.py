"""Methods: how machines with few vectors are made. One file per idea."""
