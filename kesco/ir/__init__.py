"""The nouns of the compiler: frozen values that the stages hand to each other, and nothing that acts."""
