"""Growing support vector classifiers (Parrado-Hernández et al. 2003)."""
