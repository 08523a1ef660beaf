"""slimsvm: kernel machines with few vectors, evaluated near the limit of the hardware."""
