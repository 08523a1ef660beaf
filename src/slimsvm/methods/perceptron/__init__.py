"""Kernel perceptrons whose support vectors are pruned (García, González & Dorronsoro 2006)."""
