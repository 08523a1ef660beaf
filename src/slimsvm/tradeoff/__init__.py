"""The whole trade-off between size and accuracy of a model."""
