"""Reduced sets: a machine's expansion approximated by few vectors (Suttorp & Igel 2007), and beyond."""
